// @io
import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import { readPastRun } from "../journal/read-past-run.ts";
import { isAgentId, isSessionId, sessionFiles } from "../journal/session-files.ts";
import type { PastRun } from "../planning/predict-run.ts";
import { readChildMeta } from "./child-meta.ts";

/** The newest recorded runs of agent types, from transcripts on this machine. */
export interface PastRuns {
  /** `everywhere`: also those of other projects, for definitions that are the same there. */
  of(agentType: string, options?: { readonly everywhere?: boolean }): Promise<readonly PastRun[]>;
}

/** So many runs of one agent type count; older ones say less of the next. */
const maxRuns = 40;
/** So many sessions of a folder, and folders, are looked into at most, the newest first. */
const maxSessions = 200;
const maxFolders = 20;
/** And so many children, whatever their type. */
const maxChildren = 1_000;
/** The ending of a run is in its last lines; with a long receipt these are long too. */
const tailBytes = [64 * 1024, 1024 * 1024] as const;

/** Keeps what it has read, as long as the files are the same. */
export function createPastRuns(transcripts: string): PastRuns {
  const runs = new Map<string, { readonly face: string; readonly run: PastRun | undefined }>();
  const types = new Map<string, string>();

  async function typeOf(meta: string): Promise<string | undefined> {
    const known = types.get(meta);
    if (known !== undefined) return known;
    const text = await readFile(meta, "utf8").catch(() => undefined);
    const type = text === undefined ? undefined : readChildMeta(text)?.agentType;
    if (type !== undefined) remember(types, meta, type);
    return type;
  }

  async function runOf(transcript: string): Promise<PastRun | undefined> {
    const status = await stat(transcript).catch(() => undefined);
    if (status?.isFile() !== true) return undefined;
    const face = `${status.size} ${status.mtimeMs}`;
    const known = runs.get(transcript);
    if (known?.face === face) return known.run;
    const run = await findFinishedRun(transcript);
    remember(runs, transcript, { face, run });
    return run;
  }

  async function collect(
    folder: string,
    agentType: string,
    { found, left }: { readonly found: PastRun[]; readonly left: { children: number } },
  ): Promise<void> {
    for (const sessionId of await newestSessions(folder)) {
      const { subagents } = sessionFiles(folder, sessionId);
      const names = await readdir(subagents).catch(() => []);
      const ids = names.flatMap((name) => /^agent-(.+)\.meta\.json$/.exec(name)?.[1] ?? []).filter(isAgentId);
      const alike: string[] = [];
      for (const id of ids.slice(0, left.children)) {
        const path = join(subagents, `agent-${id}`);
        if ((await typeOf(`${path}.meta.json`)) === agentType) alike.push(`${path}.jsonl`);
      }
      left.children -= ids.length;
      for (const transcript of await newestFirst(alike)) {
        const run = await runOf(transcript);
        if (run !== undefined) found.push(run);
        if (found.length >= maxRuns) return;
      }
      if (left.children <= 0) return;
    }
  }

  return {
    async of(agentType, { everywhere = false } = {}) {
      const found: PastRun[] = [];
      const left = { children: maxChildren };
      await collect(transcripts, agentType, { found, left });
      if (!everywhere || found.length >= maxRuns) return found;
      for (const folder of await otherFolders(transcripts)) await collect(folder, agentType, { found, left });
      return found;
    },
  };
}

async function findFinishedRun(transcript: string): Promise<PastRun | undefined> {
  for (const maxBytes of tailBytes) {
    const lines = await readLines(transcript, { maxBytes }).catch(() => undefined);
    const run = lines?.values.reduceRight<PastRun | undefined>(
      (found, record) => found ?? readFinishedRun(record),
      undefined,
    );
    if (run !== undefined || lines?.skippedBytes === 0) return run;
  }
  return undefined;
}

/** By the time of their last change. */
async function newestFirst(files: readonly string[]): Promise<readonly string[]> {
  const dated = await Promise.all(
    files.map(async (file) => ({
      file,
      modified: (await stat(file).catch(() => undefined))?.mtimeMs ?? 0,
    })),
  );
  return dated.sort((a, b) => b.modified - a.modified || (a.file < b.file ? -1 : 1)).map(({ file }) => file);
}

const maxRemembered = 5_000;

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= maxRemembered) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}

/** The sessions with children, the newest first. */
async function newestSessions(transcripts: string): Promise<readonly string[]> {
  const ids = (await readdir(transcripts).catch(() => [])).filter(isSessionId);
  const dated = await datesOf(ids, (id) => sessionFiles(transcripts, id).subagents);
  return dated.slice(0, maxSessions);
}

async function otherFolders(transcripts: string): Promise<readonly string[]> {
  const all = dirname(transcripts);
  const names = await readdir(all).catch(() => []);
  const folders = names.map((name) => join(all, name)).filter((folder) => folder !== transcripts);
  return (await datesOf(folders, (folder) => folder)).slice(0, maxFolders);
}

/** Those that are folders, the newest first. */
async function datesOf(
  names: readonly string[],
  place: (name: string) => string,
): Promise<readonly string[]> {
  const looked = await Promise.all(
    names.map(async (name) => ({ name, status: await stat(place(name)).catch(() => undefined) })),
  );
  return looked
    .flatMap(({ name, status }) =>
      status?.isDirectory() === true ? [{ name, modified: status.mtimeMs }] : [],
    )
    .sort((a, b) => b.modified - a.modified || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}

/** A run that failed or was stopped does not say what the work takes. */
function readFinishedRun(record: JsonRecord): PastRun | undefined {
  const run = readPastRun(record);
  if (run === undefined || (run.status !== "completed" && run.status !== "partial")) return undefined;
  return run;
}
