import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export interface GuardOptions {
  readonly token: string;
  /** What a request may write in `Host`, in lower case: each with the port. */
  readonly hosts: readonly string[];
}

export interface GuardRefusal {
  readonly status: 401 | 403;
  readonly message: string;
}

/**
 * Why a request is not answered. Any program of this machine reaches the port, and so does any web page whose name was pointed
 * here: so host and origin must be ours, and the token must be right. Files of the package are served without the token.
 */
export function guardRequest(
  headers: IncomingHttpHeaders,
  given: { readonly token: string | null; readonly isPublic: boolean },
  { token, hosts }: GuardOptions,
): GuardRefusal | undefined {
  const host = headers.host?.toLowerCase();
  if (host === undefined || !hosts.includes(host))
    return { status: 403, message: `This server answers only to ${hosts.join(", ")}.` };
  const { origin } = headers;
  if (origin !== undefined && !hosts.some((name) => origin.toLowerCase() === `http://${name}`))
    return { status: 403, message: "This server does not answer to other web pages." };
  if (given.isPublic) return undefined;
  const bearer = /^Bearer (\S+)$/i.exec(headers.authorization ?? "")?.[1];
  const shown = bearer ?? given.token ?? "";
  if (isSame(shown, token)) return undefined;
  return {
    status: 401,
    message: "The token is missing or wrong. Open the link that `retinue studio` printed.",
  };
}

/** Takes the same time wherever two texts differ, and whatever their lengths. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
