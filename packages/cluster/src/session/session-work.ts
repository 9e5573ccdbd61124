// @io

import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { errorCode, fileError } from "@retinue/base/foundation/file-error.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type ModelEvent, toolCallsOf } from "@retinue/core/conversation/message.ts";
import type { RunEnding, RunEvent } from "@retinue/core/conversation/run-event.ts";
import type { HookFunction } from "@retinue/core/hooks/run-handler.ts";
import { sessionFiles } from "@retinue/core/journal/session-files.ts";
import { createRuntime, type Runtime } from "@retinue/core/kernel/create-runtime.ts";
import type { AgentsInput, RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { stoppedEnding } from "@retinue/core/kernel/run-handle.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import type { ModelFacts } from "@retinue/core/models/model.ts";
import type { AgentPlan } from "@retinue/core/planning/agent-plan.ts";
import type { AcceptedRight } from "@retinue/core/planning/within-own-rights.ts";
import type { AgentContext, ProgramOutcome } from "../agent-program.ts";
import { type Ending, idempotencyKey } from "../agent-records.ts";
import { classifyCode } from "../classify-failure.ts";
import { createSharedBudget, type SharedBudget } from "../limits/shared-budget.ts";
import type { SharedCoolDowns } from "../limits/shared-cool-downs.ts";
import { withSharedLimits } from "../limits/with-shared-limits.ts";
import type { AppendOptions, JsonValue, Store } from "../store.ts";
import type { Workspace } from "../workspace/open-workspace.ts";
import { storeHook } from "./plan-needs.ts";
import {
  type Question,
  readSessionProgress,
  type SessionEntry,
  type SessionProgress,
} from "./session-progress.ts";
import { createParkingApprover } from "./store-approvals.ts";

export interface WorkerRuntimeOptions
  extends Omit<RuntimeOptions, "cwd" | "approver" | "transcripts" | "agents" | "hooks" | "durability"> {
  readonly hooks?: readonly HookFunction[] | undefined;
}

export interface SessionProgramOptions {
  /** What this worker gives its sessions: its environment with keys, its tools, its servers. */
  readonly runtime: WorkerRuntimeOptions;
  /** A folder of this process for copies of repositories and transcripts. */
  readonly workspaces: string;
  /**
   * What it accepts of plans beyond its own rights: of all agents, or of the one that is named. Absent: nothing where `folders` keep
   * it to some, else everything.
   */
  readonly accepts?: readonly AcceptedRight[] | ((agent: string) => readonly AcceptedRight[]) | undefined;
  /** Where it works; without any, in every folder that a plan names. */
  readonly folders?: readonly string[] | undefined;
  /** The limits that all workers of the store share. */
  readonly store: Store;
  readonly coolDowns: SharedCoolDowns;
}

/** What the agent is to do now, and where. */
export interface SessionWork {
  readonly options: SessionProgramOptions;
  readonly context: AgentContext;
  readonly progress: SessionProgress;
  readonly workspace: Workspace;
  readonly prompt: Prompt;
  /** What of the plan counts beyond the rights of this worker. */
  readonly accepts: readonly AcceptedRight[];
}

export interface Prompt {
  readonly text: string;
  /** Set when this is the beginning of a run rather than the continuation of one. */
  readonly entry?: Extract<SessionEntry, { readonly type: "prompted" }>;
}

/** A run of the runtime, as far as what is around it is concerned. */
export interface SessionRun {
  readonly sessionId: string;
  readonly agents?: AgentsInput;
  /** Carries children out elsewhere. */
  readonly wrapExecutor?: NonNullable<RuntimeOptions["wrapExecutor"]>;
  /** Gives the plan that was decided elsewhere in place of this worker's own. */
  readonly wrapPlan?: NonNullable<RuntimeOptions["wrapPlan"]>;
  /** Answers are published while they are written. */
  readonly partialMessages?: boolean;
  /** What rules leave open is refused instead of waiting for a person. */
  readonly refusesToAsk?: boolean;
  /** US dollars that the whole tree may cost. */
  readonly maxBudgetUsd?: number | undefined;
  /** Begins the run; its events are written down one after another. */
  start(runtime: Runtime, signal: AbortSignal): Promise<AsyncIterable<RunEvent>>;
}

/**
 * Carries out one run in a runtime of its own. Every event is written to the agent's log before the next one is taken, and
 * before each call, so the log is never behind what was done by more than the step under way.
 */
export async function runInRuntime(work: SessionWork, run: SessionRun): Promise<ProgramOutcome> {
  const { options, context, progress, workspace, prompt } = work;
  const stop = new AbortController();
  const asking = createParkingApprover(context, progress, stop);
  let write: Write | undefined;
  let quota: Extract<RunEvent, { type: "quota-waiting" }> | undefined;
  const keys = new Map<string, string>();
  const budget = await openBudget(work, run.maxBudgetUsd);
  const files = createTranscriptFiles(options.workspaces, run.sessionId);
  const runtime = createRuntime({
    ...options.runtime,
    cwd: workspace.directory,
    ...(run.refusesToAsk === true ? {} : { approver: asking.approver }),
    // The log is what survives; the files here are a copy for as long as this activation lasts.
    transcripts: files.folder,
    durability: "os",
    wrapModel: (model) =>
      withSharedLimits(options.runtime.wrapModel?.(model) ?? model, {
        agent: context.agent,
        budget,
        coolDowns: options.coolDowns,
        // It may be this worker's network alone: another one is tried before minutes are spent on it.
        async unreachable(message) {
          if (await context.canRunElsewhere()) stop.abort(new RetinueError("connection-failed", message));
        },
      }),
    hooks: [
      ...(options.runtime.hooks ?? []),
      createFence(stop, async (id, tool) => {
        const seq = await write?.([{ type: "call", id, tool }]);
        if (seq !== undefined) keys.set(id, idempotencyKey(context.agent, seq));
      }),
    ],
    idempotencyKey: (callId) => keys.get(callId),
    ...(run.agents === undefined ? {} : { agents: run.agents }),
    ...(run.wrapExecutor === undefined ? {} : { wrapExecutor: run.wrapExecutor }),
    ...(run.wrapPlan === undefined ? {} : { wrapPlan: run.wrapPlan }),
  });
  try {
    files.restore(progress.entries);
    const writeLog = createLogWriter({ context, files, workspace, prompted: prompt.entry });
    const signal = AbortSignal.any([context.signal, stop.signal]);
    const events = await run.start(runtime, signal);
    write = writeLog;
    const publish = createPublisher(context, run.partialMessages === true);
    const ending = await drive(events, {
      context,
      write: writeLog,
      signal,
      publish,
      // No worker is kept busy by an agent that waits for hours.
      waitForQuota(event) {
        quota = event;
        stop.abort(new RetinueError("parked", "The agent is waiting for a new quota."));
      },
    });
    if (quota !== undefined && ending === undefined) {
      // The next quota wakes it; a little later, so that the clocks of two machines need not agree.
      const { provider, until } = quota;
      const now = Date.now();
      return {
        type: "parked",
        waitingFor: { type: "quota", provider, until },
        wakeAfterMs: Math.max(1, until - now + clocksMs),
      };
    }
    const question = asking.question();
    if (question !== undefined) return parkedFor(question);
    signal.throwIfAborted();
    // Whatever was sent meanwhile is the next prompt; a worker that shuts down leaves it to another.
    if (ending === undefined || hasMore(progress, prompt)) return { type: "yielded" };
    const { children } = readSessionProgress(await context.readHistory(), "session");
    return children.length > 0 ? parkedForChildren(children) : { type: "ended", ending: endingOf(ending) };
  } finally {
    await runtime[Symbol.asyncDispose]();
    files.remove();
  }
}

export function parkedFor(question: Question): ProgramOutcome {
  return { type: "parked", waitingFor: { type: "approval", question: question as unknown as JsonValue } };
}

/** Its children's ends wake it. */
export function parkedForChildren(children: readonly string[]): ProgramOutcome {
  return { type: "parked", waitingFor: { type: "children", agents: children } };
}

const clocksMs = 250;

export function endingOf(
  ending: JsonValue | undefined,
): Extract<ProgramOutcome, { type: "ended" }>["ending"] {
  const { status } = (ending ?? {}) as { readonly status?: string };
  return { status: status === "failed" ? "failed" : "completed", result: ending ?? null };
}

/** How a run ended, from the end of its agent. */
export function runEndingOf({ status, result }: Ending): RunEnding {
  // A session's result is the ending of its run; a program that failed before that has only a reason.
  if (isRecord(result) && typeof result["status"] === "string") return result as unknown as RunEnding;
  if (status === "stopped") return stoppedEnding("stopped");
  const error = typeof result === "string" ? result : "The session ended without a result.";
  return { ...stoppedEnding("worker-failed"), status: "failed", error };
}

/** The ceiling holds for the whole tree and over all hand-overs, so what was spent is kept in the store. */
async function openBudget(
  { options, context }: SessionWork,
  maxBudgetUsd: number | undefined,
): Promise<SharedBudget | undefined> {
  if (maxBudgetUsd === undefined) return undefined;
  const budget = createSharedBudget(options.store, context.tree, maxBudgetUsd);
  await budget.chargeAbandoned(context.agent);
  return budget;
}

function hasMore({ waiting }: SessionProgress, { entry }: Prompt): boolean {
  return waiting.some(({ id }) => id !== entry?.message);
}

/** Gives the number of the last record. */
type Write = (entries: readonly SessionEntry[], options?: WriteOptions) => Promise<number | undefined>;

interface WriteOptions extends AppendOptions {
  /** Saves the files of the workspace first. */
  readonly saves?: boolean;
}

/**
 * Writes what is new in the files together with further lines, one append after another. That a prompt was put is written
 * with the first lines that result from it: a log that has only the prompt could neither be resumed nor started.
 */
function createLogWriter({
  context,
  files,
  workspace,
  prompted,
}: {
  readonly context: AgentContext;
  readonly files: TranscriptFiles;
  readonly workspace: Workspace;
  readonly prompted: SessionEntry | undefined;
}): Write {
  let first = prompted === undefined ? [] : [prompted];
  let last: Promise<unknown> = Promise.resolve();
  return (entries, { saves = false, relaxed = false } = {}) => {
    // After a failed write nothing more is written: what it had taken from the files would be missing in between.
    const turn = last.then(async () => {
      // Files first: a log with a turn whose files are nowhere could not be continued.
      const saved = saves ? await workspace.save(`Turn of ${context.agent}`) : undefined;
      const added = [
        ...files.takePendingMessages(),
        ...entries,
        ...(saved === undefined ? [] : [{ type: "saved", workspace: saved } as const]),
      ];
      if (added.length === 0) {
        await context.confirm();
        return undefined;
      }
      const all = [...first, ...added] as unknown as readonly JsonValue[];
      const seq = await context.record(all, { relaxed });
      first = [];
      return seq + all.length - 1;
    });
    last = turn;
    turn.catch(() => undefined);
    return turn;
  };
}

/** The script of a workflow is in no log, so it would end with this process while its agents continue elsewhere. */
const noWorkflows =
  "Sessions of a store run no workflows. `retinue workflow run` runs one outside the store; agents can be started with the Agent tool.";

/** Before each call, of children too: what led to it is stored, and no other worker has taken over. */
function createFence(
  stop: AbortController,
  store: (callId: string, tool: string) => Promise<void>,
): HookFunction {
  const deny = (permissionDecisionReason: string) => ({
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: "deny",
      permissionDecisionReason,
    },
  });
  return {
    event: "PreToolUse",
    name: storeHook,
    // Longer than any outage of the store: a call must not run because its hook took too long.
    timeoutMs: 24 * 60 * 60 * 1000,
    async run(input) {
      const tool = String(input["tool_name"]);
      try {
        await store(String(input["tool_use_id"]), tool);
        return tool === "Workflow" ? deny(noWorkflows) : undefined;
      } catch (error) {
        stop.abort(error);
        return deny("This worker may no longer act for the agent.");
      }
    },
  };
}

/** What a worker reports about a session that it has opened: what only it knows, such as the model that answers. */
export interface SessionOpened {
  readonly type: "session-opened";
  readonly model: ModelFacts;
  readonly decidedModel: AgentPlan["model"];
  readonly tools: AgentPlan["tools"];
  readonly mcpServers: ReturnType<Session["mcpServers"]>;
  /** What was asked for and does not count on this worker; one of an earlier version does not say it. */
  readonly notes?: AgentPlan["notes"];
}

export function publishOpened(context: Pick<AgentContext, "publish">, session: Session): void {
  const { model, plan } = session;
  const opened: SessionOpened = {
    type: "session-opened",
    model,
    decidedModel: plan.model,
    tools: plan.tools,
    mcpServers: session.mcpServers(),
    notes: plan.notes,
  };
  context.publish(JSON.parse(JSON.stringify(opened)) as JsonValue);
}

/** The ending as it is kept, or undefined when the worker shuts down between two turns. */
async function drive(
  events: AsyncIterable<RunEvent>,
  {
    context,
    write,
    signal,
    publish,
    waitForQuota,
  }: {
    readonly context: AgentContext;
    readonly write: Write;
    readonly signal: AbortSignal;
    readonly publish: (event: RunEvent) => void;
    readonly waitForQuota: (event: Extract<RunEvent, { type: "quota-waiting" }>) => void;
  },
): Promise<JsonValue | undefined> {
  for await (const event of events) {
    // What an aborted run still says is no part of the conversation.
    if (signal.aborted) continue;
    switch (event.type) {
      case "run-ended": {
        throwHostFailure(event.ending);
        const ending = JSON.parse(JSON.stringify(event.ending)) as JsonValue;
        await write([{ type: "run-ended", ending }], { saves: true });
        return ending;
      }
      case "user-added":
        // The next call, or the end, brings it to the disk before anything depends on it.
        await write(event.origin === "tool-results" ? [{ type: "turn" }] : [], {
          saves: event.origin === "tool-results",
          relaxed: true,
        });
        if (event.origin === "tool-results" && context.draining.aborted) return undefined;
        break;
      case "assistant-answered":
        // An answer with calls is stored with the first of them.
        if (toolCallsOf(event.message).length === 0) await write([], { relaxed: true });
        break;
      case "context-compacted":
        await write([]);
        break;
      case "quota-waiting":
        await write([], { saves: true });
        publish(event);
        waitForQuota(event);
        continue;
    }
    publish(event);
  }
  return undefined;
}

/** A run that failed because of the machine or the store has not ended: another worker continues it. */
function throwHostFailure({ status, reason, error = reason, advice }: RunEnding): void {
  if (status !== "failed" || classifyCode(reason) === "agent") return;
  throw new RetinueError(reason, error, advice === undefined ? {} : { advice });
}

/** Pieces of text that come within this time are published as one. */
const partialMs = 50;

/** Publishes events; text that is being written only where it was requested, and in pieces that are not too small. */
function createPublisher(context: AgentContext, partial: boolean): (event: RunEvent) => void {
  let held: TextPiece | undefined;
  let timer: NodeJS.Timeout | undefined;
  const send = (event: RunEvent): void => context.publish(JSON.parse(JSON.stringify(event)) as JsonValue);
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (held !== undefined) send({ type: "model-streamed", event: held });
    held = undefined;
  };
  return (event) => {
    if (event.type !== "model-streamed") {
      flush();
      return send(event);
    }
    if (!partial) return;
    const { event: piece } = event;
    if (piece.type !== "text-delta" && piece.type !== "thinking-delta") {
      flush();
      return send(event);
    }
    if (held !== undefined && (held.type !== piece.type || held.index !== piece.index)) flush();
    held = held === undefined ? piece : { ...held, text: held.text + piece.text };
    timer ??= setTimeout(flush, partialMs);
  };
}

type TextPiece = Extract<ModelEvent, { readonly type: "text-delta" | "thinking-delta" }>;

/** A piece of a session's files, as it is kept in the agent's log. */
interface FilePiece {
  readonly type: "file";
  /** Below the folder of transcripts. */
  readonly path: string;
  /** Where the text begins in a file that only grows; absent where the text is the whole file. */
  readonly from?: number;
  readonly text: string;
}

/**
 * The files of a session and its children for one activation, in a folder of its own: a worker that was frozen, or another one of the
 * same user, has other files. The log has the truth; what a killed worker leaves is removed with its folder by the next one.
 */
interface TranscriptFiles {
  readonly folder: string;
  /** Writes what the log has. */
  restore(entries: readonly JsonValue[]): void;
  /** What was written since the last time. */
  takePendingMessages(): readonly FilePiece[];
  remove(): void;
}

export function createTranscriptFiles(root: string, sessionId: string): TranscriptFiles {
  const transcripts = join(root, `transcripts-${randomUUID()}`);
  const lengths = new Map<string, number>();
  const versions = new Map<string, string>();
  return {
    folder: transcripts,
    remove() {
      try {
        rmSync(transcripts, { recursive: true, force: true, maxRetries: 3 });
      } catch {
        // The folder of the process is removed with it, or by the next worker.
      }
    },
    restore(entries) {
      mkdirSync(sessionFiles(transcripts, sessionId).directory, { recursive: true, mode: 0o700 });
      for (const [path, text] of joinPieces(entries.flatMap(readPiece), sessionId)) {
        const file = join(transcripts, path);
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        writeFileSync(file, text, { mode: 0o600 });
        if (path.endsWith(".jsonl")) lengths.set(path, Buffer.byteLength(text));
        else versions.set(path, versionOf(file));
      }
    },
    takePendingMessages() {
      return listFiles(transcripts, sessionId).flatMap((path): FilePiece[] => {
        const file = join(transcripts, path);
        if (path.endsWith(".jsonl")) {
          const from = lengths.get(path) ?? 0;
          const text = readFrom(file, from);
          if (text === "") return [];
          lengths.set(path, from + Buffer.byteLength(text));
          return [{ type: "file", path, from, text }];
        }
        const version = versionOf(file);
        if (version === versions.get(path)) return [];
        versions.set(path, version);
        const bytes = readFileSync(file);
        return isUtf8(bytes) ? [{ type: "file", path, text: bytes.toString("utf8") }] : [];
      });
    },
  };
}

/** Transcripts, what is known of children, and results too long for the conversation; nothing that belongs to a process. */
function listFiles(transcripts: string, sessionId: string): readonly string[] {
  const found: string[] = [];
  if (statSync(join(transcripts, `${sessionId}.jsonl`), { throwIfNoEntry: false })?.isFile() === true)
    found.push(`${sessionId}.jsonl`);
  const below = (folder: string, isWanted: (name: string) => boolean): void => {
    for (const name of namesIn(join(transcripts, sessionId, folder)))
      if (isWanted(name)) found.push(`${sessionId}/${folder}/${name}`);
  };
  below("subagents", (name) => /\.(jsonl|meta\.json)$/.test(name));
  below("tool-results", (name) => !name.startsWith("."));
  return found;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => name);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw fileError("read the folder", folder, error);
  }
}

/** Whole lines only. */
function readFrom(file: string, from: number): string {
  const descriptor = openSync(file, "r");
  try {
    const bytes = Buffer.alloc(Math.max(0, statSync(file).size - from));
    const read = readSync(descriptor, bytes, 0, bytes.length, from);
    const end = bytes.subarray(0, read).lastIndexOf("\n") + 1;
    return bytes.toString("utf8", 0, end);
  } finally {
    closeSync(descriptor);
  }
}

function versionOf(file: string): string {
  const { size, mtimeMs } = statSync(file);
  return `${size} ${mtimeMs}`;
}

function readPiece(entry: JsonValue): readonly FilePiece[] {
  if (!isRecord(entry) || entry["type"] !== "file") return [];
  const { path, from, text } = entry;
  if (typeof path !== "string" || typeof text !== "string") return [];
  return [{ type: "file", path, text, ...(typeof from === "number" ? { from } : {}) }];
}

function joinPieces(pieces: readonly FilePiece[], sessionId: string): ReadonlyMap<string, string> {
  const whole = new Map<string, string>();
  for (const { path, from, text } of pieces) {
    // The log is written by workers, but a path is only ever used inside the session's own files.
    if (!isOwnPath(path, sessionId)) continue;
    whole.set(path, from === undefined || from === 0 ? text : `${whole.get(path) ?? ""}${text}`);
  }
  return whole;
}

function isOwnPath(path: string, sessionId: string): boolean {
  const rest = path.startsWith(sessionId) ? path.slice(sessionId.length) : "";
  return /^(\.jsonl|\/(subagents|tool-results)\/(?!\.)[^/\\\0]+)$/.test(rest);
}
