import type { Message } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { isRetinueError } from "../foundation/retinue-error.ts";
import { withEarlier } from "../planning/earlier-run.ts";
import { runsInBackground } from "../planning/in-background.ts";
import { type ChildPlan, type ChildPlanned, planRun } from "../planning/plan-run.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import type { SpawnRequest } from "../planning/spawn-request.ts";
import type { SpawnOutcome } from "./agent-tool.ts";
import type { ChildHost, ChildRecord, ChildServers, Isolated, KeptWorktree } from "./child-host.ts";
import { notStarted, tellingOf } from "./child-record.ts";
import {
  type DecidedChild,
  type HeldForChild,
  isolatesServers,
  reportedOf,
  unlessStarted,
} from "./decided-child.ts";
import { interruptedOutcome, isInterrupted, stopWithCaller, reportEvent } from "./interrupted-child.ts";
import { createLocalExecutor } from "./local-executor.ts";
import { endNotice, stallNotice, stallText } from "./notice.ts";
import { resultText } from "./result-text.ts";
import { refuseUnpaid, unknownType, withModel } from "./spawn-checks.ts";
import { completedData, launchedData, launchedText } from "./spawn-results.ts";
import type { TaskControl, TaskManager } from "./task-manager.ts";
import { hasEnded, type TaskState } from "./task-state.ts";
import { describeDefinition } from "./report-definition.ts";
import { watchChild } from "./watch-child.ts";

export interface SpawnerOptions {
  readonly host: ChildHost;
  readonly tasks: TaskManager;
  readonly parent: () => { readonly plan: RunPlan; readonly messages: readonly Message[] };
}

export interface Spawner {
  /** What a child would be, decided the same way, without starting it. */
  plan(request: SpawnRequest): Promise<ChildPlanned>;
  spawn(request: SpawnRequest, options: { readonly signal: AbortSignal }): Promise<SpawnOutcome>;
  /** Starts a child and returns at once; the state says whether it runs. */
  start(
    request: SpawnRequest,
    options?: { readonly signal?: AbortSignal },
  ): Promise<
    | { readonly type: "started"; readonly plan: ChildPlan; readonly outputFile: string }
    | { readonly type: "refused"; readonly reason: string }
  >;
}

type Connecting = { readonly starts: boolean; readonly signal: AbortSignal };

/** Gather, plan, start: and where the caller waits, hand over what came of it. */
export function createSpawner({ host, tasks, parent }: SpawnerOptions): Spawner {
  const executor = createLocalExecutor(host);
  // What isolated children left, for those who wait for them.
  const worktrees = new Map<string, KeptWorktree>();
  /** How many starts were asked for so far. */
  let calls = 0;

  async function decide(
    request: SpawnRequest,
    connecting: Connecting,
  ): Promise<{ readonly type: "refused"; readonly reason: string } | DecidedChild> {
    const recalled = request.resume === undefined ? undefined : await host.recall(request.resume);
    if (request.resume !== undefined && recalled === undefined)
      return refused(`There is no agent ${request.resume} that could be resumed.`);
    const found = (await host.registry()).find(recalled?.agentType ?? request.agentType ?? "general-purpose");
    if (found.type === "unknown") return refused(unknownType(request, found, parent().plan.spawn));
    if (found.type === "denied")
      return refused(`The agent ${found.agent.id} is denied by the rule ${found.rule}.`);
    const { definition } = found.agent;
    const memory = await host.memory?.(definition);
    const skills = host.skills?.(definition);
    const earlier = recalled?.earlier;
    const system = await host.systemPrompt(definition, request.prompt);
    const background = runsInBackground(request, { ...host.facts, definition });
    const agentId = request.resume ?? host.newAgentId();
    const planWith = (servers: ChildServers | undefined): ChildPlanned =>
      planRun(withEarlier(withModel(request, recalled?.model), earlier), {
        ...host.facts,
        definition,
        agentId,
        parent: parent().plan,
        system,
        ...(servers === undefined ? {} : { own: servers.own }),
        ...(memory?.place === undefined ? {} : { memory: memory.place }),
        ...(skills === undefined ? {} : { skills: skills.names }),
        ...(earlier === undefined ? {} : { earlier }),
        notes: [
          ...(memory?.diagnostics.map(({ message }) => message) ?? []),
          ...(skills?.notes ?? []),
          ...(servers?.notes ?? []),
        ],
      });
    const options = { ...connecting, background };
    const place = isolatesServers(definition, options)
      ? await isolateFirst(
          planWith(await host.servers?.(definition, { ...options, starts: false })),
          definition,
          connecting,
        )
      : undefined;
    if (place?.type === "refused") return place;
    const held: HeldForChild = { ...(place === undefined ? {} : { isolated: place }) };
    return unlessStarted(held, async () => {
      const directory = place === undefined ? {} : { directory: place.plan.directory };
      const servers = await host.servers?.(definition, { ...options, ...directory });
      held.servers = servers;
      const planned = planWith(servers);
      if (planned.type === "refused") return refused([planned.reason, ...(servers?.notes ?? [])].join(" "));
      const plan = reportedOf(place?.move(planned.plan) ?? planned.plan, servers);
      return { type: "planned", plan, definition, held };
    });
  }

  /** Servers of an isolated child start in its worktree, so that comes first; only where the child can be had at all. */
  async function isolateFirst(
    sketch: ChildPlanned,
    definition: AgentDefinition,
    connecting: Connecting,
  ): Promise<Isolated | undefined> {
    if (sketch.type === "refused") return sketch;
    const { plan } = sketch;
    return plan.task.isolation === undefined ? undefined : host.isolate(plan, definition, connecting);
  }

  async function start(
    request: SpawnRequest,
    { signal = new AbortController().signal }: { readonly signal?: AbortSignal } = {},
  ): ReturnType<Spawner["start"]> {
    const full = tasks.refusal(request.background === true) ?? host.budget?.refusal()?.error;
    if (full !== undefined) return refused(full);
    calls += 1;
    const order = calls;
    const decided = await decide(request, { starts: true, signal });
    if (decided.type === "refused") return decided;
    return unlessStarted(decided.held, () => launch(decided, order, signal));
  }

  async function launch(
    { plan: planned, definition, held }: DecidedChild,
    order: number,
    signal: AbortSignal,
  ): ReturnType<Spawner["start"]> {
    const { servers } = held;
    const full = tasks.refusal(planned.task.background);
    if (full !== undefined) return refused(full);
    // A model that cannot be had is a reason not to start at all.
    const model = await host.model(planned.chosenModel);
    const unpaid = refuseUnpaid(planned, model, host.budget);
    if (unpaid !== undefined) return refused(unpaid);
    let own = planned;
    if (held.isolated === undefined && planned.task.isolation !== undefined) {
      const place = await host.isolate(planned, definition, { signal });
      if (place.type === "refused") return place;
      held.isolated = place;
      own = reportedOf(place.plan, servers);
    }
    const plan = own.task.background && host.preapprove !== undefined ? await host.preapprove(own) : own;
    if (plan.task.resumed) await host.recover?.(plan.agent.id);
    // From here on it is on disk; whoever was stopped before that hears of no child.
    if (signal.aborted) return refused("it was stopped before it began");
    const record = await host.open(plan);
    held.isolated?.begun?.();
    const history =
      plan.task.forksContext && record.history.length === 0 ? parent().messages : record.history;
    const started = tasks.start({
      order,
      start: {
        id: plan.agent.id,
        agentType: plan.task.agentType,
        description: plan.task.description,
        background: plan.task.background,
        parentId: plan.task.parentId,
        ...(plan.task.name === undefined ? {} : { name: plan.task.name }),
        ...(plan.task.callId === undefined ? {} : { callId: plan.task.callId }),
      },
      events(line, signal) {
        record.leaveQueue?.();
        const run = (own: TaskControl, stop: AbortSignal): AsyncIterable<RunEvent> =>
          executor.execute({ plan, history, definition, servers }, { ...own, ...tellingOf(record) }, stop);
        return watchChild({ plan, clocks: host.clocks, line, run }, signal);
      },
      onEvent(event, state) {
        record.record(event);
        if (event.type === "run-stalled") reportStall(event, state);
      },
      onEnd: (state) => finish(state, { record, definition, leave: held.isolated?.finish, servers }),
    });
    if (started.type === "refused") {
      record.record({ type: "run-ended", ending: notStarted(started) });
      record.close();
      return started;
    }
    if (started.state.status === "queued") record.enterQueue?.();
    if (plan.task.resumed) reportEvent(plan.agent.id, { host, tasks, history });
    return { type: "started", plan, outputFile: record.outputFile };
  }

  /** The person hears of it; the parent only where it does not wait for the child anyway. */
  function reportStall(event: Extract<RunEvent, { type: "run-stalled" }>, state: TaskState): void {
    host.report?.(stallText(state, event));
    if (state.background && !event.stops) host.notify(stallNotice(state, event));
  }

  async function finish(
    state: TaskState,
    {
      record,
      definition,
      leave,
      servers,
    }: {
      readonly record: ChildRecord;
      readonly definition: AgentDefinition;
      readonly leave: (() => Promise<KeptWorktree | undefined>) | undefined;
      readonly servers: ChildServers | undefined;
    },
  ): Promise<void> {
    try {
      await describeDefinition(state, definition);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      host.report?.(`The \`onEnd\` of the agent ${definition.name} failed: ${why}`);
    } finally {
      record.leaveQueue?.();
      record.close();
      await Promise.all([host.release(state.id), servers?.release()]);
      const worktree = await leave?.();
      if (worktree !== undefined && !state.background) worktrees.set(state.id, worktree);
      const text = textOfEnd(state, record.outputFile, worktree);
      if (state.background) host.notify(endNotice(state, { outputFile: record.outputFile, text }));
    }
  }

  return {
    async plan(request) {
      const decided = await decide(request, { starts: false, signal: new AbortController().signal });
      return decided.type === "refused" ? decided : { type: "planned", plan: decided.plan };
    },
    start,
    async spawn(request, { signal }) {
      let started: Awaited<ReturnType<Spawner["start"]>>;
      try {
        started = await start(request, { signal });
      } catch (error) {
        const advice = isRetinueError(error) && error.advice !== undefined ? ` ${error.advice}` : "";
        return {
          type: "refused",
          reason: `The agent could not be started: ${error instanceof Error ? error.message : String(error)}${advice}`,
        };
      }
      if (started.type === "refused")
        return { type: "refused", reason: `The agent was not started: ${started.reason}` };
      const { plan, outputFile } = started;
      if (plan.task.background) return launched(plan, outputFile);
      const state = await tasks.wait(plan.agent.id, { signal });
      if (signal.aborted) await stopWithCaller(tasks, plan.agent.id, signal.reason);
      const last = tasks.get(plan.agent.id) ?? state;
      if (isInterrupted(last, signal)) return interruptedOutcome(plan);
      if (last === undefined || !hasEnded(last)) return launched(plan, outputFile);
      const worktree = worktrees.get(plan.agent.id);
      worktrees.delete(plan.agent.id);
      return ended(plan, last, { outputFile, worktree });
    },
  };
}

function refused(reason: string): { readonly type: "refused"; readonly reason: string } {
  return { type: "refused", reason };
}

function textOfEnd(state: TaskState, file: string, worktree?: KeptWorktree): string {
  const { ending } = state;
  return ending === undefined
    ? ""
    : resultText({
        agentId: state.id,
        description: state.description,
        ending,
        file,
        ...(worktree === undefined ? {} : { worktree }),
      });
}

function launched(plan: ChildPlan, outputFile: string): SpawnOutcome {
  return { type: "launched", text: launchedText(plan, outputFile), data: launchedData(plan, outputFile) };
}

function ended(
  plan: ChildPlan,
  state: TaskState,
  { outputFile, worktree }: { readonly outputFile: string; readonly worktree: KeptWorktree | undefined },
): SpawnOutcome {
  const ending: RunEnding | undefined = state.ending;
  if (ending === undefined) return refused("The agent ended without saying how.");
  const notes = plan.notes.length === 0 ? "" : `${plan.notes.join("\n")}\n\n`;
  return {
    type: "ended",
    text: `${notes}${textOfEnd(state, outputFile, worktree)}`,
    isError: ending.status === "failed" || ending.status === "stopped",
    data: {
      ...completedData(plan, state, ending),
      ...(worktree === undefined ? {} : { worktreePath: worktree.path, worktreeBranch: worktree.branch }),
    },
  };
}
