import { createHash, timingSafeEqual } from "node:crypto";

export interface HttpRefusal {
  readonly status: 401 | 403;
  readonly message: string;
}

export interface GuardedHeaders {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
  readonly authorization?: string | undefined;
}

/**
 * Why a request is not served. Loopback is no authentication: any program of this machine reaches the port, and any web
 * page whose name was pointed here (DNS rebinding). So the names must be ours, and the token must be right.
 */
export function refuseHttp(
  { host, origin, authorization }: GuardedHeaders,
  { port, token }: { readonly port: number; readonly token: string },
): HttpRefusal | undefined {
  const names = [`127.0.0.1:${port}`, `localhost:${port}`];
  if (host === undefined || !names.includes(host.toLowerCase())) {
    return { status: 403, message: `This server answers only to the names ${names.join(" and ")}.` };
  }
  if (origin !== undefined && !names.some((name) => origin === `http://${name}`)) {
    return { status: 403, message: "This server does not answer to web pages." };
  }
  const given = /^Bearer ([^\s]+)$/i.exec(authorization ?? "")?.[1];
  if (given !== undefined && isSame(given, token)) return undefined;
  return {
    status: 401,
    message: "The token is missing or wrong. Send the header `Authorization: Bearer <token>`.",
  };
}

/** Takes the same time wherever two texts differ, and whatever their lengths. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
