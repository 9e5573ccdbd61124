import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type ActRequest, toActRequest } from "@retinue/core/kernel/live/session-update.ts";

export interface GuardOptions {
  readonly token: string;
  /** What the browser was given for the token. */
  readonly cookie: { readonly name: string; readonly value: string };
  /** What a request may write in `Host`, in lower case: each with the port. */
  readonly hosts: readonly string[];
}

export interface GuardRefusal {
  readonly status: 401 | 403;
  readonly message: string;
}

/**
 * Why a request is not answered. Any program of this machine reaches the port, and so does any web page whose name was pointed
 * here: so host and origin must be ours, and the token must be right, or the cookie that was given for it, which only our own
 * page may send. Files of the package are served without either.
 */
export function guardRequest(
  headers: IncomingHttpHeaders,
  { isPublic }: { readonly isPublic: boolean },
  { token, cookie, hosts }: GuardOptions,
): GuardRefusal | undefined {
  const host = headers.host?.toLowerCase();
  if (host === undefined || !hosts.includes(host))
    return { status: 403, message: `This server answers only to ${hosts.join(", ")}.` };
  const { origin } = headers;
  if (origin !== undefined && !hosts.some((name) => origin.toLowerCase() === `http://${name}`))
    return { status: 403, message: "This server does not answer to other web pages." };
  if (isPublic) return undefined;
  const bearer = /^Bearer (\S+)$/i.exec(headers.authorization ?? "")?.[1];
  if (bearer !== undefined && isSame(bearer, token)) return undefined;
  const site = headers["sec-fetch-site"];
  if (!isSame(cookieOf(headers, cookie.name), cookie.value)) return missingToken;
  if (site === undefined || site === "same-origin" || site === "none") return undefined;
  return { status: 403, message: "This server does not answer to other web pages." };
}

export const missingToken: GuardRefusal = {
  status: 401,
  message: "The token is missing or wrong. Open the link that `retinue studio` printed.",
};

function cookieOf(headers: IncomingHttpHeaders, name: string): string {
  const pairs = (headers.cookie ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
}

/** Takes the same time wherever two texts differ, and whatever their lengths. */
export function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

const maxBytes = 256 * 1024;

/** What the page wants done. The type of the body keeps plain forms of other pages out. */
export async function readActRequest(request: IncomingMessage): Promise<ActRequest> {
  return toActRequest(await readJson(request));
}

/** The server that a user wants to log in at. */
export async function readLoginRequest(request: IncomingMessage): Promise<string> {
  const value = await readJson(request);
  const server = isRecord(value) ? value["server"] : undefined;
  if (typeof server !== "string" || server === "") throw misuse("A login needs the name of its server.");
  return server;
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  if (!/^application\/json\b/i.test(request.headers["content-type"] ?? ""))
    throw misuse("Requests must be sent as application/json.");
  return parseJson(await readBody(request));
}

function misuse(message: string): RetinueError {
  return new RetinueError("misuse", message);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > maxBytes) throw misuse(`An act may have at most ${maxBytes} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
