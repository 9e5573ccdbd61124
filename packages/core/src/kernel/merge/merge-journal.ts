import { join } from "node:path";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { openAppendLog } from "@retinue/base/storage/append-log.ts";
import type { Durability } from "@retinue/base/storage/durability.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { MergeEvent, MergeStep } from "../../protocol/merge-step.ts";

/** The steps of the merges of one session, on disk. */
export interface MergeJournal extends Disposable {
  /** Returns when the step is written down. */
  readonly write: (event: MergeEvent) => Promise<void>;
}

/** Beside the children whose changes are merged. */
export function mergeJournalFile(transcripts: string, sessionId: string): string {
  return join(sessionFiles(transcripts, sessionId).directory, "merge.jsonl");
}

export function openMergeJournal(file: string, durability: Durability): MergeJournal {
  const log = openAppendLog(file, { durability });
  return {
    async write(event) {
      log.append([JSON.stringify(event)]);
      await log.sync();
    },
    [Symbol.dispose]: () => log.close(),
  };
}

/** The steps so far; none where there is no file. What cannot be read is left out. */
export async function readMergeSteps(file: string): Promise<readonly MergeStep[]> {
  const { values } = await readLines(file).catch(() => ({ values: [] as readonly JsonRecord[] }));
  return values.filter(isStep).map((value) => value as unknown as MergeStep);
}

type Kind = "text" | "texts" | "list";

/** The fields that the folds read, by the type of the step. */
const fields: Readonly<Record<MergeStep["type"], Readonly<Record<string, Kind>>>> = {
  started: { sessionId: "text", into: "text", from: "text", checks: "texts", children: "list" },
  rebuilding: { from: "text", to: "text" },
  rebuilt: { from: "text", to: "text" },
  taken: { agent: "text", tip: "text", base: "text", files: "texts" },
  conflicted: { agent: "text", tip: "text", files: "texts" },
  resolving: { agent: "text", tip: "text", resolver: "text" },
  resolved: { agent: "text", tip: "text", onto: "text", resolver: "text" },
  checking: { agent: "text", tip: "text", commit: "text" },
  checked: { agent: "text", tip: "text", checks: "list" },
  advancing: { agent: "text", tip: "text", from: "text", to: "text" },
  advanced: { agent: "text", tip: "text", from: "text", to: "text" },
  empty: { agent: "text", tip: "text", reason: "text" },
  left: { agent: "text", because: "text", reason: "text", commands: "texts" },
  applying: { branch: "text", from: "text", to: "text" },
  applied: { branch: "text", from: "text", to: "text" },
  "not-applied": { reason: "text", commands: "texts" },
  removed: { agent: "text", tip: "text", branch: "text" },
  discarded: { agent: "text", tip: "text", branch: "text" },
  ended: { status: "text" },
};

function isStep(value: JsonRecord): boolean {
  const { type } = value;
  if (typeof type !== "string" || !Object.hasOwn(fields, type)) return false;
  // The type is one of the table, as just checked.
  const wanted = fields[type as MergeStep["type"]];
  return Object.entries(wanted).every(([name, kind]) => isKind(value[name], kind));
}

function isKind(value: unknown, kind: Kind): boolean {
  if (kind === "text") return typeof value === "string";
  if (!Array.isArray(value)) return false;
  return kind === "texts"
    ? value.every((entry) => typeof entry === "string")
    : value.every((entry) => isRecord(entry));
}
