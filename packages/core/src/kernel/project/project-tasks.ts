import { basename } from "node:path";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { readNewLines } from "@retinue/base/storage/read-lines.ts";
import type { Paths } from "@retinue/config/settings/paths.ts";
import type { Message } from "../../conversation/message.ts";
import { readAssistantBlocks, readUserBlocks } from "../../journal/read-assistant-blocks.ts";
import { isAgentId } from "../../journal/session-files.ts";
import { describeDamage, type TranscriptDamage } from "../../journal/transcript-damage.ts";
import { callText, inFlightText } from "../../tasks/child-run.ts";
import {
  findInterrupted,
  findWaitingSessions,
  type Interrupted,
  type WaitingSession,
} from "../../tasks/find-interrupted.ts";
import { type FoundTask, findTasks } from "../../tasks/find-tasks.ts";
import { submitElsewhere } from "./submit-elsewhere.ts";

export { continuePrompt } from "../../planning/agent-request.ts";
export type { Interrupted, WaitingSession } from "../../tasks/find-interrupted.ts";
export type { FoundTask } from "../../tasks/find-tasks.ts";

export interface ListedTask extends FoundTask {
  /** What it does right now, where it runs and has reported it. */
  readonly activity?: string;
}

/** New lines of a transcript; the last piece says what could not be read. */
export interface TaskLog {
  readonly records: readonly JsonRecord[];
  readonly damage?: string;
}

/** The child agents of a folder's sessions, whichever process runs them. */
export interface ProjectTasks {
  /** Those that run first, then the newest, of all sessions or of one; `limit` counts those that have ended. */
  list(options?: { readonly limit?: number; readonly sessionId?: string }): Promise<readonly ListedTask[]>;
  /** One, by id, the beginning of it, or name. */
  get(written: string): Promise<FoundTask>;
  /** Ends one, and resolves with its state when it has ended; one that has ended stays as it is. */
  stop(written: string, options?: { readonly signal?: AbortSignal }): Promise<FoundTask>;
  /** What one said and did; with `follow` until it ends. */
  log(
    written: string,
    options?: { readonly follow?: boolean; readonly signal?: AbortSignal },
  ): AsyncIterable<TaskLog>;
  /** What died with its process before it ended. */
  interrupted(): Promise<Interrupted>;
  /** Main agents that wait for a new quota of a provider; children say so themselves. */
  waiting(): Promise<readonly WaitingSession[]>;
}

export function projectTasks(paths: () => Promise<Paths>): ProjectTasks {
  const transcripts = async (): Promise<string> => (await paths()).transcripts;
  const get = async (written: string): Promise<FoundTask> => findNamedTask(await transcripts(), written);
  return {
    async list({ limit, sessionId } = {}) {
      const found = await findTasks(await transcripts(), {
        limit,
        sessionId,
      });
      return found.map((task) =>
        task.state === "running" && task.current !== undefined
          ? { ...task, activity: callText(task.current) }
          : task,
      );
    },
    get,
    async stop(written, { signal = new AbortController().signal } = {}) {
      const task = await get(written);
      if (task.state !== "running") return task;
      const stop = { type: "stop", agent: task.id } as const;
      await submitElsewhere(stop, task, { transcripts: await transcripts(), signal });
      return get(task.id);
    },
    async *log(written, { follow = false, signal = new AbortController().signal } = {}) {
      yield* readLog((await get(written)).transcript, { follow, signal });
    },
    interrupted: async () => findInterrupted(await transcripts()),
    waiting: async () => findWaitingSessions(await transcripts()),
  };
}

/** The message of a line of a transcript; undefined where it has none. */
export function messageIn({ type, message }: JsonRecord): Message | undefined {
  if ((type !== "user" && type !== "assistant") || !isRecord(message)) return undefined;
  const { content } = message;
  return type === "user"
    ? { role: type, content: [...readUserBlocks(content)] }
    : { role: type, content: [...readAssistantBlocks(content)] };
}

/** A call that was in flight, in a few words. */
export const describeInFlight = inFlightText;

/** What could not be read of a transcript, in one sentence. */
export function describeTaskDamage({ id, damage }: Pick<FoundTask, "id" | "damage">): string | undefined {
  return damage === undefined ? undefined : describeDamage(`of ${id}`, damage);
}

const lookMs = 200;
const noDamage: TranscriptDamage = { broken: 0, missing: 0, torn: false };

/** The lines of a transcript; with `follow` those that come as long as a process has it open. */
export async function* readLog(
  transcript: string,
  { follow, signal }: { readonly follow: boolean; readonly signal: AbortSignal },
): AsyncGenerator<TaskLog> {
  let left = noDamage;
  for (let at = 0; !signal.aborted; ) {
    // Asked first: what an owner writes before it leaves is then still read.
    const isRunning = follow && hasLiveOwner(transcript);
    const lines = await readNewLines(transcript, at, { withLast: !isRunning });
    at += lines.length;
    left = { ...left, broken: left.broken + lines.broken, torn: lines.torn };
    const damage = isRunning ? undefined : describeDamage(basename(transcript), left);
    yield { records: lines.values, damage };
    if (!isRunning) return;
    await sleep(lookMs, signal).catch(() => undefined);
  }
}

/** What is no id is refused before anything is read. */
async function findNamedTask(transcripts: string, written: string): Promise<FoundTask> {
  if (!isAgentId(written))
    throw new RetinueError("misuse", `${JSON.stringify(written)} is not the id of an agent.`, {
      advice: "`retinue tasks` lists the ids.",
    });
  const byId = await findTasks(transcripts, { idPrefix: written });
  const exact = byId.find(({ id }) => id === written);
  if (exact !== undefined) return exact;
  const all = byId.length > 0 ? byId : await findTasks(transcripts);
  const alike = byId.length > 0 ? byId : all.filter(({ name }) => name === written);
  const [first, ...others] = alike;
  if (first === undefined)
    throw new RetinueError(
      "unknown-task",
      `There is no agent ${JSON.stringify(written)} in this project's sessions.`,
      {
        advice:
          all.length === 0
            ? "No session in this folder has started an agent."
            : "`retinue tasks --all` lists all agents.",
      },
    );
  if (others.length === 0) return first;
  throw new RetinueError("ambiguous-task", `${JSON.stringify(written)} matches several agents.`, {
    advice: `Write more of the id: ${alike.map(({ id }) => id).join(", ")}.`,
  });
}
