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
import { errorCode, fileError } from "@retinue/base/foundation/file-error.ts";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { version } from "@retinue/base/foundation/version.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { thisProcess } from "@retinue/base/storage/process-identity.ts";
import {
  type Bus,
  checkName,
  type JsonValue,
  type Log,
  type LogEntry,
  type LogSummary,
  logConflict,
  type Store,
} from "../store.ts";
import { createFileEngine } from "./file-engine.ts";

export interface FileStoreOptions {
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * A store in a folder of this machine, for one process at a time: files have no fence between two writers, so a lock keeps
 * the second one out.
 */
export async function openFileStore(
  folder: string,
  { now = Date.now }: FileStoreOptions = {},
): Promise<Store> {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw fileError("make the folder", folder, error);
  }
  const answer = takeOwnerLock(join(folder, "store"), { now });
  if (answer.type === "held") throw storeInUse(folder, answer.by?.pid);
  try {
    const { machine, pid } = thisProcess();
    const identity = { machine: machine.split(" ")[0] ?? machine, pid, version };
    const log = createFileLog(join(folder, "logs"), now);
    const engine = await createFileEngine({ log: createFileLog(join(folder, "engine"), now), now, identity });
    let isClosed = false;
    const close = async (): Promise<void> => {
      if (isClosed) return;
      isClosed = true;
      await engine.close();
      answer.lock.release();
    };
    return { label: folder, log, engine, bus: createLocalBus(), close, [Symbol.asyncDispose]: close };
  } catch (error) {
    answer.lock.release();
    throw error;
  }
}

function storeInUse(folder: string, pid: number | undefined): RetinueError {
  const who = pid === undefined ? "another process" : `process ${pid}`;
  return new RetinueError(
    "store-in-use",
    `The store in ${folder} is in use by ${who}, and only one process may use it at a time.`,
    {
      advice: "End that process first, or use a PostgreSQL store, which any number of processes can share.",
    },
  );
}

/** Events within this process. */
function createLocalBus(): Bus {
  const topics = new Map<string, Set<(event: JsonValue) => void>>();
  return {
    publish(topic, event) {
      const text = JSON.stringify(event);
      // Each listener gets a copy of its own, later, as it would from another process.
      for (const listener of topics.get(topic) ?? [])
        queueMicrotask(() => {
          if (topics.get(topic)?.has(listener)) listener(JSON.parse(text));
        });
    },
    async subscribe(topic, listener) {
      const listeners = topics.get(topic) ?? new Set();
      // A function that subscribes twice is called twice.
      const own = (event: JsonValue): void => listener(event);
      topics.set(topic, listeners.add(own));
      return {
        close() {
          listeners.delete(own);
          if (listeners.size === 0 && topics.get(topic) === listeners) topics.delete(topic);
        },
      };
    },
  };
}

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
      const file = pathOf(name);
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
  if (end < text.length) {
    const length = Buffer.byteLength(text.slice(0, end));
    const descriptor = openSync(file, "r+");
    try {
      ftruncateSync(descriptor, length);
    } finally {
      closeSync(descriptor);
    }
  }
  const [header, ...lines] = text
    .slice(0, end)
    .split("\n")
    .filter((line) => line !== "")
    .map(parseJson);
  return { name: nameOf(header), entries: lines.flatMap((line) => toEntry(line)) };
}

function nameOf(header: unknown): string | undefined {
  return isRecord(header) && typeof header["name"] === "string" ? header["name"] : undefined;
}

function toEntry(line: unknown): LogEntry[] {
  if (!isRecord(line) || typeof line["seq"] !== "number" || typeof line["at"] !== "number") return [];
  // It came out of JSON.parse.
  return [{ seq: line["seq"], at: line["at"], record: line["record"] as JsonValue }];
}
