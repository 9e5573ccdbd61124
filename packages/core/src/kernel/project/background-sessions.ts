// @io
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { spawnProcess, treeVariable } from "@retinue/base/foundation/spawn-process.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { withFileLock } from "@retinue/base/storage/owner-lock.ts";
import {
  identifyProcess,
  livenessOf,
  type ProcessIdentity,
  thisProcess,
  toIdentity,
} from "@retinue/base/storage/process-identity.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import { runOwnGitNow } from "@retinue/gate/git/run-own-git.ts";
import { mainAgentId } from "../../conversation/agent-event.ts";
import { isSessionId, sessionFiles } from "../../journal/session-files.ts";
import { type FoundTask, findTasks } from "../../tasks/find-tasks.ts";
import { foldTranscript } from "../../tasks/transcript-task.ts";
import { controlFiles, leaveOp } from "../../tasks/watch-control.ts";
import { readApprovals } from "../approvals/find-approvals.ts";

/** A session that runs detached from any terminal, as it was started. */
interface BackgroundRecord {
  /** The beginning of the session's id. */
  readonly id: string;
  readonly sessionId: string;
  readonly name: string;
  /** Where it was started. */
  readonly cwd: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly process: ProcessIdentity;
  /** It works in a git worktree of its own. */
  readonly worktree: boolean;
}

/** Its state: by its process, its journal and its inbox. `starting`: nothing is in the journal yet. */
export type BackgroundState =
  | "starting"
  | "working"
  | "waiting"
  | "waiting-for-quota"
  | "completed"
  | "partial"
  | "failed"
  | "stopped"
  | "interrupted";

export interface BackgroundSession extends BackgroundRecord {
  readonly state: BackgroundState;
  readonly isRunning: boolean;
  /** Set while it waits for a new quota. */
  readonly waitingForQuota?: { readonly provider: string; readonly until: number };
  /** The journal; absent as long as there is none. */
  readonly transcript?: string;
  /** The folder of the journal. */
  readonly transcripts?: string;
  /** Where it works, by its journal. */
  readonly workingFolder: string;
  /** What the process wrote. */
  readonly output: string;
  /** Its child agents. */
  readonly agents: readonly FoundTask[];
}

export interface StartBackgroundOptions {
  readonly sessionId: string;
  readonly name: string;
  readonly cwd: string;
  readonly worktree: boolean;
  readonly program: { readonly file: string; readonly arguments: readonly string[] };
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** What was piped in. */
  readonly input?: string | undefined;
}

/** The sessions in the background of all folders of a user. */
export interface BackgroundSessions {
  start(options: StartBackgroundOptions): Promise<{ readonly id: string; readonly output: string }>;
  /** Those that run first, then the newest. */
  list(): Promise<readonly BackgroundSession[]>;
  /** One, by id, the beginning of it, or name; undefined where there is none. */
  find(written: string): Promise<BackgroundSession | undefined>;
  /** Ends one; resolves when its process has ended. */
  stop(session: BackgroundSession, options: { readonly signal: AbortSignal }): Promise<BackgroundSession>;
  /** Forgets one that has ended, with its output and its worktree, where that is unchanged; says what was kept. */
  remove(session: BackgroundSession): readonly string[];
}

export function openBackgroundSessions({
  configDirectory,
  projects,
}: {
  readonly configDirectory: string;
  readonly projects: string;
}): BackgroundSessions {
  const folder = join(configDirectory, "background");
  const fileOf = (id: string, ending: string): string => join(folder, `${id}.${ending}`);
  const list = async (): Promise<readonly BackgroundSession[]> => {
    const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(".json"));
    const records = await Promise.all(
      names.map(async (name) => readRecord(await readFile(join(folder, name), "utf8").catch(() => ""))),
    );
    const found = await Promise.all(
      records.flatMap((record) =>
        record === undefined ? [] : [describe(record, projects, fileOf(record.id, "log"))],
      ),
    );
    return found.toSorted((a, b) => Number(b.isRunning) - Number(a.isRunning) || b.startedAt - a.startedAt);
  };
  const find = async (written: string): Promise<BackgroundSession | undefined> => {
    const all = await list();
    const whole = all.find(({ id, sessionId }) => id === written || sessionId === written);
    if (whole !== undefined) return whole;
    const isMeant = ({ sessionId, name }: BackgroundSession): boolean =>
      written !== "" && (sessionId.startsWith(written) || name === written);
    const meant = all.filter(isMeant);
    const running = meant.filter(({ isRunning }) => isRunning);
    // A name is given again when the work before it has ended.
    const [found, ...others] = running.length > 0 ? running : meant;
    if (others.length === 0) return found;
    const shown = meant.slice(0, 10).map(({ id, name, state }) => `${id} (${name}, ${state})`);
    throw new RetinueError("ambiguous-session", `${JSON.stringify(written)} matches several sessions.`, {
      advice: `Write one of these ids: ${shown.join(", ")}${meant.length > shown.length ? ", …" : ""}.`,
    });
  };
  return {
    list,
    find,
    async start(options) {
      const { sessionId, name, cwd, worktree, program, environment, input } = options;
      const id = sessionId.slice(0, 8);
      const about = { id, sessionId, name, cwd, startedAt: Date.now(), worktree };
      const file = fileOf(id, "json");
      const giveBack = await reserve(file, { ...about, process: thisProcess() });
      const output = fileOf(id, "log");
      const inputFile = fileOf(id, "in");
      if (input !== undefined) writeFileSync(inputFile, input, { mode: 0o600 });
      const log = openSync(output, "a", 0o600);
      const piped = input === undefined ? undefined : openSync(inputFile, "r");
      try {
        // A session and a process group of its own, and no terminal: it outlives the one that it is started in.
        const child = await spawnProcess(program.file, program.arguments, {
          cwd,
          // Nor does it end with a command that started it.
          env: { ...environment, [treeVariable]: undefined },
          detached: true,
          stdio: [piped ?? "ignore", log, log],
          windowsHide: true,
        });
        const identity = child.pid === undefined ? undefined : identifyProcess(child.pid);
        child.unref();
        if (identity === undefined)
          throw new RetinueError("not-started", `${program.file} could not be started.`, {
            advice: `Look into ${output}.`,
          });
        writeRecord(file, { ...about, process: identity });
        if (await endsImmediately(identity, { projects, sessionId }))
          throw new RetinueError("not-started", `The session could not start. ${whyEnded({ output })}`, {
            advice: "Nothing is running; fix the problem and start it again.",
          });
        return { id, output };
      } catch (error) {
        giveBack();
        if (!existsSync(file)) rmSync(output, { force: true });
        throw error;
      } finally {
        closeSync(log);
        if (piped !== undefined) closeSync(piped);
        rmSync(inputFile, { force: true });
      }
    },
    async stop(session, { signal }) {
      if (session.isRunning) await end(session, signal);
      return (await find(session.sessionId)) ?? session;
    },
    remove(session) {
      const kept = session.worktree ? removeWorktree(session) : [];
      for (const ending of ["json", "log"]) rmSync(fileOf(session.id, ending), { force: true });
      return kept;
    },
  };
}

/**
 * Until the session has a process of its own this one holds its place, so that it is not started twice, and none takes the place
 * of another whose id begins alike. Returns how to put things back.
 */
function reserve(file: string, record: BackgroundRecord): Promise<() => void> {
  return withFileLock(file, () => {
    const before = readText(file);
    const known = readRecord(before);
    const { id, sessionId } = record;
    if (known !== undefined && known.sessionId !== sessionId)
      throw new RetinueError(
        "id-taken",
        `The id ${id} is already used by the background session ${known.sessionId}.`,
        {
          advice: `Choose another --session-id, or remove that session first: retinue rm ${id}.`,
        },
      );
    if (known !== undefined && livenessOf(known.process) !== "gone")
      throw new RetinueError("session-open", `${id} is already running.`, {
        advice: `\`retinue attach ${id}\` opens it.`,
      });
    writeRecord(file, record);
    return () => (known === undefined ? rmSync(file, { force: true }) : writeRecord(file, known));
  });
}

/** One that begins later, such as behind a slow server, is believed to begin. */
const beginsWithinMs = 2_000;

/** Whether the process is gone before the session has a journal: what it was started with cannot be done. */
async function endsImmediately(
  identity: ProcessIdentity,
  { projects, sessionId }: { readonly projects: string; readonly sessionId: string },
): Promise<boolean> {
  const { signal } = new AbortController();
  for (let waited = 0; waited < beginsWithinMs; waited += lookMs) {
    // In this order: one that has ended may have started.
    const isOver = livenessOf(identity) === "gone";
    if ((await findTranscripts(projects, sessionId)) !== undefined) return false;
    if (isOver) return true;
    await sleep(lookMs, signal);
  }
  return false;
}

/** What the process wrote last, as one text. */
function whyEnded(session: Pick<BackgroundSession, "output">): string {
  return readOutput(session)
    .replaceAll(/^retinue: /gm, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}

function writeRecord(file: string, record: BackgroundRecord): void {
  replaceWholeFile(file, `${JSON.stringify({ version: 1, ...record })}\n`);
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return "";
    throw error;
  }
}

const tailBytes = 256 * 1024;

async function describe(
  record: BackgroundRecord,
  projects: string,
  output: string,
): Promise<BackgroundSession> {
  const isRunning = livenessOf(record.process) !== "gone";
  const transcripts = await findTranscripts(projects, record.sessionId);
  const whole = { ...record, isRunning, output, agents: [], workingFolder: record.cwd };
  if (transcripts === undefined) return { ...whole, state: isRunning ? "starting" : "failed" };
  const { transcript, approvals } = sessionFiles(transcripts, record.sessionId);
  const lines = await readLines(transcript, { maxBytes: tailBytes }).catch(() => undefined);
  const values = lines?.values ?? [];
  const { state: ended, reason, waitingForQuota } = foldTranscript(values);
  const cwd = values.findLast((line) => typeof line["cwd"] === "string")?.["cwd"];
  const asks = readApprovals(approvals, { now: Date.now }).some(({ state }) => state === "waiting");
  const busy = waitingForQuota === undefined ? "working" : "waiting-for-quota";
  const now = asks ? "waiting" : busy;
  const after = ended === undefined || reason === "interrupted" ? "interrupted" : ended;
  return {
    ...whole,
    transcripts,
    transcript,
    workingFolder: typeof cwd === "string" ? cwd : record.cwd,
    agents: await findTasks(transcripts, { sessionId: record.sessionId, limit: 20 }),
    ...(waitingForQuota === undefined ? {} : { waitingForQuota }),
    state: isRunning ? now : after,
  };
}

/** A session in a worktree keeps its journal with that folder. */
async function findTranscripts(projects: string, sessionId: string): Promise<string | undefined> {
  const names = await readdir(projects).catch((): string[] => []);
  return names.map((name) => join(projects, name)).find((at) => existsSync(join(at, `${sessionId}.jsonl`)));
}

const askedMs = 5_000;
const signalledMs = 10_000;
const lookMs = 50;

/** First as a person would stop it, so that this is in its journal; then by a signal, which leaves it resumable. */
async function end(session: BackgroundSession, signal: AbortSignal): Promise<void> {
  const { transcripts, sessionId, process: identity } = session;
  if (transcripts !== undefined) {
    const files = controlFiles(sessionFiles(transcripts, sessionId));
    const { takeBack } = leaveOp(files, { type: "stop", agent: mainAgentId });
    try {
      if (await isGone(identity, askedMs, signal)) return;
    } finally {
      takeBack();
    }
  }
  if (livenessOf(identity) === "running") process.kill(identity.pid, "SIGTERM");
  if (await isGone(identity, signalledMs, signal)) return;
  throw new RetinueError("not-stopped", `${session.id} still runs: process ${identity.pid} does not end.`, {
    advice: `Kill it by hand; its work so far stays in its transcript: kill -9 ${identity.pid}`,
  });
}

async function isGone(identity: ProcessIdentity, withinMs: number, signal: AbortSignal): Promise<boolean> {
  for (let waited = 0; waited < withinMs; waited += lookMs) {
    if (livenessOf(identity) === "gone") return true;
    await sleep(lookMs, signal);
  }
  return livenessOf(identity) === "gone";
}

/** git refuses where something is changed or new in it; commits stay on its branch. */
function removeWorktree({ cwd, workingFolder }: BackgroundSession): readonly string[] {
  if (workingFolder === cwd || !existsSync(workingFolder)) return [];
  const words = ["worktree", "remove", workingFolder];
  const removed = runOwnGitNow({ directory: cwd, words, environment: process.env, folders: [] });
  return removed === undefined || existsSync(workingFolder) ? [workingFolder] : [];
}

/** Total: a file that is none of ours says nothing. */
function readRecord(text: string): BackgroundRecord | undefined {
  const value = parseJson(text);
  if (!isRecord(value) || value["version"] !== 1) return undefined;
  const { id, sessionId, name, cwd, startedAt, worktree } = value;
  const identity = toIdentity(value["process"]);
  const isWhole = typeof id === "string" && typeof name === "string" && typeof cwd === "string";
  if (!isWhole || identity === undefined || typeof startedAt !== "number") return undefined;
  if (typeof sessionId !== "string" || !isSessionId(sessionId) || id !== sessionId.slice(0, 8))
    return undefined;
  return { id, sessionId, name, cwd, startedAt, process: identity, worktree: worktree === true };
}

/** The last lines that the process wrote. */
export function readOutput({ output }: Pick<BackgroundSession, "output">, lines = 20): string {
  try {
    return readFileSync(output, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  } catch {
    return "";
  }
}
