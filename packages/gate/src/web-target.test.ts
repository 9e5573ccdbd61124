import { describe, expect, test } from "vitest";
import { isPrivateAddress, matchesDomain, readWebTarget } from "./web-target.ts";

function host(url: string): string | undefined {
  const target = readWebTarget(url);
  return target.type === "web" ? target.host : undefined;
}

function covers(
  domain: string,
  url: string,
  use: "grant" | "restrict" = "grant",
  addresses: readonly string[] = [],
) {
  const target = readWebTarget(url, addresses);
  return target.type === "web" && matchesDomain(domain, target, use);
}

describe("[PRM-8] where a fetch goes", () => {
  test.each([
    ["https://EXAMPLE.com./x", "example.com"],
    ["https://example.com:8443/", "example.com"],
    ["https://example.com@evil.test/", "evil.test"],
    ["https://ex%61mple.com/", "example.com"],
    ["http://2130706433/", "127.0.0.1"],
    ["http://0x7f.1/", "127.0.0.1"],
    ["http://0177.0.0.1/", "127.0.0.1"],
    ["http://[::ffff:127.0.0.1]/", "[::ffff:7f00:1]"],
    ["https://m\u00fcnchen.example/", "xn--mnchen-3ya.example"],
    ["ftp://example.com/", undefined],
    ["https://", undefined],
    ["https://evil.test\0.example.com/", undefined],
    ["https://exa\tmple.com/", undefined],
  ])("%j goes to %s", (url, expected) => {
    expect(host(url)).toBe(expected);
  });

  test.each([
    ["example.com", "https://example.com/", true],
    ["example.com", "https://example.com.evil.test/", false],
    ["example.com", "https://evilexample.com/", false],
    ["example.com", "https://www.example.com/", false],
    ["*.example.com", "https://a.b.example.com/", true],
    ["*.example.com", "https://example.com/", false],
    ["example.*", "https://example.org/", true],
    ["example.*", "https://example.co.uk/", false],
    ["a*.example.com", "https://abc.example.com/", true],
    ["example.com:8443", "https://example.com:8443/", true],
    ["example.com:8443", "https://example.com/", false],
    ["m\u00fcnchen.example", "https://xn--mnchen-3ya.example/", true],
    ["localhost", "http://localhost:3000/", true],
    ["127.0.0.1", "http://127.0.0.1/", true],
    ["*", "http://127.0.0.1/", false],
    ["*.0.0.1", "http://127.0.0.1/", false],
    ["*.internal", "http://db.internal/", true],
  ])("a grant for %s covers %s: %s", (domain, url, expected) => {
    expect(covers(domain, url)).toBe(expected);
  });

  test("a name of the open web that leads to a private address is covered by no grant", () => {
    expect(covers("a.example.com", "https://a.example.com/", "grant", ["93.184.216.34"])).toBe(true);
    expect(covers("a.example.com", "https://a.example.com/", "grant", ["10.0.0.1"])).toBe(false);
    expect(covers("localhost", "http://localhost/", "grant", ["127.0.0.1"])).toBe(true);
  });

  test("a denial of an address holds for all its spellings and ports", () => {
    expect(covers("127.0.0.1", "http://2130706433:8080/", "restrict")).toBe(true);
    expect(covers("example.com:8443", "https://example.com/", "restrict")).toBe(true);
  });

  test.each([
    "https://a:b@example.com/",
    "https://example.com\\@evil.test/",
    "https:example.com",
  ])("%s is shown to a person", (url) => {
    expect(readWebTarget(url)).toMatchObject({ isOdd: expect.any(String) });
  });

  test.each([
    ["127.0.0.1", true],
    ["10.1.2.3", true],
    ["172.16.0.1", true],
    ["172.32.0.1", false],
    ["192.168.1.1", true],
    ["169.254.169.254", true],
    ["100.64.0.1", true],
    ["0.0.0.0", true],
    ["8.8.8.8", false],
    ["::1", true],
    ["::", true],
    ["::ffff:10.0.0.1", true],
    ["::ffff:8.8.8.8", false],
    ["fd00::1", true],
    ["fe80::1%eth0", true],
    ["64:ff9b::7f00:1", true],
    ["2002:7f00:1::", true],
    ["2606:4700::1111", false],
    ["no address", true],
  ])("%s is private: %s", (address, expected) => {
    expect(isPrivateAddress(address)).toBe(expected);
  });
});
