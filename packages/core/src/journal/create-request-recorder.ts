// @io

import { hash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { defined } from "@retinue/base/foundation/defined.ts";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import type { RequestRecord } from "../conversation/run-event.ts";
import type { ModelRequest } from "../models/model.ts";

/** Takes down each request: a digest of all of it, and what does not change from turn to turn once, by its hash. */
export type RecordRequest = (request: ModelRequest) => RequestRecord;

/** The folder below that of a session's files. */
const folderName = "requests";

/** For all agents of a session. Never throws: a part that cannot be kept is missing in a replay, and nothing else. */
export function createRequestRecorder(directory: string): RecordRequest {
  const kept = new Set<string>();
  const digests = new WeakMap<object, string>();
  const digestOf = (value: object, keeps = false): string => {
    const known = digests.get(value);
    if (known !== undefined) return known;
    const text = JSON.stringify(value);
    const digest = shortHash(text);
    if (keeps && !kept.has(digest)) {
      kept.add(digest);
      const file = requestPartFile(directory, digest);
      try {
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        writeFileSync(file, text, { flag: "wx", mode: 0o600 });
      } catch {
        // It is there already, or the disk takes no more, which the transcript itself reports.
      }
    }
    digests.set(value, digest);
    return digest;
  };
  return (request) => {
    const { system, tools, messages, ...rest } = request;
    const parts = { system: digestOf(system, true), tools: digestOf(tools, true), ...optionsIn(rest) };
    return {
      digest: joinDigests(
        rest,
        parts,
        messages.map((message) => digestOf(message)),
      ),
      ...parts,
    };
  };
}

function optionsIn(rest: Readonly<Record<string, unknown>>): Pick<RequestRecord, "options"> {
  const options = defined(rest);
  return Object.keys(options).length === 0 ? {} : { options };
}

/** The same digest without keeping anything. */
export function digestRequest({ system, tools, messages, ...rest }: ModelRequest): RequestRecord {
  const plain = (value: unknown): string => shortHash(JSON.stringify(value));
  const parts = { system: plain(system), tools: plain(tools), ...optionsIn(rest) };
  return { digest: joinDigests(rest, parts, messages.map(plain)), ...parts };
}

function joinDigests(
  rest: Omit<ModelRequest, "system" | "tools" | "messages">,
  { system, tools }: Omit<RequestRecord, "digest">,
  messages: readonly string[],
): string {
  return shortHash(`${JSON.stringify(rest)} ${system} ${tools}${messages.join("")}`);
}

/** 128 bits: two requests with the same digest are the same. */
const digestLength = 32;

function shortHash(text: string): string {
  return hash("sha256", text, "hex").slice(0, digestLength);
}

function requestPartFile(directory: string, digest: string): string {
  return join(directory, folderName, `${digest}.json`);
}

/** Reads a system prompt or list of tools by its hash; undefined where it was not kept or is not what was written. */
export function loadRequestPart(directory: string, digest: string): unknown {
  if (!/^[0-9a-f]{32}$/.test(digest)) return undefined;
  try {
    const text = readFileSync(requestPartFile(directory, digest), "utf8");
    return shortHash(text) === digest ? JSON.parse(text) : undefined;
  } catch (error) {
    if (errorCode(error) === "ENOENT" || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
