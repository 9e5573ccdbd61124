import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";
import { quote } from "@retinue/base/foundation/json-record.ts";

/** Why an IP address is not one of the public internet; undefined for one that is. */
export function privateReason(address: string): string | undefined {
  if (isIPv4(address)) return privateIpv4(address);
  if (!isIPv6(address)) return "is not an IP address";
  const embedded = embeddedIpv4(address);
  if (embedded !== undefined) return privateIpv4(embedded);
  const known = ipv6Ranges.find(({ list }) => list.check(address, "ipv6"));
  if (known !== undefined) return known.reason;
  const isPublic = publicRanges.some(({ list }) => list.check(address, "ipv6"));
  return isPublic ? undefined : "is not a public address";
}

function privateIpv4(address: string): string | undefined {
  return ipv4Ranges.find(({ list }) => list.check(address, "ipv4"))?.reason;
}

/** In networks that speak IPv6 only, names of IPv4 hosts are answered with the address in the last 32 bits. */
function embeddedIpv4(address: string): string | undefined {
  const bare = address.split("%")[0] ?? address;
  const normal = URL.parse(`http://[${bare}]/`)?.hostname.slice(1, -1) ?? "";
  if (!normal.startsWith("64:ff9b::")) return undefined;
  const [high, low] = normal.slice("64:ff9b::".length).padStart(1, "0").split(":").slice(-2);
  const bits = low === undefined ? [0, word(high)] : [word(high), word(low)];
  return bits.flatMap((part) => [part >> 8, part & 255]).join(".");
}

function word(text: string | undefined): number {
  return Number.parseInt(text || "0", 16);
}

interface Range {
  readonly list: BlockList;
  readonly reason: string;
}

function ranges(family: "ipv4" | "ipv6", table: readonly (readonly [string, string])[]): readonly Range[] {
  return table.map(([networks, reason]) => {
    const list = new BlockList();
    for (const network of networks.split(" ")) {
      const [base = "", bits] = network.split("/");
      list.addSubnet(base, Number(bits), family);
    }
    return { list, reason };
  });
}

const ipv4Ranges = ranges("ipv4", [
  ["127.0.0.0/8", "is a loopback address"],
  ["10.0.0.0/8 172.16.0.0/12 192.168.0.0/16", "is a private address"],
  ["169.254.0.0/16", "is a link-local address, where clouds keep their metadata"],
  ["100.64.0.0/10", "is an address inside a provider's network"],
  ["168.63.129.16/32", "is an address of a cloud's metadata"],
  ["224.0.0.0/4", "is a multicast address"],
  [
    "0.0.0.0/8 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4",
    "is a reserved address",
  ],
]);

const ipv6Ranges = ranges("ipv6", [
  ["::1/128", "is a loopback address"],
  ["::ffff:0:0/96", "is an IPv4 address inside an IPv6 one"],
  ["fe80::/10 fec0::/10", "is a link-local address"],
  ["fc00::/7", "is a private address"],
  ["ff00::/8", "is a multicast address"],
  ["2001::/23 2001:db8::/32 2002::/16 3fff::/20", "is a reserved address"],
]);

const publicRanges = ranges("ipv6", [["2000::/3", "is a public address"]]);

export type WebAddress =
  | {
      readonly type: "address";
      readonly url: URL;
      /** This host was allowed although it may be private. */
      readonly mayBePrivate: boolean;
    }
  | { readonly type: "refused"; readonly reason: string };

const maxLength = 4_000;

/** Decides whether an address may be asked for, and as what. Names are judged again when they are resolved. */
export function readWebAddress(text: string, mayFetchPrivate: (host: string) => boolean): WebAddress {
  const refused = (reason: string): WebAddress => ({
    type: "refused",
    reason: `${quote(text, 200)} ${reason}`,
  });
  if (text.length > maxLength) return refused(`is longer than ${maxLength} characters.`);
  const url = URL.parse(text.trim());
  if (url === null)
    return refused("is not a complete web address; it should look like https://example.com/page.");
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return refused("is not an http or https address.");
  if (url.username !== "" || url.password !== "") {
    return refused("contains a user name or password; such addresses are not fetched.");
  }
  const host = hostOf(url);
  if (host === "") return refused("names no host.");
  if (isIP(host) === 0) url.hostname = host;
  url.hash = "";
  if (mayFetchPrivate(host)) return { type: "address", url, mayBePrivate: true };
  const reason = reasonByName(host);
  if (reason !== undefined) return refused(`${reason}; it is fetched only where a rule allows that host.`);
  if (url.port !== "") return refused(`asks for port ${url.port}; only the usual ports are fetched.`);
  url.protocol = "https:";
  return { type: "address", url, mayBePrivate: false };
}

/** Whether a host is private by what it is called, wherever it leads. */
export function isPrivateByName(host: string): boolean {
  return reasonByName(host) !== undefined;
}

function reasonByName(host: string): string | undefined {
  return localName(host) ?? (isIP(host) === 0 ? undefined : privateReason(host));
}

/** The host without the brackets of IPv6 and without the dot that ends a full name. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "").replace(/\.+$/, "");
}

function localName(host: string): string | undefined {
  const isLocal = /(?:^|\.)(?:localhost|local|internal|home\.arpa)$/.test(host);
  return isLocal ? "names a host of this machine or network" : undefined;
}
