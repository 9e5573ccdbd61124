// @io
import type { RunEnding, RunEvent } from "../../conversation/run-event.ts";
import type { AgentDefinition } from "../../definitions/agent-definition.ts";
import { readSessionAgents } from "../../definitions/read-definition-object.ts";
import { parseJsonDocument } from "../../foundation/json-document.ts";
import { RetinueError } from "../../foundation/retinue-error.ts";
import type { HookFunction } from "../../hooks/run-handler.ts";
import type { ApprovalAnswer } from "../../permissions/approver.ts";
import { createRuntime } from "../../runtime/create-runtime.ts";
import type { RuntimeOptions } from "../../runtime/runtime-options.ts";
import type { AgentContext, AgentProgram, ProgramOutcome } from "../agent-program.ts";
import { withSharedLimits } from "../limits/limited-model.ts";
import { createSharedBudget, type SharedBudget } from "../limits/shared-budget.ts";
import type { SharedCoolDowns } from "../limits/shared-cool-downs.ts";
import type { JsonValue, Store } from "../store.ts";
import { openWorkspace, type Workspace } from "../workspace/open-workspace.ts";
import { createParkingApprover } from "./parking-approver.ts";
import { readSessionPlan, type SessionPlan } from "./session-plan.ts";
import {
  type Question,
  readSessionMessage,
  readSessionProgress,
  type SessionEntry,
  type SessionProgress,
} from "./session-progress.ts";
import { createTranscriptFiles, type TranscriptFiles } from "./transcript-files.ts";

export interface WorkerRuntimeOptions
  extends Omit<RuntimeOptions, "cwd" | "approver" | "transcripts" | "agents" | "hooks"> {
  readonly hooks?: readonly HookFunction[];
}

export interface SessionProgramOptions {
  /** What this worker gives its sessions: its environment with keys, its tools, its servers. */
  readonly runtime: WorkerRuntimeOptions;
  /** A folder of this process for copies of repositories. */
  readonly workspaces: string;
  /** The limits that all workers of the store share. */
  readonly store: Store;
  readonly coolDowns: SharedCoolDowns;
}

/**
 * Runs sessions of the runtime as agents of a store. This is the only place that knows the runtime. Every event is written
 * to the agent's log before the session goes on, so the log is never behind what was done by more than the step under way.
 */
export function createSessionProgram(options: SessionProgramOptions): AgentProgram {
  return async (context) => {
    const plan = readSessionPlan(context.plan);
    await context.receive();
    const progress = readSessionProgress(await context.readHistory());
    const prompt = nextPrompt(plan, progress);
    if (prompt === undefined) return restingOutcome(progress);
    const workspace = await openWorkspace({
      plan: plan.workspace,
      agent: context.agent,
      saved: progress.workspace,
      root: options.workspaces,
      environment: options.runtime.env ?? process.env,
      signal: context.signal,
      confirm: context.confirm,
    });
    try {
      return await runPrompt({ options, context, plan, progress, workspace, prompt });
    } finally {
      await workspace.close();
    }
  };
}

interface Prompt {
  readonly text: string;
  /** Set when this is the beginning of a run rather than the continuation of one. */
  readonly entry?: Extract<SessionEntry, { readonly type: "prompted" }>;
}

/** What the session is to be told now; nothing when it has to wait. */
function nextPrompt(plan: SessionPlan, progress: SessionProgress): Prompt | undefined {
  const { hasBegun, hasTranscript, isRunning, openQuestion, answers, waiting } = progress;
  if (!hasBegun || (isRunning && !hasTranscript)) return { text: plan.prompt, entry: { type: "prompted" } };
  if (isRunning) {
    const answer = openQuestion === undefined ? undefined : answers.get(openQuestion.id);
    if (openQuestion !== undefined && answer === undefined) return undefined;
    return { text: openQuestion === undefined ? continueText : answeredText(openQuestion, answer) };
  }
  const [message] = waiting;
  const said = message === undefined ? undefined : readSessionMessage(message.body);
  if (message === undefined || said?.type !== "prompt") return undefined;
  return { text: said.prompt, entry: { type: "prompted", message: message.id } };
}

const continueText =
  "The process that ran you has ended and another one has taken over. Calls that were under way are reported as interrupted; files may be back at the state of your last finished turn. Check what was done where it matters, then continue.";

function answeredText({ tool }: Question, answer: ApprovalAnswer | undefined): string {
  if (answer?.type === "allow")
    return `You waited for a person to decide about your call of ${tool}. It was allowed: make the same call again now, then continue.`;
  const said = answer?.message === undefined ? "" : ` The person says: ${answer.message}`;
  return `You waited for a person to decide about your call of ${tool}. It was refused.${said} Continue without it.`;
}

function restingOutcome({ isRunning, openQuestion, lastEnding }: SessionProgress): ProgramOutcome {
  if (isRunning && openQuestion !== undefined) return parkedFor(openQuestion);
  return { type: "ended", ending: endingOf(lastEnding) };
}

function parkedFor(question: Question): ProgramOutcome {
  return { type: "parked", waitingFor: { type: "approval", question: question as unknown as JsonValue } };
}

function endingOf(ending: JsonValue | undefined): Extract<ProgramOutcome, { type: "ended" }>["ending"] {
  const { status } = (ending ?? {}) as Partial<RunEnding>;
  return { status: status === "failed" ? "failed" : "completed", result: ending ?? null };
}

interface PromptRun {
  readonly options: SessionProgramOptions;
  readonly context: AgentContext;
  readonly plan: SessionPlan;
  readonly progress: SessionProgress;
  readonly workspace: Workspace;
  readonly prompt: Prompt;
}

async function runPrompt(run: PromptRun): Promise<ProgramOutcome> {
  const { options, context, plan, progress, workspace, prompt } = run;
  const stop = new AbortController();
  const asking = createParkingApprover(context, progress, stop);
  const pen: { write?: () => Promise<void> } = {};
  const budget = await openBudget(run);
  const runtime = createRuntime({
    ...options.runtime,
    cwd: workspace.directory,
    approver: asking.approver,
    transcripts: true,
    wrapModel: (model) =>
      withSharedLimits(options.runtime.wrapModel?.(model) ?? model, {
        agent: context.agent,
        budget,
        coolDowns: options.coolDowns,
      }),
    hooks: [...(options.runtime.hooks ?? []), fence(() => pen.write?.(), stop)],
    ...(plan.agents === undefined ? {} : { agents: readAgents(plan.agents) }),
  });
  const { paths } = await runtime.agents();
  const files = createTranscriptFiles(paths.transcripts, plan.sessionId);
  files.restore(progress.entries);
  try {
    const own = progress.hasTranscript ? { resume: plan.sessionId } : { sessionId: plan.sessionId };
    const session = await runtime.open({ ...plan.options, ...own });
    const write = createPen({ context, files, workspace, prompted: prompt.entry });
    pen.write = () => write([]);
    const signal = AbortSignal.any([context.signal, stop.signal]);
    const ending = await drive(session.stream(prompt.text, signal), { context, write, signal });
    const question = asking.question();
    if (question !== undefined) return parkedFor(question);
    signal.throwIfAborted();
    // Whatever was sent meanwhile is the next prompt; a worker that shuts down leaves it to another.
    if (ending === undefined || hasMore(progress, prompt)) return { type: "yielded" };
    return { type: "ended", ending: endingOf(ending) };
  } finally {
    await runtime[Symbol.asyncDispose]();
    files.remove();
  }
}

/** The ceiling holds for the whole tree and over all hand-overs, so what was spent is kept in the store. */
async function openBudget({ options, context, plan }: PromptRun): Promise<SharedBudget | undefined> {
  const { maxBudgetUsd } = plan.options;
  if (maxBudgetUsd === undefined) return undefined;
  const budget = createSharedBudget(options.store, context.tree, maxBudgetUsd);
  await budget.chargeAbandoned(context.agent);
  return budget;
}

function readAgents(value: JsonValue): readonly AgentDefinition[] {
  const { locate } = parseJsonDocument(JSON.stringify(value), "the plan");
  const { definitions, diagnostics } = readSessionAgents(value, locate, "the plan");
  const broken = diagnostics.find(({ severity }) => severity === "error");
  if (broken !== undefined)
    throw new RetinueError("unreadable-plan", `An agent in the plan cannot be used: ${broken.message}`);
  return definitions;
}

function hasMore({ waiting }: SessionProgress, { entry }: Prompt): boolean {
  return waiting.some(({ id }) => id !== entry?.message);
}

type Write = (entries: readonly SessionEntry[], options?: { readonly saves?: boolean }) => Promise<void>;

/**
 * Writes what is new in the files together with further lines, one append after another. That a prompt was put is written
 * with the first lines that came of it: a log that tells only of the prompt could neither be resumed nor begun.
 */
function createPen({
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
  return (entries, { saves = false } = {}) => {
    const turn = last.then(async () => {
      // Files first: a log that tells of a turn whose files are nowhere could not be continued.
      const saved = saves ? await workspace.save(`Turn of ${context.agent}`) : undefined;
      const news = [
        ...files.takeNews(),
        ...entries,
        ...(saved === undefined ? [] : [{ type: "saved", workspace: saved } as const]),
      ];
      if (news.length === 0) return context.confirm();
      await context.record([...first, ...news] as unknown as readonly JsonValue[]);
      first = [];
    });
    last = turn.catch(() => undefined);
    return turn;
  };
}

/** Before each call, of children too: what led to it is stored, and no other worker has taken over. */
function fence(write: () => Promise<void> | undefined, stop: AbortController): HookFunction {
  return {
    event: "PreToolUse",
    name: "store",
    // Longer than any outage of the store: a call must not run because its hook took too long.
    timeoutMs: 24 * 60 * 60 * 1000,
    async run() {
      try {
        await write();
        return undefined;
      } catch (error) {
        stop.abort(error);
        const permissionDecisionReason = "This worker may no longer act for the agent.";
        return {
          hookSpecificOutput: {
            hookEventName: "PreToolUse",
            permissionDecision: "deny",
            permissionDecisionReason,
          },
        };
      }
    },
  };
}

/** The ending as it is kept, or undefined when the worker shuts down between two turns. */
async function drive(
  events: AsyncIterable<RunEvent>,
  {
    context,
    write,
    signal,
  }: { readonly context: AgentContext; readonly write: Write; readonly signal: AbortSignal },
): Promise<JsonValue | undefined> {
  for await (const event of events) {
    // What an aborted run still says is no part of the conversation.
    if (signal.aborted) continue;
    switch (event.type) {
      case "run-ended": {
        const ending = JSON.parse(JSON.stringify(event.ending)) as JsonValue;
        await write([{ type: "run-ended", ending }], { saves: true });
        return ending;
      }
      case "user-added":
        await write([], { saves: event.origin === "tool-results" });
        if (event.origin === "tool-results" && context.draining.aborted) return undefined;
        break;
      case "assistant-answered":
      case "context-compacted":
        await write([]);
        break;
    }
    if (event.type !== "model-streamed") context.publish(JSON.parse(JSON.stringify(event)) as JsonValue);
  }
  return undefined;
}
