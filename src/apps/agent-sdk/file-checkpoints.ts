import { lstat, readFile, rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { ToolUseBlock } from "../../conversation/message.ts";
import { isRecord, type JsonRecord } from "../../foundation/json-record.ts";

/** What a file held before a prompt changed it; undefined where it was not there. */
type Before = Buffer | undefined;

/** Keeps what files held before the main agent changed them, so that a host can take changes back. */
export interface FileCheckpoints {
  /** A prompt is worked on from here; its id names the checkpoint. */
  begin(promptId: string | undefined): void;
  /** Keeps the file that a call is about to change. */
  keep(call: ToolUseBlock, directory: string): Promise<void>;
  /** Puts files back as they were before the prompt; with `dryRun` reports what would change. */
  rewind(promptId: string, dryRun: boolean): Promise<JsonRecord>;
}

const pathMembers: ReadonlyMap<string, string> = new Map([
  ["Write", "file_path"],
  ["Edit", "file_path"],
  ["NotebookEdit", "notebook_path"],
]);

export function createFileCheckpoints(): FileCheckpoints {
  const checkpoints: { readonly promptId: string; readonly files: Map<string, Before> }[] = [];
  return {
    begin(promptId) {
      if (promptId !== undefined) checkpoints.push({ promptId, files: new Map() });
    },
    async keep({ name, input }, directory) {
      const member = pathMembers.get(name);
      const current = checkpoints.at(-1);
      const written = member !== undefined && isRecord(input) ? input[member] : undefined;
      if (current === undefined || typeof written !== "string") return;
      const file = resolve(directory, written);
      if (!current.files.has(file)) current.files.set(file, await load(file));
    },
    async rewind(promptId, dryRun) {
      const at = checkpoints.findIndex((checkpoint) => checkpoint.promptId === promptId);
      if (at === -1) return { canRewind: false, error: "No file checkpoint found for this message." };
      // What a file held before the first of these prompts counts.
      const files = new Map<string, Before>();
      for (const checkpoint of checkpoints.slice(at))
        for (const [file, before] of checkpoint.files) if (!files.has(file)) files.set(file, before);
      return restore(files, dryRun);
    },
  };
}

async function restore(files: ReadonlyMap<string, Before>, dryRun: boolean): Promise<JsonRecord> {
  const changed: string[] = [];
  let [insertions, deletions, skippedLinks] = [0, 0, 0];
  for (const [file, before] of files) {
    const now = await load(file);
    if (now === before || (now !== undefined && before !== undefined && now.equals(before))) continue;
    // A link that took the file's place could lead anywhere.
    if (!dryRun && !(await isPlain(file))) {
      skippedLinks += 1;
      continue;
    }
    changed.push(file);
    insertions += addedLines(now, before);
    deletions += addedLines(before, now);
    if (dryRun) continue;
    if (before === undefined) await rm(file, { force: true });
    else await writeFile(file, before);
  }
  return {
    canRewind: true,
    filesChanged: changed,
    insertions,
    deletions,
    ...(skippedLinks > 0 ? { skippedLinks } : {}),
  };
}

async function load(file: string): Promise<Before> {
  return readFile(file).catch(() => undefined);
}

async function isPlain(file: string): Promise<boolean> {
  const stats = await lstat(file).catch(() => undefined);
  return stats === undefined || (stats.isFile() && stats.nlink === 1);
}

/** Lines of the second that the first has not, counted with repeats. */
function addedLines(from: Before, to: Before): number {
  const left = new Map<string, number>();
  for (const line of linesOf(from)) left.set(line, (left.get(line) ?? 0) + 1);
  return linesOf(to).filter((line) => {
    const count = left.get(line) ?? 0;
    left.set(line, count - 1);
    return count <= 0;
  }).length;
}

function linesOf(content: Before): readonly string[] {
  const text = content?.toString("utf8") ?? "";
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}
