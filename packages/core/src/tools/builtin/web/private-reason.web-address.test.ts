import { describe, expect, test } from "vitest";
import { privateReason, readWebAddress } from "./private-reason.ts";

const noOne = () => false;

describe("an address that may be fetched", () => {
  test.each([
    ["https://example.com/page?x=1#part", "https://example.com/page?x=1"],
    ["http://example.com", "https://example.com/"],
    ["http://example.com:80/", "https://example.com/"],
    ["https://example.com:443/", "https://example.com/"],
    ["  https://EXAMPLE.com/ ", "https://example.com/"],
    ["https://example.com./x", "https://example.com/x"],
    ["https://bücher.example/", "https://xn--bcher-kva.example/"],
    ["https://8.8.8.8/", "https://8.8.8.8/"],
    ["https://134744072/", "https://8.8.8.8/"],
    ["https://[2606:4700::1111]/", "https://[2606:4700::1111]/"],
    ["https://localhost.example.com/", "https://localhost.example.com/"],
  ])("%s is asked for as %s", (given, expected) => {
    const decided = readWebAddress(given, noOne);
    expect(decided.type === "address" ? decided.url.href : decided.reason).toBe(expected);
  });
});

describe("an address that is refused", () => {
  test.each([
    ["example.com", "not a complete web address"],
    ["", "not a complete web address"],
    ["ftp://example.com/", "not an http"],
    ["file:///etc/passwd", "not an http"],
    ["javascript:alert(1)", "not an http"],
    ["data:text/html,x", "not an http"],
    ["https://user:secret@example.com/", "user name or password"],
    ["https://user@example.com/", "user name or password"],
    ["https://example.com:8080/", "port 8080"],
    ["https://example.com:80/", "port 80"],
    ["http://127.0.0.1/", "loopback"],
    ["http://127.0.0.1./", "loopback"],
    ["http://127.1/", "loopback"],
    ["http://2130706433/", "loopback"],
    ["http://0x7f000001/", "loopback"],
    ["http://0x7f.1/", "loopback"],
    ["http://0177.0.0.1/", "loopback"],
    ["http://017700000001/", "loopback"],
    ["http://%31%32%37.0.0.1/", "loopback"],
    ["http://１２７.0.0.1/", "loopback"],
    ["http://0/", "reserved"],
    ["http://10.0.0.1/", "private"],
    ["http://169.254.169.254/latest/meta-data", "link-local"],
    ["http://[::1]/", "loopback"],
    ["http://[::]/", "not a public"],
    ["http://[::ffff:127.0.0.1]/", "IPv4 address inside"],
    ["http://[::ffff:8.8.8.8]/", "IPv4 address inside"],
    ["http://[fd00:ec2::254]/", "private"],
    ["http://[fe80::1]/", "link-local"],
    ["http://localhost/", "this machine or network"],
    ["http://LOCALHOST./", "this machine or network"],
    ["http://app.localhost/", "this machine or network"],
    ["http://metadata.google.internal/", "this machine or network"],
    ["http://printer.local/", "this machine or network"],
    [`https://example.com/${"x".repeat(5_000)}`, "longer than"],
    ["https://exa mple.com/", "not a complete web address"],
  ])("%s: %s", (given, reason) => {
    const decided = readWebAddress(given, noOne);
    expect(decided).toMatchObject({ type: "refused" });
    expect(decided.type === "refused" && decided.reason).toContain(reason);
  });
});

test("a rule for a host lets its private address, its port and plain http pass, and nothing else", () => {
  const rule = (host: string) => host === "127.0.0.1";
  expect(readWebAddress("http://127.0.0.1:8080/x", rule)).toMatchObject({
    type: "address",
    mayBePrivate: true,
  });
  expect(readWebAddress("http://127.0.0.2:8080/x", rule)).toMatchObject({ type: "refused" });
  expect(readWebAddress("http://u:p@127.0.0.1/", rule)).toMatchObject({ type: "refused" });
  const decided = readWebAddress("http://127.0.0.1:8080/x", rule);
  expect(decided.type === "address" && decided.url.href).toBe("http://127.0.0.1:8080/x");
});

describe("which IP addresses are public", () => {
  test.each([
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700::1",
    "2a00:1450::1",
    "64:ff9b::808:808",
    "64:ff9b::8.8.8.8",
  ])("%s is", (address) => expect(privateReason(address)).toBeUndefined());

  test.each([
    "0.0.0.0",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.255.255.255",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:a00:1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::1",
    "64:ff9b:1::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "fc00::1",
    "fdff::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "100::1",
    "nonsense",
  ])("%s is not", (address) => expect(privateReason(address)).toEqual(expect.any(String)));
});
