import { lookup as resolveName } from "node:dns/promises";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { LookupFunction } from "node:net";
import { promisify } from "node:util";
import { brotliDecompress, constants, gunzip, inflate, inflateRaw } from "node:zlib";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { privateReason } from "./private-reason.ts";

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

export type ResolveHost = (host: string) => Promise<readonly ResolvedAddress[]>;

const resolveBySystem: ResolveHost = (host) => resolveName(host, { all: true });

export interface PageRequest {
  readonly url: URL;
  readonly mayBePrivate: boolean;
  /** How names are looked up; absent means by the system. */
  readonly resolve?: ResolveHost;
  readonly signal: AbortSignal;
  /** For the head of the answer, and once more for its body. */
  readonly limitMs: number;
  /** For the body as it travels, and once more as it is. */
  readonly maxBytes: number;
}

export interface PageAnswer {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  readonly body: () => Promise<Buffer>;
  readonly discard: () => void;
}

/** Asks for one page, without following anything. The address that was checked is the one that is dialled. */
export async function requestPage(request: PageRequest): Promise<PageAnswer> {
  const { url, signal, limitMs, maxBytes } = request;
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  const answered = Promise.withResolvers<IncomingMessage>();
  const outgoing = send(url, {
    agent: false,
    headers,
    signal,
    lookup: checkedLookup(request),
  });
  outgoing.on("error", answered.reject).on("response", answered.resolve).end();
  const late = () =>
    outgoing.destroy(new RetinueError("page-late", `it did not answer within ${limitMs} ms`));
  const timer = setTimeout(late, limitMs);
  const incoming = await answered.promise.finally(() => clearTimeout(timer));
  incoming.on("error", () => undefined);
  return {
    status: incoming.statusCode ?? 0,
    header: (name) => {
      const value = incoming.headers[name];
      return Array.isArray(value) ? value[0] : value;
    },
    body: async () => {
      const declared = Number(incoming.headers["content-length"] ?? 0);
      if (declared > maxBytes) {
        incoming.destroy();
        throw tooLarge(maxBytes);
      }
      const late = () =>
        incoming.destroy(new RetinueError("page-late", `its body took longer than ${limitMs} ms`));
      const timer = setTimeout(late, limitMs);
      const chunks: Buffer[] = [];
      let size = 0;
      try {
        for await (const chunk of incoming) {
          // Without an encoding set, a body always comes as buffers.
          const bytes = chunk as Buffer;
          size += bytes.length;
          if (size > maxBytes) throw tooLarge(maxBytes);
          chunks.push(bytes);
        }
      } finally {
        clearTimeout(timer);
        incoming.destroy();
      }
      return unpack(Buffer.concat(chunks), incoming.headers["content-encoding"], maxBytes);
    },
    discard: () => void outgoing.destroy(),
  };
}

const headers = {
  "user-agent": "Mozilla/5.0 (compatible; Retinue)",
  accept: "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1",
  "accept-encoding": "gzip, br, deflate",
  "accept-language": "en, *;q=0.5",
};

function checkedLookup({ mayBePrivate, resolve = resolveBySystem }: PageRequest): LookupFunction {
  return (host, options, callback) => {
    resolve(host)
      .then((found) => {
        const [first] = found;
        if (first === undefined) throw new RetinueError("host-unknown", `${host} has no address`);
        const addresses = found.map(({ address, family }) => ({ address, family }));
        const refused = mayBePrivate ? undefined : addresses.find(({ address }) => privateReason(address));
        if (refused !== undefined) {
          const reason = `${host} leads to ${refused.address}, which ${privateReason(refused.address)}`;
          throw new RetinueError(
            "address-private",
            `${reason}; it is fetched only where a rule allows that host`,
          );
        }
        if (options.all === true) callback(null, addresses);
        else callback(null, first.address, first.family);
      })
      .catch((error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), ""));
  };
}

function tooLarge(maxBytes: number): RetinueError {
  return new RetinueError("page-too-large", `it is larger than ${maxBytes} bytes`);
}

async function unpack(body: Buffer, encoding: string | undefined, maxBytes: number): Promise<Buffer> {
  const name = (encoding ?? "identity").trim().toLowerCase();
  if (name === "identity" || name === "" || body.length === 0) return body;
  const options = { maxOutputLength: maxBytes };
  // What a cut stream still holds is better than nothing.
  const tolerant = { ...options, finishFlush: constants.Z_SYNC_FLUSH };
  try {
    if (name === "gzip" || name === "x-gzip") return await promisify(gunzip)(body, tolerant);
    if (name === "br") return await promisify(brotliDecompress)(body, options);
    if (name === "deflate") {
      const hasHeader = ((body[0] ?? 0) & 0x0f) === 8;
      return await promisify(hasHeader ? inflate : inflateRaw)(body, tolerant);
    }
  } catch (error) {
    const isBomb = error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
    throw isBomb
      ? tooLarge(maxBytes)
      : new RetinueError("page-broken", `its ${name} body is broken`, { cause: error });
  }
  throw new RetinueError(
    "page-encoding",
    `its body is encoded as ${JSON.stringify(name.slice(0, 40))}, which is not supported`,
  );
}
