import { domainToASCII } from "node:url";
import { matchesPattern } from "../foundation/match-pattern.ts";
import { isPrivateAddress, isPrivateHost } from "./address-class.ts";

/** Where a fetch would go, as the network sees it. */
export type WebTarget =
  | {
      readonly type: "web";
      /** ASCII, lower case, without the root's dot; an IPv6 address stands in brackets. */
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
  if (typeof text !== "string") return invalid("the URL is not a text");
  if (/[\u0000-\u001f\u007f]/.test(text.trim())) return invalid("the URL has a control character in it");
  if (!URL.canParse(text)) return invalid("the URL cannot be read");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    return invalid(`only http and https can be fetched, not ${url.protocol}`);
  const host = url.hostname.replace(/\.+$/, "").toLowerCase();
  if (host === "") return invalid("the URL names no host");
  const isOdd = oddity(text, url);
  return {
    type: "web",
    host,
    port: url.port,
    isPrivate: isPrivateHost(host),
    ...(!isPrivateHost(host) && addresses.some(isPrivateAddress) ? { leadsToPrivate: true } : {}),
    ...(isOdd === undefined ? {} : { isOdd }),
  };
}

function oddity(text: string, url: URL): string | undefined {
  if (url.username !== "" || url.password !== "") return "the URL carries a user name or password";
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
  if (use === "grant" && target.isPrivate && !namesPrivatePlaces(pattern)) return false;
  if (use === "grant" && /^(?:\[|[\d.]+$)/.test(target.host)) return false;
  return matchesLabels(pattern, target.host);
}

/** `*.internal` names private places; `*.example.com` does not, wherever its names lead. */
function namesPrivatePlaces(pattern: string): boolean {
  return isPrivateHost(pattern.replace(/\*/g, "x")) && pattern.includes(".");
}

function readPattern(domain: string): { readonly host: string; readonly port?: string } {
  const [, bare = domain, port] = /^(.*?)(?::(\d+))?$/.exec(domain) ?? [];
  const named = bare.replace(/\.+$/, "").toLowerCase();
  const isAddress = named.startsWith("[") || named.includes("::");
  const text = isAddress && !named.startsWith("[") ? `[${named}]` : named;
  return { host: isAddress ? readHost(text) : asciiLabels(text), ...(port === undefined ? {} : { port }) };
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

/** A leading `*.` stands for one label or more; any other star stays within its label. */
function matchesLabels(pattern: string, host: string): boolean {
  const wanted = pattern.split(".");
  const labels = host.split(".");
  if (wanted[0] === "*") {
    const rest = wanted.slice(1);
    return labels.length > rest.length && matchesEach(rest, labels.slice(labels.length - rest.length));
  }
  return wanted.length === labels.length && matchesEach(wanted, labels);
}

function matchesEach(wanted: readonly string[], labels: readonly string[]): boolean {
  return wanted.every((pattern, at) => matchesPattern(pattern, labels[at] ?? ""));
}

function invalid(reason: string): WebTarget {
  return { type: "invalid", reason };
}
