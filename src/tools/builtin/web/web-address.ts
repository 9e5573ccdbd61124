import { isIP } from "node:net";
import { shown } from "../../../foundation/json-record.ts";
import { privateReason } from "./private-reason.ts";

export type WebAddress =
  | {
      readonly type: "address";
      readonly url: URL;
      /** Somebody allowed this host although it may be private. */
      readonly mayBePrivate: boolean;
    }
  | { readonly type: "refused"; readonly reason: string };

const maxLength = 4_000;

/** Decides whether an address may be asked for, and as what. Names are judged again when they are resolved. */
export function readWebAddress(text: string, mayFetchPrivate: (host: string) => boolean): WebAddress {
  const refused = (reason: string): WebAddress => ({
    type: "refused",
    reason: `${shown(text, 200)} ${reason}`,
  });
  if (text.length > maxLength) return refused(`is longer than ${maxLength} characters.`);
  const url = URL.parse(text.trim());
  if (url === null)
    return refused("is not a complete web address; it should look like https://example.com/page.");
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return refused("is not an http or https address.");
  if (url.username !== "" || url.password !== "") {
    return refused("holds a user name or password; such addresses are not fetched.");
  }
  const host = hostOf(url);
  if (host === "") return refused("names no host.");
  if (isIP(host) === 0) url.hostname = host;
  url.hash = "";
  if (mayFetchPrivate(host)) return { type: "address", url, mayBePrivate: true };
  const reason = localName(host) ?? (isIP(host) === 0 ? undefined : privateReason(host));
  if (reason !== undefined) return refused(`${reason}; it is fetched only where a rule allows that host.`);
  if (url.port !== "") return refused(`asks for port ${url.port}; only the usual ports are fetched.`);
  url.protocol = "https:";
  return { type: "address", url, mayBePrivate: false };
}

/** The host without the brackets of IPv6 and without the dot that ends a full name. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "").replace(/\.+$/, "");
}

function localName(host: string): string | undefined {
  const isLocal = /(?:^|\.)(?:localhost|local|internal|home\.arpa)$/.test(host);
  return isLocal ? "names a host of this machine or network" : undefined;
}
