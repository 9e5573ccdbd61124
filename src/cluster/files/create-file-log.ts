// @io
import { createHash } from "node:crypto";
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { isRecord } from "../../foundation/json-record.ts";
import { errorCode, fileError, replaceWholeFile } from "../../storage/file-error.ts";
import {
  checkName,
  type JsonValue,
  type Log,
  type LogEntry,
  type LogSummary,
  logConflict,
} from "../store.ts";

/**
 * Logs as files of lines in one folder, each with its name in the first line. The caller owns the folder, so nothing else
 * writes there and lengths can be kept in memory.
 */
export function createFileLog(folder: string, now: () => number): Log {
  const heads = new Map<string, Head>();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const file of readdirSync(folder)) {
    if (!file.endsWith(".jsonl")) continue;
    const { name, entries } = loadFile(join(folder, file));
    if (name !== undefined) heads.set(name, headOf(entries));
  }
  const pathOf = (name: string): string => join(folder, fileNameOf(name));

  return {
    async read(name, from = 0, limit) {
      const head = heads.get(name);
      if (head === undefined || from >= head.lastSeq) return [];
      const { entries } = loadFile(pathOf(name));
      const found = from < 0 ? entries.slice(from) : entries.filter(({ seq }) => seq > from);
      return limit === undefined ? found : found.slice(0, limit);
    },
    async append(name, records, expect) {
      checkName("a log", name);
      const head = heads.get(name);
      const last = head?.lastSeq ?? 0;
      if (expect !== undefined && expect !== last) throw logConflict(name, expect);
      if (records.length === 0) return last;
      const at = now();
      const lines = records.map((record, index) => JSON.stringify({ seq: last + 1 + index, at, record }));
      if (head === undefined) lines.unshift(JSON.stringify({ name }));
      appendLines(pathOf(name), lines);
      heads.set(name, { lastSeq: last + records.length, lastAt: at });
      return last + records.length;
    },
    async list(prefix, { last = false } = {}) {
      return [...heads]
        .filter(([name]) => name.startsWith(prefix))
        .map(([name, head]): LogSummary => {
          const entry = last ? loadFile(pathOf(name)).entries.at(-1) : undefined;
          return { name, ...head, ...(entry === undefined ? {} : { last: entry }) };
        })
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    async remove(name, upTo) {
      const head = heads.get(name);
      if (head === undefined) return;
      if (upTo === undefined || upTo >= head.lastSeq) {
        rmSync(pathOf(name), { force: true });
        heads.delete(name);
        return;
      }
      const kept = loadFile(pathOf(name)).entries.filter(({ seq }) => seq > upTo);
      const lines = [{ name }, ...kept].map((line) => JSON.stringify(line));
      replaceWholeFile(pathOf(name), `${lines.join("\n")}\n`);
    },
  };
}

interface Head {
  readonly lastSeq: number;
  readonly lastAt: number;
}

function headOf(entries: readonly LogEntry[]): Head {
  const last = entries.at(-1);
  return { lastSeq: last?.seq ?? 0, lastAt: last?.at ?? 0 };
}

/** Readable where the name allows it, and different also where the file system ignores case. */
function fileNameOf(name: string): string {
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 16);
  return `${name.replace(/[^\w-]+/g, "-").slice(0, 60)}.${hash}.jsonl`;
}

function appendLines(file: string, lines: readonly string[]): void {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, "a", 0o600);
    const bytes = Buffer.from(`${lines.join("\n")}\n`);
    for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written);
  } catch (error) {
    throw fileError("append to", file, error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** A last line without its end was cut off by a crash before its write was reported; it is removed. */
function loadFile(file: string): {
  readonly name: string | undefined;
  readonly entries: readonly LogEntry[];
} {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return { name: undefined, entries: [] };
    throw fileError("read", file, error);
  }
  const end = text.lastIndexOf("\n") + 1;
  if (end < text.length) truncate(file, Buffer.byteLength(text.slice(0, end)));
  const [header, ...lines] = text
    .slice(0, end)
    .split("\n")
    .filter((line) => line !== "")
    .map(parseLine);
  return { name: nameOf(header), entries: lines.flatMap((line) => toEntry(line)) };
}

function truncate(file: string, length: number): void {
  const descriptor = openSync(file, "r+");
  try {
    ftruncateSync(descriptor, length);
  } finally {
    closeSync(descriptor);
  }
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function nameOf(header: unknown): string | undefined {
  return isRecord(header) && typeof header["name"] === "string" ? header["name"] : undefined;
}

function toEntry(line: unknown): LogEntry[] {
  if (!isRecord(line) || typeof line["seq"] !== "number" || typeof line["at"] !== "number") return [];
  // It came out of JSON.parse.
  return [{ seq: line["seq"], at: line["at"], record: line["record"] as JsonValue }];
}
