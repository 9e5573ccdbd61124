import { createHash } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { lstat, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isRecord, type JsonRecord, parseJsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { ToolUseBlock } from "@retinue/core/conversation/message.ts";

/** What a file held before a prompt changed it; undefined where it was not there. */
type Before = Buffer | undefined;

/** Keeps what files held before agents changed them, so that a host can take changes back. */
export interface FileCheckpoints {
  /** A prompt is worked on from here; its id names the checkpoint. */
  begin(promptId: string | undefined): void;
  /** Keeps the file that a call of any agent is about to change. */
  keep(call: Pick<ToolUseBlock, "name" | "input">, directory: string): Promise<void>;
  /** Puts files back as they were before the prompt; with `dryRun` reports what would change. */
  rewind(promptId: string, dryRun: boolean): Promise<JsonRecord>;
}

const pathMembers: ReadonlyMap<string, string> = new Map([
  ["Write", "file_path"],
  ["Edit", "file_path"],
  ["NotebookEdit", "notebook_path"],
]);

/** The tools whose calls change files. */
export const changingTools = [...pathMembers.keys()].join("|");

interface Checkpoint {
  readonly promptId: string;
  readonly files: Map<string, Before>;
}

/** `folder` is where they outlive the process; undefined where nothing is written down. */
export function createFileCheckpoints(folder: () => string | undefined): FileCheckpoints {
  const checkpoints: Checkpoint[] = [];
  let stored: ReturnType<typeof openStore> | undefined;
  const store = () => {
    const place = folder();
    if (stored !== undefined || place === undefined) return stored;
    stored = openStore(place);
    checkpoints.unshift(...stored.earlier);
    return stored;
  };
  return {
    begin(promptId) {
      if (promptId === undefined) return;
      checkpoints.push({ promptId, files: new Map() });
      store()?.write({ promptId });
    },
    async keep({ name, input }, directory) {
      const member = pathMembers.get(name);
      const current = checkpoints.at(-1);
      const written = member !== undefined && isRecord(input) ? input[member] : undefined;
      if (current === undefined || typeof written !== "string") return;
      const file = resolve(directory, written);
      if (current.files.has(file)) return;
      const before = await load(file);
      if (current.files.has(file)) return;
      current.files.set(file, before);
      store()?.write({ promptId: current.promptId, file }, before);
    },
    async rewind(promptId, dryRun) {
      store();
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

/** One line for each prompt and each file; what files held is beside, by its digest. */
function openStore(folder: string) {
  const list = join(folder, "checkpoints.jsonl");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return {
    earlier: readEarlier(folder, list),
    write(line: { readonly promptId: string; readonly file?: string }, before?: Buffer): void {
      const blob = before === undefined ? undefined : createHash("sha256").update(before).digest("hex");
      if (blob !== undefined && before !== undefined)
        writeFileSync(join(folder, blob), before, { mode: 0o600 });
      appendFileSync(list, `${JSON.stringify({ ...line, ...(blob === undefined ? {} : { blob }) })}\n`, {
        mode: 0o600,
      });
    },
  };
}

/** Lines that cannot be read are left out, with what they would have kept. */
function readEarlier(folder: string, list: string): readonly Checkpoint[] {
  const found = new Map<string, Checkpoint>();
  for (const line of readText(list).split("\n")) {
    const { promptId, file, blob } = parseJsonRecord(line) ?? {};
    if (typeof promptId !== "string") continue;
    const checkpoint = found.get(promptId) ?? { promptId, files: new Map() };
    found.set(promptId, checkpoint);
    const isNamed = typeof blob === "string" && /^[0-9a-f]{64}$/.test(blob);
    if (typeof file === "string")
      checkpoint.files.set(file, isNamed ? readFileSync(join(folder, blob)) : undefined);
  }
  return [...found.values()];
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
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
