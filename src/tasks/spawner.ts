import type { Message } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { isFault } from "../foundation/fault.ts";
import type { Model } from "../model/model.ts";
import type { ChosenModel } from "../model/select-model.ts";
import { withEarlier } from "../planning/earlier-run.ts";
import { runsInBackground } from "../planning/in-background.ts";
import { type ChildPlan, type ChildPlanned, planRun } from "../planning/plan-run.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import type { SpawnRequest } from "../planning/spawn-request.ts";
import type { SpawnOutcome } from "./agent-tool.ts";
import type { TreeBudget } from "./budget.ts";
import { createNeedEstimator } from "./budget-need.ts";
import type { ChildHost, ChildRecord, ChildServers, KeptWorktree } from "./child-host.ts";
import { notStarted, tellingOf } from "./child-record.ts";
import { type DecidedChild, unlessStarted } from "./decided-child.ts";
import { createLocalExecutor } from "./local-executor.ts";
import { endNotice, stallNotice, stallText } from "./notice.ts";
import { resultText } from "./result-text.ts";
import { completedData, launchedData, launchedText } from "./spawn-results.ts";
import type { RunLine, TaskManager } from "./task-manager.ts";
import { hasEnded, type TaskState } from "./task-state.ts";
import { tellDefinition } from "./tell-definition.ts";
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
    | { readonly type: "refused"; readonly because: string }
  >;
}

type Connecting = { readonly starts: boolean; readonly signal: AbortSignal };

/** Gather, plan, start: and where the caller waits, hand over what came of it. */
export function createSpawner({ host, tasks, parent }: SpawnerOptions): Spawner {
  const executor = createLocalExecutor(host);
  // What isolated children left, for those who wait for them.
  const worktrees = new Map<string, KeptWorktree>();

  async function decide(
    request: SpawnRequest,
    connecting: Connecting,
  ): Promise<{ readonly type: "refused"; readonly because: string } | DecidedChild> {
    const recalled = request.resume === undefined ? undefined : await host.recall(request.resume);
    if (request.resume !== undefined && recalled === undefined)
      return refused(`There is no agent ${request.resume} that could be resumed.`);
    const found = (await host.registry()).find(recalled?.agentType ?? request.agentType ?? "general-purpose");
    if (found.type === "unknown") return refused(unknownType(request, found));
    if (found.type === "denied")
      return refused(`The agent ${found.agent.id} is denied by the rule ${found.rule}.`);
    const { definition } = found.agent;
    const memory = await host.memory?.(definition);
    const skills = host.skills?.(definition);
    const earlier = recalled?.earlier;
    const system = await host.systemPrompt(definition, request.prompt);
    const background = runsInBackground(request, { ...host.facts, definition });
    const servers = await host.servers?.(definition, { ...connecting, background });
    const planned = planRun(withEarlier(withModel(request, recalled?.model), earlier), {
      ...host.facts,
      definition,
      agentId: request.resume ?? host.newAgentId(),
      parent: parent().plan,
      system,
      ...(servers === undefined ? {} : { own: servers.own }),
      ...(memory?.place === undefined ? {} : { memory: memory.place }),
      ...(skills === undefined ? {} : { skills: skills.names }),
      ...(earlier === undefined ? {} : { earlier }),
      notes: [
        ...(memory?.problems.map(({ message }) => message) ?? []),
        ...(skills?.notes ?? []),
        ...(servers?.notes ?? []),
      ],
    });
    if (planned.type === "planned") return { ...planned, definition, servers };
    await servers?.release();
    return refused([planned.because, ...(servers?.notes ?? [])].join(" "));
  }

  async function start(
    request: SpawnRequest,
    { signal = new AbortController().signal }: { readonly signal?: AbortSignal } = {},
  ): ReturnType<Spawner["start"]> {
    const full = tasks.refusal() ?? host.budget?.refusal()?.error;
    if (full !== undefined) return refused(full);
    const decided = await decide(request, { starts: true, signal });
    if (decided.type === "refused") return decided;
    return unlessStarted(decided.servers, () => launch(decided));
  }

  async function launch({ plan: planned, definition, servers }: DecidedChild): ReturnType<Spawner["start"]> {
    // A model that cannot be had is a reason not to start at all.
    const model = await host.model(planned.chosenModel);
    const unpaid = refuseUnpaid(planned, model, host.budget);
    if (unpaid !== undefined) return refused(unpaid);
    const isolated =
      planned.task.isolation === undefined ? undefined : await host.isolate(planned, definition);
    if (isolated?.type === "refused") return isolated;
    const own = isolated?.plan ?? planned;
    const plan = own.task.background && host.preapprove !== undefined ? await host.preapprove(own) : own;
    if (plan.task.resumed) await host.recover?.(plan.agent.id);
    const record = await host.open(plan);
    const history =
      plan.task.forksContext && record.history.length === 0 ? parent().messages : record.history;
    const started = tasks.start({
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
        const run = (own: RunLine, stop: AbortSignal): AsyncIterable<RunEvent> =>
          executor.execute({ plan, history, definition, servers }, { ...own, ...tellingOf(record) }, stop);
        return watchChild({ plan, clocks: host.clocks, line, run }, signal);
      },
      onEvent(event, state) {
        record.record(event);
        if (event.type === "run-stalled") tellStall(event, state);
      },
      onEnd: (state) => finish(state, { record, definition, leave: isolated?.finish, servers }),
    });
    if (started.type === "refused") {
      record.record({ type: "run-ended", ending: notStarted(started.because) });
      record.close();
      await isolated?.finish();
      return started;
    }
    if (started.state.status === "queued") record.enterQueue?.();
    return { type: "started", plan, outputFile: record.outputFile };
  }

  /** The person hears of it; the parent only where it does not wait for the child anyway. */
  function tellStall(event: Extract<RunEvent, { type: "run-stalled" }>, state: TaskState): void {
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
      await tellDefinition(state, definition);
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
        const advice = isFault(error) && error.advice !== undefined ? ` ${error.advice}` : "";
        return {
          type: "refused",
          because: `The agent could not be started: ${error instanceof Error ? error.message : String(error)}${advice}`,
        };
      }
      if (started.type === "refused")
        return { type: "refused", because: `The agent was not started: ${started.because}` };
      const { plan, outputFile } = started;
      if (plan.task.background) return launched(plan, outputFile);
      const state = await tasks.wait(plan.agent.id, { signal });
      if (signal.aborted) await tasks.stop(plan.agent.id, "parent");
      const last = tasks.get(plan.agent.id) ?? state;
      if (last === undefined || !hasEnded(last)) return launched(plan, outputFile);
      const worktree = worktrees.get(plan.agent.id);
      worktrees.delete(plan.agent.id);
      return ended(plan, last, { outputFile, worktree });
    },
  };
}

function refused(because: string): { readonly type: "refused"; readonly because: string } {
  return { type: "refused", because };
}

function unknownType(
  request: SpawnRequest,
  found: { readonly nearest?: string; readonly available: readonly string[] },
): string {
  const near = found.nearest === undefined ? "" : ` Did you mean ${found.nearest}?`;
  return `There is no agent ${JSON.stringify(request.agentType)}.${near} Available: ${found.available.join(", ")}.`;
}

/** A child whose very first call cannot be paid for is not started. */
function refuseUnpaid(
  { limits, system, task }: ChildPlan,
  { facts }: Model,
  budget: TreeBudget | undefined,
): string | undefined {
  const account = budget?.agent(limits);
  if (account?.isLimited !== true) return undefined;
  const messages = [{ role: "user" as const, content: task.prompt }];
  const need = createNeedEstimator(facts).needOf({ system, tools: [], messages });
  return account.refusal(need)?.error;
}

/** A resumed child keeps its model unless the call names another. */
function withModel(request: SpawnRequest, model: ChosenModel | undefined): SpawnRequest {
  if (request.model !== undefined || model === undefined) return request;
  return { ...request, model: model.provider === undefined ? model.id : `${model.provider}/${model.id}` };
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
