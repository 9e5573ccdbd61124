import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { UserMessage } from "../../conversation/message.ts";
import { handTo, type RunEvent } from "../../conversation/run-event.ts";
import { type ChildPlan, levelOf } from "../../planning/agent-plan.ts";
import type { ChildPlanned, SpawnRequest } from "../../planning/agent-request.ts";
import { hasEnded, type TaskState, wasCutOff } from "../../protocol/agent-state.ts";
import { createAgentTool } from "../../tasks/create-agent-tool.ts";
import { endNotice, stallNotice, stallText } from "../../tasks/end-notice.ts";
import type { KeptWorktree, OpenedChild, RefusedChild } from "../../tasks/run-agent.ts";
import {
  endedOutcome,
  interruptedOutcome,
  launchedOutcome,
  notStarted,
  type Spawn,
  textOfEnd,
} from "../../tasks/spawn-outcome.ts";
import { stopWithCaller, type TaskManager } from "../../tasks/task-manager.ts";
import { openBatchQuestion } from "../quotes/batch-question.ts";
import { type ChildSession, listedAgents } from "./child-session.ts";
import { openChild, openChildPlan } from "./open-child.ts";
import { planChild } from "./plan-child.ts";

/** What a parent does with the ends of its children. */
interface ParentOptions {
  /** Queues a message for the parent, which reads it between its turns. */
  readonly notify: (message: UserMessage) => void;
  /** Called once for each teammate that has ended, with its result as the lead may read it. */
  readonly teammateEnded?: (plan: ChildPlan, state: TaskState, text: string) => Promise<void>;
  /** Called when that is done. */
  readonly teammateSettled?: () => void;
}

interface SpawnerOptions extends ParentOptions {
  /** Where a child is opened, if not where it is planned. */
  readonly sessionOf?: (request: SpawnRequest) => ChildSession;
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
  readonly spawn: Spawn;
  /** Starts a child and returns without waiting for it; the state shows whether it runs. */
  start(request: SpawnRequest, options?: StartOptions): Promise<ChildStarted>;
  /** The working tree that a child in the foreground has left, once it has ended; given once. */
  takeWorktree(id: string): KeptWorktree | undefined;
  /** Carries out a plan that was decided before. */
  startPlan(plan: ChildPlan, options?: StartOptions): Promise<ChildStarted>;
}

/**
 * Starts the children of one parent: of the main agent, of a subagent that may start others, or of a workflow. Each is opened,
 * gets a place among the tasks, and its result goes to the caller that waits for it.
 */
export function openSpawner(
  session: ChildSession,
  { sessionOf = () => session, ...parent }: SpawnerOptions,
): Spawner {
  const { tasks, nested } = session;
  const launcher = createLauncher(tasks, { ...parent, report: session.services.runtime.notice });
  const never = new AbortController().signal;
  const start: Spawner["start"] = async (request, { signal = never } = {}) => {
    const order = nested.nextOrder();
    return launcher.launch(await openChild(request, sessionOf(request), { signal }), order);
  };
  return {
    plan: (request) => planChild(request, session),
    hasPendingNotices: launcher.hasPendingNotices,
    hasPendingTeamNotices: launcher.hasPendingTeamNotices,
    start,
    takeWorktree: launcher.takeWorktree,
    async startPlan(made, { signal = never } = {}) {
      const order = nested.nextOrder();
      return launcher.launch(await openChildPlan(made, session, { signal }), order);
    },
    async spawn(request, { signal }) {
      try {
        const started = await start(request, { signal });
        if (started.type === "refused")
          return { type: "refused", reason: `The agent was not started: ${started.reason}` };
        // What the caller of a started child gets: its result, or that it continues without the caller.
        const { plan, outputFile } = started;
        const { id } = plan.agent;
        if (plan.task.background || plan.task.team !== undefined) return launchedOutcome(plan, outputFile);
        const state = await tasks.wait(id, { signal });
        if (signal.aborted) await stopWithCaller(tasks, id, signal.reason);
        const last = tasks.get(id) ?? state;
        if (last === undefined || !hasEnded(last)) {
          // Either it has not ended although its caller was stopped, or it was moved to the background.
          return signal.aborted ? interruptedOutcome(plan) : launchedOutcome(plan, outputFile);
        }
        if (wasCutOff(last)) return interruptedOutcome(plan);
        return endedOutcome(plan, last, { outputFile, worktree: launcher.takeWorktree(id) });
      } catch (error) {
        const advice = isRetinueError(error) && error.advice !== undefined ? ` ${error.advice}` : "";
        const why = `${error instanceof Error ? error.message : String(error)}${advice}`;
        return { type: "refused", reason: `The agent could not be started: ${why}` };
      }
    },
  };
}

interface AgentToolOptions extends ParentOptions {
  /** Carries out a call of the tool. */
  readonly spawn: Spawn;
  /** Whether an agent with a name becomes a teammate. */
  readonly teams?: boolean;
}

/** How an agent starts others: the Agent tool for those it may start, one question about several, and their spawner. */
export function openAgentTool(session: ChildSession, { spawn, teams, ...parent }: AgentToolOptions) {
  const { runtime } = session.services;
  const spawner = openSpawner(session, parent);
  const { quotes, services } = session;
  const batch = openBatchQuestion({
    quotes,
    unasked: services.unasked,
    plan: spawner.plan,
    tool: () => tool,
  });
  const tool = createAgentTool({
    agents: listedAgents(runtime.discovered.registry, session.parent.plan, session.facts),
    background: runtime.variables.backgroundTasksDisabled !== true,
    inBackground: session.parent.plan.task === undefined && runtime.live?.childrenInBackground === true,
    // Those that have to wait do so in the queue, where they can be seen.
    concurrency: Number.MAX_SAFE_INTEGER,
    teams,
    spawn,
  });
  return { spawner, batch, tool };
}

/** Gives opened children a place, follows them to their end, and notifies the parent. */
export function createLauncher(
  tasks: Pick<TaskManager, "start" | "send">,
  {
    notify,
    report,
    ...team
  }: ParentOptions & {
    /** Shows the person what went wrong beside the work. */
    readonly report?: ((message: string) => void) | undefined;
  },
) {
  /** Working trees that isolated children left, for the callers that wait for them. */
  const worktrees = new Map<string, KeptWorktree>();
  /** Children in the background that have ended and whose end the parent has not been notified of yet. */
  const pending = new Set<string>();
  const pendingTeam = new Set<string>();

  function onEvent(event: RunEvent, state: TaskState): void {
    if (event.type === "run-stalled") {
      // The person sees it; the parent only where it does not wait for the child anyway.
      report?.(stallText(state, event));
      if (state.background && !event.stops) notify(stallNotice(state, event));
    } else if (state.team !== undefined) pendingTeam.add(state.id);
    else if (state.background) pending.add(state.id);
  }

  async function finish(child: OpenedChild, state: TaskState): Promise<void> {
    let worktree: KeptWorktree | undefined;
    try {
      worktree = await child.close(state);
    } finally {
      const { plan, outputFile } = child;
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
    async launch(child: OpenedChild | RefusedChild, order: number): Promise<ChildStarted> {
      if (child.type === "refused") return child;
      const { plan, outputFile } = child;
      const started = tasks.start({
        order,
        start: taskOf(plan),
        events: child.events,
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
    },
    hasPendingNotices: () => pending.size > 0,
    hasPendingTeamNotices: () => pendingTeam.size > 0,
    takeWorktree(id: string): KeptWorktree | undefined {
      const left = worktrees.get(id);
      worktrees.delete(id);
      return left;
    },
  };
}

const stallsAndEnds: ReadonlySet<RunEvent["type"]> = new Set(["run-stalled", "run-ended"]);

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
    workflow: task.workflow?.runId,
  };
}
