import { domainToASCII } from "node:url";
import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";

/** Where a fetch would go, as the network sees it. */
export type WebTarget =
  | {
      readonly type: "web";
      /** ASCII, lower case, without the root's dot; an IPv6 address is in brackets. */
      readonly host: string;
      readonly port: string;
      /** This machine, a local network, or the like. */
      readonly isPrivate: boolean;
      /** A name of the open web that was resolved to a private address. */
      readonly leadsToPrivate?: boolean;
      /** Why a person should see the address before it is used. */
      readonly isOdd?: string;
    }
  | { readonly type: "invalid"; readonly reason: string };

/** Reads a URL as fetching it would; `addresses` are those its name was resolved to, where that has happened. */
export function readWebTarget(text: unknown, addresses: readonly string[] = []): WebTarget {
  if (typeof text !== "string") return invalid("the URL is not a string");
  if (/[\u0000-\u001f\u007f]/.test(text.trim())) return invalid("the URL has a control character in it");
  if (!URL.canParse(text)) return invalid("the URL cannot be read");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    return invalid(`only http and https can be fetched, not ${url.protocol}`);
  const host = url.hostname.replace(/\.+$/, "").toLowerCase();
  if (host === "") return invalid("the URL names no host");
  const isOdd = urlProblem(text, url);
  return {
    type: "web",
    host,
    port: url.port,
    isPrivate: isPrivateHost(host),
    ...(!isPrivateHost(host) && addresses.some(isPrivateAddress) ? { leadsToPrivate: true } : {}),
    isOdd,
  };
}

function urlProblem(text: string, url: URL): string | undefined {
  if (url.username !== "" || url.password !== "") return "the URL contains a user name or password";
  const [beforeQuery = ""] = text.split(/[?#]/);
  if (beforeQuery.includes("\\")) return "the URL has a backslash in it";
  if (!/^\s*https?:\/\/[^/]/i.test(text)) return "the URL is not written out in full";
  return undefined;
}

/** Whether a rule's domain covers a target. A private target is only granted by a rule that names it. */
export function matchesDomain(
  domain: string,
  target: Extract<WebTarget, { type: "web" }>,
  use: "grant" | "restrict",
): boolean {
  const { host: pattern, port } = readPattern(domain);
  if (use === "grant" && target.leadsToPrivate === true) return false;
  if (port !== undefined && use === "grant" && port !== target.port) return false;
  if (!pattern.includes("*")) return pattern === target.host;
  // `*.internal` names private places; `*.example.com` does not, wherever its names lead.
  if (
    use === "grant" &&
    target.isPrivate &&
    !(isPrivateHost(pattern.replace(/\*/g, "x")) && pattern.includes("."))
  )
    return false;
  if (use === "grant" && /^(?:\[|[\d.]+$)/.test(target.host)) return false;
  // A leading `*.` means one label or more; any other star stays within its label.
  const wanted = pattern.split(".");
  const labels = target.host.split(".");
  if (wanted[0] === "*") {
    const rest = wanted.slice(1);
    return labels.length > rest.length && matchesEach(rest, labels.slice(labels.length - rest.length));
  }
  return wanted.length === labels.length && matchesEach(wanted, labels);
}

function readPattern(domain: string): { readonly host: string; readonly port?: string } {
  const [, bare = domain, port] = /^(.*?)(?::(\d+))?$/.exec(domain) ?? [];
  const named = bare.replace(/\.+$/, "").toLowerCase();
  const isAddress = named.startsWith("[") || named.includes("::");
  const text = isAddress && !named.startsWith("[") ? `[${named}]` : named;
  return { host: isAddress ? readHost(text) : asciiLabels(text), port };
}

function asciiLabels(host: string): string {
  if (!host.includes("*")) return readHost(host);
  return host
    .split(".")
    .map((label) => (label.includes("*") ? label : domainToASCII(label) || label))
    .join(".");
}

function readHost(text: string): string {
  const url = `http://${text}/`;
  return URL.canParse(url) ? new URL(url).hostname : text;
}

function matchesEach(wanted: readonly string[], labels: readonly string[]): boolean {
  return wanted.every((pattern, at) => matchesPattern(pattern, labels[at] ?? ""));
}

function invalid(reason: string): WebTarget {
  return { type: "invalid", reason };
}

/** Whether a host is this machine, a local network, a cloud's metadata service, or anything else that is not the open web. */
function isPrivateHost(host: string): boolean {
  if (host.startsWith("[")) return isPrivateAddress(host.slice(1, -1));
  const bytes = readFourBytes(host);
  if (bytes !== undefined) return isPrivateFour(bytes);
  const labels = host.split(".");
  return (
    labels.length === 1 || localNames.has(labels.at(-1) ?? "") || localNames.has(labels.slice(-2).join("."))
  );
}

/** The same for an address that a name was resolved to; what cannot be read counts as private. */
export function isPrivateAddress(address: string): boolean {
  const bytes = readFourBytes(address);
  if (bytes !== undefined) return isPrivateFour(bytes);
  const words = readEightWords(address.split("%")[0] ?? "");
  return words === undefined || isPrivateEight(words);
}

/** Names of local networks, and public ones that are made to lead to them. */
const localNames: ReadonlySet<string> = new Set(
  `localhost local internal intranet lan home corp private localdomain home.arpa
  nip.io sslip.io xip.io localtest.me lvh.me vcap.me lacolhost.com`.split(/\s+/),
);

function readFourBytes(text: string): readonly number[] | undefined {
  if (!/^\d{1,3}(?:\.\d{1,3}){3}$/.test(text)) return undefined;
  const bytes = text.split(".").map(Number);
  return bytes.every((byte) => byte <= 255) ? bytes : undefined;
}

function isPrivateFour([a = 0, b = 0, c = 0]: readonly number[]): boolean {
  if (a === 0 || a === 10 || a === 127 || a >= 224) return true;
  if (a === 100) return b >= 64 && b <= 127;
  if (a === 169) return b === 254;
  if (a === 172) return b >= 16 && b <= 31;
  if (a === 192) return b === 168 || (b === 0 && (c === 0 || c === 2)) || (b === 88 && c === 99);
  if (a === 198) return b === 18 || b === 19 || (b === 51 && c === 100);
  return a === 203 && b === 0 && c === 113;
}

function readEightWords(text: string): readonly number[] | undefined {
  const mapped = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const bytes = mapped?.[2] === undefined ? undefined : readFourBytes(mapped[2]);
  const plain = bytes === undefined ? text : `${mapped?.[1]}${joined(bytes, 0)}:${joined(bytes, 2)}`;
  if (!/^[\da-f:]+$/i.test(plain)) return undefined;
  const [head = "", tail, ...more] = plain.split("::");
  if (more.length > 0) return undefined;
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const gap = 8 - before.length - after.length;
  if (tail === undefined ? gap !== 0 : gap < 1) return undefined;
  const words = [...before, ...Array<string>(Math.max(gap, 0)).fill("0"), ...after].map((word) =>
    Number.parseInt(word, 16),
  );
  return words.every((word) => word >= 0 && word <= 0xffff) ? words : undefined;
}

function joined(bytes: readonly number[], at: number): string {
  return (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16);
}

function isPrivateEight(words: readonly number[]): boolean {
  const [first = 0, second = 0] = words;
  // Loopback, unspecified, and addresses that carry four bytes inside them.
  if (words.slice(0, 5).every((word) => word === 0)) return first === 0 && isPrivateLow(words);
  if (first === 0x64 && second === 0xff9b) return isPrivateFour(fourBytes(words, 6));
  if (first === 0x2002) return isPrivateFour(fourBytes(words, 1));
  if (first === 0x2001) return second === 0 || second === 0xdb8 || (second >= 0x10 && second <= 0x2f);
  return (
    (first & 0xfe00) === 0xfc00 ||
    (first & 0xff80) === 0xfe80 ||
    (first & 0xff00) === 0xff00 ||
    first === 0x100
  );
}

function isPrivateLow(words: readonly number[]): boolean {
  const isMapped = words[5] === 0xffff || words[5] === 0;
  return !isMapped || isPrivateFour(fourBytes(words, 6)) || (words[6] === 0 && (words[7] ?? 0) <= 1);
}

function fourBytes(words: readonly number[], at: number): readonly number[] {
  return [words[at] ?? 0, words[at + 1] ?? 0].flatMap((word) => [word >> 8, word & 0xff]);
}
