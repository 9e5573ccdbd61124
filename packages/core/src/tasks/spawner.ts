import { settledSoon } from "@retinue/base/foundation/abortable.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { UserMessage } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { handTo } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import { type ChildPlan, levelOf } from "../planning/agent-plan.ts";
import type { SpawnRequest } from "../planning/agent-request.ts";
import type { ChildPlanned } from "../planning/plan-agent.ts";
import { hasEnded, interruptedReason, type TaskState } from "../protocol/agent-state.ts";
import type { SpawnOutcome } from "./create-agent-tool.ts";
import { endNotice, stallNotice, stallText } from "./end-notice.ts";
import { interruptedOutcome, isInterrupted, stopWithCaller } from "./interrupted-outcome.ts";
import { type ChildResult, childResult } from "./result-text.ts";
import { type KeptWorktree, type OpenedChild, type RefusedChild, runChild } from "./run-child.ts";
import type { TaskManager, TaskStarted } from "./task-manager.ts";

export interface SpawnerOptions {
  readonly tasks: TaskManager;
  /** Numbers the starts of a session, for the order of its queue; absent: it counts its own. */
  readonly nextOrder?: () => number;
  /** Facts and plan; starts nothing and writes nothing. */
  readonly plan: (request: SpawnRequest) => Promise<ChildPlanned>;
  /** A child that is decided, on disk and ready to run. */
  readonly open: (
    request: SpawnRequest,
    options: { readonly signal: AbortSignal },
  ) => Promise<OpenedChild | RefusedChild>;
  /** The same for a plan that was decided before, perhaps by another process. */
  readonly openPlan: (
    plan: ChildPlan,
    options: { readonly signal: AbortSignal },
  ) => Promise<OpenedChild | RefusedChild>;
  /** Queues a message for the parent, which reads it between its turns. */
  readonly notify: (message: UserMessage) => void;
  /** Shows the person what went wrong beside the work. */
  readonly report?: ((message: string) => void) | undefined;
  /** Called once for each teammate that has ended, with its result as the lead may read it. */
  readonly teammateEnded?: (plan: ChildPlan, state: TaskState, text: string) => Promise<void>;
  /** Called when that is done. */
  readonly teammateSettled?: () => void;
}

type ChildStarted =
  | { readonly type: "started"; readonly plan: ChildPlan; readonly outputFile: string | undefined }
  | RefusedChild;

interface StartOptions {
  readonly signal?: AbortSignal;
}

export interface Spawner {
  /** What a child would be, decided the same way, without starting it. */
  plan(request: SpawnRequest): Promise<ChildPlanned>;
  /** Whether a child in the background has ended and the parent is about to be notified. */
  hasPendingNotices(): boolean;
  /** Whether a teammate has ended and the lead is about to be notified. */
  hasPendingTeamNotices(): boolean;
  spawn(request: SpawnRequest, options: { readonly signal: AbortSignal }): Promise<SpawnOutcome>;
  /** Starts a child and returns without waiting for it; the state says whether it runs. */
  start(request: SpawnRequest, options?: StartOptions): Promise<ChildStarted>;
  /** The working tree that a child in the foreground has left, once it has ended; given once. */
  takeWorktree(id: string): KeptWorktree | undefined;
  /** Carries out a plan that was decided before. */
  startPlan(plan: ChildPlan, options?: StartOptions): Promise<ChildStarted>;
}

/** Opens children, gives each a place among the tasks, and hands the result to the caller that waits for it. */
export function createSpawner({ plan, open, openPlan, ...options }: SpawnerOptions): Spawner {
  const { tasks } = options;
  const { launch, worktrees, hasPendingNotices, hasPendingTeamNotices } = createLauncher(options);
  /** How many starts were requested so far. */
  let calls = 0;
  const {
    nextOrder = () => {
      calls += 1;
      return calls;
    },
  } = options;

  async function begin(opening: () => Promise<OpenedChild | RefusedChild>): Promise<ChildStarted> {
    const order = nextOrder();
    const child = await opening();
    return child.type === "refused" ? child : launch(child, order);
  }

  const never = new AbortController().signal;
  const start: Spawner["start"] = (request, { signal = never } = {}) =>
    begin(() => open(request, { signal }));
  return {
    plan,
    hasPendingNotices,
    hasPendingTeamNotices,
    start,
    takeWorktree: (id) => takeFrom(worktrees, id),
    startPlan: (made, { signal = never } = {}) => begin(() => openPlan(made, { signal })),
    async spawn(request, { signal }) {
      try {
        const started = await start(request, { signal });
        if (started.type === "started") return await outcomeOf(started, { tasks, worktrees, signal });
        return refused(`The agent was not started: ${started.reason}`);
      } catch (error) {
        return refused(`The agent could not be started: ${reasonOf(error)}`);
      }
    },
  };
}

/** Gives opened children a place, follows them to their end, and notifies the parent. */
function createLauncher({
  tasks,
  notify,
  report,
  ...team
}: Omit<SpawnerOptions, "plan" | "open" | "openPlan">) {
  /** Working trees that isolated children left, for the callers that wait for them. */
  const worktrees = new Map<string, KeptWorktree>();
  /** Children in the background that have ended and whose end the parent has not been notified of yet. */
  const pending = new Set<string>();
  const pendingTeam = new Set<string>();

  async function launch(child: OpenedChild, order: number): Promise<ChildStarted> {
    const { outputFile } = child;
    const { plan } = child.execution;
    const started = tasks.start({
      order,
      start: taskOf(plan),
      events: (control, signal) => runChild(child, control, signal),
      sinks: [...child.sinks, { types: stallsAndEnds, take: onEvent }],
      onEnd: (state) => finish(child, state),
    });
    if (started.type === "refused") {
      handTo(child.sinks, { type: "run-ended", ending: notStarted(started) }, undefined);
      await child.close();
      return started;
    }
    if (started.state.status === "queued") child.enterQueue?.();
    for (const message of child.pendingMessages) tasks.send(plan.agent.id, message);
    return { type: "started", plan, outputFile };
  }

  function onEvent(event: RunEvent, state: TaskState): void {
    if (event.type === "run-stalled") reportStall(event, state);
    else if (state.team !== undefined) pendingTeam.add(state.id);
    else if (state.background) pending.add(state.id);
  }

  /** The person sees it; the parent only where it does not wait for the child anyway. */
  function reportStall(event: Extract<RunEvent, { type: "run-stalled" }>, state: TaskState): void {
    report?.(stallText(state, event));
    if (state.background && !event.stops) notify(stallNotice(state, event));
  }

  async function finish(child: OpenedChild, state: TaskState): Promise<void> {
    let worktree: KeptWorktree | undefined;
    try {
      worktree = await child.close(state);
    } finally {
      const { outputFile } = child;
      const { plan } = child.execution;
      if (plan.task.team !== undefined)
        await team.teammateEnded?.(plan, state, textOfEnd(state, outputFile, worktree));
      else if (state.background)
        notify(endNotice(state, { outputFile, text: textOfEnd(state, outputFile, worktree) }));
      else if (worktree !== undefined) worktrees.set(state.id, worktree);
      pending.delete(state.id);
      if (pendingTeam.delete(state.id)) team.teammateSettled?.();
    }
  }

  return {
    launch,
    worktrees,
    hasPendingNotices: () => pending.size > 0,
    hasPendingTeamNotices: () => pendingTeam.size > 0,
  };
}

/** What the caller of a started child gets: its result, or the news that it continues without the caller. */
async function outcomeOf(
  { plan, outputFile }: Extract<ChildStarted, { type: "started" }>,
  {
    tasks,
    worktrees,
    signal,
  }: {
    readonly tasks: TaskManager;
    readonly worktrees: Map<string, KeptWorktree>;
    readonly signal: AbortSignal;
  },
): Promise<SpawnOutcome> {
  if (plan.task.background || plan.task.team !== undefined) return launched(plan, outputFile);
  const state = await tasks.wait(plan.agent.id, { signal });
  if (signal.aborted) await stopWithCaller(tasks, plan.agent.id, signal.reason);
  const last = tasks.get(plan.agent.id) ?? state;
  if (isInterrupted(last, signal)) return interruptedOutcome(plan);
  if (last === undefined || !hasEnded(last)) return launched(plan, outputFile);
  const worktree = takeFrom(worktrees, plan.agent.id);
  return ended(plan, last, { outputFile, worktree });
}

function takeFrom<Value>(kept: Map<string, Value>, id: string): Value | undefined {
  const value = kept.get(id);
  kept.delete(id);
  return value;
}

const stallsAndEnds: ReadonlySet<RunEvent["type"]> = new Set(["run-stalled", "run-ended"]);

function reasonOf(error: unknown): string {
  const advice = isRetinueError(error) && error.advice !== undefined ? ` ${error.advice}` : "";
  return `${error instanceof Error ? error.message : String(error)}${advice}`;
}

function taskOf({ agent, task }: ChildPlan) {
  return {
    id: agent.id,
    agentType: task.agentType,
    description: task.description,
    background: task.background,
    parentId: task.parentId,
    ...(task.ancestors === undefined ? {} : { depth: levelOf({ task }) }),
    name: task.name,
    callId: task.callId,
    member: task.team?.member,
    ...(task.workflow === undefined ? {} : { workflow: task.workflow.runId }),
  };
}

function refused(reason: string): RefusedChild {
  return { type: "refused", reason };
}

function resultOf(
  { id: agentId, description }: TaskState,
  ending: RunEnding,
  file: string | undefined,
  worktree?: KeptWorktree,
): ChildResult {
  return childResult({
    agentId,
    description,
    ending,
    file,
    worktree,
  });
}

function textOfEnd(state: TaskState, file: string | undefined, worktree?: KeptWorktree): string {
  return state.ending === undefined ? "" : resultOf(state, state.ending, file, worktree).text;
}

function launched(plan: ChildPlan, outputFile: string | undefined): SpawnOutcome {
  return { type: "launched", text: launchedText(plan, outputFile), data: launchedData(plan, outputFile) };
}

function ended(
  plan: ChildPlan,
  state: TaskState,
  {
    outputFile,
    worktree,
  }: { readonly outputFile: string | undefined; readonly worktree: KeptWorktree | undefined },
): SpawnOutcome {
  const ending: RunEnding | undefined = state.ending;
  if (ending === undefined) return refused("The agent ended without saying how.");
  const notes = plan.notes.length === 0 ? "" : `${plan.notes.join("\n")}\n\n`;
  const result = resultOf(state, ending, outputFile, worktree);
  return {
    type: "ended",
    text: `${notes}${result.text}`,
    isError: ending.status === "failed" || ending.status === "stopped",
    data: {
      ...completedData(plan, ending, result),
      ...(worktree === undefined ? {} : { worktreePath: worktree.path, worktreeBranch: worktree.branch }),
    },
  };
}

/** The ending of a child that was planned and found no place; one that came too late for its session can be resumed. */
function notStarted({ reason: error, isOver }: Extract<TaskStarted, { type: "refused" }>): RunEnding {
  const totals = { usage: noUsage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0 };
  const reason = isOver === true ? interruptedReason : "not-started";
  return { status: "stopped", reason, text: "", error, denials: [], totals };
}

/** What programs and transcripts keep of a child that ended while its parent waited. */
function completedData(plan: ChildPlan, ending: RunEnding, { said, tokens }: ChildResult) {
  const { usage } = ending.totals;
  return {
    // A child that has its parent's conversation was entered rather than asked.
    status: plan.task.forksContext ? "sub_agent_entered" : "completed",
    agentId: plan.agent.id,
    agentType: plan.task.agentType,
    content: [{ type: "text", text: said }],
    endStatus: ending.status,
    stopReason: ending.reason,
    resolvedModel: plan.model.value,
    totalToolUseCount: ending.totals.toolUses,
    totalDurationMs: Math.round(ending.totals.durationMs),
    totalTokens: tokens,
    usage: {
      input_tokens: usage.inputTokens,
      output_tokens: usage.outputTokens,
      cache_creation_input_tokens: usage.cacheWriteTokens,
      cache_read_input_tokens: usage.cacheReadTokens,
    },
    totalCostUsd: ending.totals.costUsd,
    ...(ending.receipt === undefined ? {} : { receipt: ending.receipt }),
    ...(ending.quote === undefined ? {} : { quote: ending.quote }),
    description: plan.task.description,
    prompt: plan.task.prompt,
  };
}

function launchedData(plan: ChildPlan, outputFile: string | undefined) {
  const { team } = plan.task;
  return {
    status: team === undefined ? "async_launched" : "teammate_spawned",
    ...(team === undefined
      ? {}
      : { teammate_id: `${team.member}@${team.team}`, name: team.member, team_name: team.team }),
    isAsync: true,
    agentId: plan.agent.id,
    description: plan.task.description,
    resolvedModel: plan.model.value,
    prompt: plan.task.prompt,
    outputFile,
  };
}

function launchedText({ agent, task }: ChildPlan, outputFile: string | undefined): string {
  const followed = outputFile === undefined ? undefined : `What it does can be followed in ${outputFile}`;
  if (task.team !== undefined)
    return [
      `The teammate ${JSON.stringify(task.team.member)} of the team ${JSON.stringify(task.team.team)} works now; its id is ${agent.id}.`,
      "It reports by message and is idle when it is done; SendMessage to its name gives it more work.",
      ...(followed === undefined ? [] : [`${followed}.`]),
    ].join("\n");
  return [
    `The agent ${JSON.stringify(task.description)} works in the background; agentId: ${agent.id}.`,
    "You are notified when it has ended, with its result; continue with other work meanwhile.",
    `${followed === undefined ? "" : `${followed}; `}TaskOutput with its id shows how it is doing, TaskStop ends it.`,
  ].join("\n");
}

/** A program's callback that does not return is not waited for longer than this. */
const callbackLimitMs = 5000;

/** Reports to a program's definition how its agent has ended; a callback that fails costs the agent nothing. */
export async function notifyDefinition(
  { id, status, ending }: TaskState,
  definition: AgentDefinition | undefined,
  report: ((message: string) => void) | undefined,
): Promise<void> {
  const { name = "", behaviour } = definition ?? {};
  if (ending === undefined || behaviour?.onEnd === undefined) return;
  try {
    const called = behaviour.onEnd({ agent: name, agentId: id, status, text: ending.text });
    const late = new RetinueError("callback-late", `it did not return within ${callbackLimitMs} ms`);
    await settledSoon(Promise.resolve(called), AbortSignal.abort(late), callbackLimitMs);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    report?.(`The \`onEnd\` of the agent ${name} failed: ${why}`);
  }
}
