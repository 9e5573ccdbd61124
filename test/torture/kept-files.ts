import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";

/** The transcripts of a session and its children, as files. */
export function listTranscripts(main: string): readonly string[] {
  const folder = join(main.replace(/\.jsonl$/, ""), "subagents");
  const children = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".jsonl")) : [];
  return [...(existsSync(main) ? [main] : []), ...children.sort().map((name) => join(folder, name))];
}

/** What is beside the transcripts and should be gone once everything has ended: locks, marks, half-written files. */
export function listLeftovers(main: string): readonly string[] {
  const folder = join(main.replace(/\.jsonl$/, ""), "subagents");
  const beside = existsSync(`${main}.lock`) ? [`${main}.lock`] : [];
  // A lock that was being made when the kill came belongs to no process, and another process may be making one just now.
  const kept = /^agent-\w+\.(jsonl|meta\.json|jsonl(\.lock)+\.\w+\.tmp)$/;
  const names = (existsSync(folder) ? readdirSync(folder) : []).filter((name) => !kept.test(name));
  // A child of which not one line is whole never was, and nothing looks for it.
  const isUnowned = (name: string): boolean => {
    const transcript = join(folder, name.replace(/\.jsonl\.lock$/, ".jsonl"));
    return (
      name.endsWith(".lock") && existsSync(transcript) && readTranscript(transcript).records.length === 0
    );
  };
  return [...beside, ...names.filter((name) => !isUnowned(name))];
}

/** The file that was written to last; a crash can only have torn the line that was being written. */
export function newestOf(files: readonly string[]): string | undefined {
  const times = files.map((file) => ({ file, at: statSync(file).mtimeMs }));
  return times.sort((a, b) => b.at - a.at)[0]?.file;
}

export interface ReadFile {
  readonly records: readonly JsonRecord[];
  readonly unreadable: number;
  readonly isTorn: boolean;
}

/** Throws when a line was doubled, or a result was written twice. */
export function readTranscript(file: string): ReadFile {
  const lines = readFileSync(file, "utf8").split("\n");
  const isTorn = lines.pop() !== "";
  const own = lines.filter((line) => parse(line) !== undefined);
  const records = own.flatMap((line): JsonRecord[] => parse(line) ?? []);
  // Each process that opens a session writes its options down.
  refuseTwice(
    own.filter((line) => parse(line)?.[0]?.["type"] !== "retinue-options"),
    file,
    "line",
  );
  refuseTwice(
    records.flatMap(({ uuid }) => (typeof uuid === "string" ? [uuid] : [])),
    file,
    "uuid",
  );
  refuseTwice(records.flatMap(resultIds), file, "result");
  return { records, unreadable: lines.length - own.length, isTorn };
}

/** Throws when a file does not begin with what it held before. */
export function createKeeper(): { check(files: readonly string[]): void; forget(file: string): void } {
  const seen = new Map<string, Buffer>();
  return {
    check(files) {
      for (const file of seen.keys()) if (!files.includes(file)) throw new Error(`${file} is gone.`);
      for (const file of files) {
        const now = readFileSync(file);
        const before = seen.get(file);
        if (before !== undefined && !now.subarray(0, before.length).equals(before))
          throw new Error(`Lines of ${file} were lost or changed.`);
        seen.set(file, now);
      }
    },
    forget: (file) => void seen.delete(file),
  };
}

function parse(line: string): JsonRecord[] | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? [value] : undefined;
  } catch {
    return undefined;
  }
}

function refuseTwice(values: readonly string[], file: string, what: string): void {
  const twice = values.find((value, index) => values.indexOf(value) !== index);
  if (twice !== undefined) throw new Error(`In ${file} a ${what} appears twice: ${twice.slice(0, 200)}`);
}

function resultIds({ type, message }: JsonRecord): readonly string[] {
  if (type !== "user" || !isRecord(message) || !Array.isArray(message.content)) return [];
  return message.content.flatMap((block: unknown) =>
    isRecord(block) && block.type === "tool_result" ? [String(block.tool_use_id)] : [],
  );
}
