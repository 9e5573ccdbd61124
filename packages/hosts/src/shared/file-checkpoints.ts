import { createHash } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { copyFile, lstat, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isRecord, type JsonRecord, parseJsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { ToolUseBlock } from "@retinue/core/conversation/message.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import type { HookFunction } from "../../../../src/index.ts";

/** What a file held before a prompt changed it; undefined where it was not there. */
type Before = Buffer | undefined;

/** How what it held is found again: in memory, or beside the transcript. */
type Kept = () => Promise<Before>;

/** Keeps what files held before agents changed them, so that a host can take changes back. */
export interface FileCheckpoints {
  /** A prompt is worked on from here; its id names the checkpoint. */
  begin(promptId: string | undefined): void;
  /** Keeps the file that a call of any agent is about to change; it has been read when this returns. */
  keep(call: Pick<ToolUseBlock, "name" | "input">, directory: string): Promise<void>;
  /** How many files were kept for each prompt. */
  counts(): ReadonlyMap<string, number>;
  /** Puts files back as they were before the prompt; with `dryRun` reports what would change. */
  rewind(promptId: string, dryRun: boolean): Promise<RewoundFiles>;
}

/** What became of the files, or would become of them. */
export type RewoundFiles =
  | { readonly canRewind: false; readonly error: string }
  | {
      readonly canRewind: true;
      readonly filesChanged: readonly string[];
      readonly insertions: number;
      readonly deletions: number;
      /** Links that took the place of a file, and were left alone. */
      readonly skippedLinks?: number;
    };

/** Beside the transcript of a session. */
export function checkpointFolder(sessionDirectory: string): string {
  return join(sessionDirectory, "file-checkpoints");
}

/** Files that children change are kept before their calls run; those of the main agent when a call starts, by `keepFiles`. */
export function keepingHooks(checkpoints: FileCheckpoints): readonly HookFunction[] {
  return [
    {
      event: "PreToolUse",
      matcher: changingTools,
      name: "file checkpoints",
      async run({ tool_name: name, tool_input: input, agent_id: agent, cwd }) {
        if (agent !== undefined) await checkpoints.keep({ name: String(name), input }, String(cwd));
        return {};
      },
    },
  ];
}

/** Files are kept before a call of the main agent changes them; the next event is asked for after that. */
export async function keepFiles(
  checkpoints: FileCheckpoints,
  event: RunEvent,
  directory: string,
): Promise<void> {
  if (event.type === "call-started") await checkpoints.keep(event.call, directory);
}

/** Takes checkpoints along to a copy of the conversation, under the ids that its prompts have there. */
export async function copyCheckpoints(
  from: string,
  to: string,
  renewed: ReadonlyMap<string, string>,
): Promise<void> {
  const lines = readText(join(from, list))
    .split("\n")
    .flatMap((line) => {
      const record = parseJsonRecord(line);
      const promptId = renewed.get(String(record?.["promptId"]));
      return record === undefined || promptId === undefined ? [] : [{ ...record, promptId }];
    });
  if (lines.length === 0) return;
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const { blob } of lines as readonly JsonRecord[])
    if (isBlob(blob)) await copyFile(join(from, blob), join(to, blob));
  await writeFile(join(to, list), lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
}

const list = "checkpoints.jsonl";

function isBlob(name: unknown): name is string {
  return typeof name === "string" && /^[0-9a-f]{64}$/.test(name);
}

const pathMembers: ReadonlyMap<string, string> = new Map([
  ["Write", "file_path"],
  ["Edit", "file_path"],
  ["NotebookEdit", "notebook_path"],
]);

/** The tools whose calls change files. */
const changingTools = [...pathMembers.keys()].join("|");

interface Checkpoint {
  readonly promptId: string;
  readonly files: Map<string, Kept>;
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
      // Read synchronously: a listener to an event that is not waited for must have read the file when it returns.
      const before = loadNow(file);
      const blob = store()?.write({ promptId: current.promptId, file }, before);
      current.files.set(file, blob === undefined ? async () => before : () => readBlob(blob));
    },
    counts() {
      store();
      return new Map(checkpoints.map(({ promptId, files }) => [promptId, files.size]));
    },
    async rewind(promptId, dryRun) {
      store();
      const at = checkpoints.findIndex((checkpoint) => checkpoint.promptId === promptId);
      if (at === -1) return { canRewind: false, error: "No file checkpoint found for this message." };
      // What a file held before the first of these prompts counts.
      const files = new Map<string, Kept>();
      for (const checkpoint of checkpoints.slice(at))
        for (const [file, before] of checkpoint.files) if (!files.has(file)) files.set(file, before);
      return restore(files, dryRun);
    },
  };
}

/** One line for each prompt and each file; what files held is beside, by its digest. */
function openStore(folder: string) {
  const file = join(folder, list);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return {
    earlier: readEarlier(folder, file),
    /** Where what the file held is, if it was there. */
    write(line: { readonly promptId: string; readonly file?: string }, before?: Buffer): string | undefined {
      const blob = before === undefined ? undefined : createHash("sha256").update(before).digest("hex");
      if (blob !== undefined && before !== undefined)
        writeFileSync(join(folder, blob), before, { mode: 0o600 });
      appendFileSync(file, `${JSON.stringify({ ...line, blob })}\n`, {
        mode: 0o600,
      });
      return blob === undefined ? undefined : join(folder, blob);
    },
  };
}

/** Rejects where it was removed, so that no file is taken for one that was not there. */
function readBlob(blob: string): Promise<Buffer> {
  return readFile(blob);
}

/** Lines that cannot be read are left out, with what they would have kept. */
function readEarlier(folder: string, written: string): readonly Checkpoint[] {
  const found = new Map<string, Checkpoint>();
  for (const line of readText(written).split("\n")) {
    const { promptId, file, blob } = parseJsonRecord(line) ?? {};
    if (typeof promptId !== "string") continue;
    const checkpoint = found.get(promptId) ?? { promptId, files: new Map() };
    found.set(promptId, checkpoint);
    if (typeof file === "string")
      checkpoint.files.set(file, isBlob(blob) ? () => readBlob(join(folder, blob)) : async () => undefined);
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

async function restore(files: ReadonlyMap<string, Kept>, dryRun: boolean): Promise<RewoundFiles> {
  const changed: string[] = [];
  let [insertions, deletions, skippedLinks] = [0, 0, 0];
  for (const [file, kept] of files) {
    const [now, before] = [await load(file), await kept()];
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

function loadNow(file: string): Before {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
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
