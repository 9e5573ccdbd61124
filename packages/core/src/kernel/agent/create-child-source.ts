import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { Message } from "../../conversation/message.ts";
import type { EventSink, RunEvent } from "../../conversation/run-event.ts";
import type { ChildPlan } from "../../planning/plan-run.ts";
import type { RunPlan } from "../../planning/plan-tools.ts";
import { withinSession } from "../../planning/plan-tools.ts";
import type { ChildRecord } from "../../tasks/child-record.ts";
import { createLocalExecutor } from "../../tasks/create-local-executor.ts";
import type { TaskState } from "../../tasks/drive-task.ts";
import { describeDefinition } from "../../tasks/spawner.ts";
import type { ChildSource, KeptWorktree, OpenedChild, RefusedChild } from "../../tasks/task-manager.ts";
import { liveTextEvents } from "../live/live-text.ts";
import {
  type ChildSourceParts,
  decideChild,
  gather,
  type Held,
  type Opening,
  planWith,
  prepareModel,
  refused,
} from "./decide-child.ts";
import type { AgentServices } from "./equip-agent.ts";

/** Facts, plan, and a child that is ready to run: the same for new, forked and resumed ones, and for plans made elsewhere. */
export function createChildSource(parts: ChildSourceParts): ChildSource {
  return {
    async plan(request) {
      const gathered = await gather(request, parts);
      if ("type" in gathered) return gathered;
      const servers = await parts.servers?.(gathered.definition, {
        background: gathered.background,
        starts: false,
        signal: new AbortController().signal,
      });
      return planWith(gathered, servers);
    },
    async open(request, options) {
      const held: Held = {};
      return unlessOpened(held, async () => {
        const decided = await decideChild(request, { parts, held, options });
        if (decided.type === "refused") return decided;
        return openDecided(decided.plan, { parts, held, options, definition: decided.definition });
      });
    },
    async openPlan(made, options) {
      const plan = withinSession(made, parts.parent());
      const refusal = parts.refuse?.(plan);
      if (refusal !== undefined) return refused(refusal);
      const held: Held = {};
      return unlessOpened(held, async () => {
        const place = await takePlace(plan, { parts, held, options });
        if (place !== undefined) return place;
        const { signal } = options;
        const { background } = plan.task;
        const { directory } = plan;
        held.servers = await parts.servers?.(plan.definition, {
          background,
          starts: true,
          signal,
          directory,
        });
        const definition = await definitionOf(plan, parts);
        return openDecided(plan, { parts, held, options, isElsewhere: true, ...definition });
      });
    },
  };
}

/** A plan that was made elsewhere names the working tree it was made for. */
async function takePlace(
  plan: ChildPlan,
  { parts, held, options }: Opening,
): Promise<RefusedChild | undefined> {
  if (plan.task.isolation === undefined) return undefined;
  if (plan.directory === plan.sessionDirectory)
    return refused("its plan asks for a working tree of its own and none was made for it yet");
  const worktree = await parts.worktree({ ...plan, task: { ...plan.task, resumed: true } }, options);
  if (worktree.type === "refused") return worktree;
  held.worktree = worktree;
  return worktree.place.directory === plan.directory
    ? undefined
    : refused(`its working tree ${plan.directory} is not there any more`);
}

async function openDecided(
  plan: ChildPlan,
  opening: Opening & {
    readonly definition?: AgentDefinition;
    /** The plan was made by another process. */
    readonly isElsewhere?: boolean;
  },
): Promise<OpenedChild | RefusedChild> {
  const { parts, held, options, definition, isElsewhere = false } = opening;
  if (plan.task.team?.isProcess === true && parts.processes !== undefined) return openProcess(plan, opening);
  const unable = await prepareModel(plan, { parts, held, options });
  if (unable !== undefined) return unable;
  const { model, servers, worktree } = held;
  if (model === undefined) return refused("its model could not be made");
  const { id } = plan.agent;
  if (plan.task.resumed) await parts.recover?.(id, plan.definition);
  // From here on it is on disk; a caller that was stopped before that gets no child.
  if (options.signal.aborted) return refused("it was stopped before it began");
  const forked = await forkedHistory(plan, { parts, isElsewhere });
  const record = await parts.openRecord(plan);
  worktree?.begun();
  const history = record.history.length === 0 ? forked : record.history;
  const { transcript, control, sinks, outputFile, enterQueue, leaveQueue } = record;
  const local = createLocalExecutor((own, line) =>
    parts.openAgent(own, { model, control: line, servers, transcript }),
  );
  const executor = parts.wrapExecutor?.(local) ?? local;
  const wasReported = (taskId: string): boolean =>
    JSON.stringify(history).includes(`<task-id>${taskId}</task-id>`);
  return {
    type: "opened",
    execution: { plan, history },
    executor,
    control,
    outputFile,
    sinks,
    news: plan.task.resumed ? (parts.news?.(id, wasReported) ?? []) : [],
    ...(parts.clocks === undefined ? {} : { clocks: parts.clocks }),
    ...(enterQueue === undefined ? {} : { enterQueue }),
    ...(leaveQueue === undefined ? {} : { leaveQueue }),
    close: (state) => close(state, { id, record, held, parts, definition }),
  };
}

/** A member that another process carries out: that one opens its record, its servers and its model. */
async function openProcess(
  plan: ChildPlan,
  { parts, held, options, definition }: Opening & { readonly definition?: AgentDefinition },
): Promise<OpenedChild | RefusedChild> {
  await held.servers?.release();
  delete held.servers;
  const { processes } = parts;
  const refusal = processes?.refuse(plan) ?? options.refusal(plan.task.background);
  if (processes === undefined || refusal !== undefined) return refused(refusal ?? "it has no process");
  return {
    type: "opened",
    execution: { plan, history: [] },
    executor: { execute: ({ plan: own }, control, signal) => processes.run(own, control, signal) },
    control: {},
    outputFile: processes.outputFile(plan.agent.id),
    sinks: [],
    news: [],
    async close(state) {
      if (state !== undefined && definition?.behaviour?.onEnd !== undefined)
        await reportEnd(state, definition, parts.report);
      await parts.release(plan.agent.id);
      return undefined;
    },
  };
}

/** A program's definition whose `onEnd` the plan names. */
async function definitionOf(
  { functions = [], task }: ChildPlan,
  { look }: ChildSourceParts,
): Promise<{ readonly definition?: AgentDefinition }> {
  if (!functions.some(({ kind }) => kind === "onEnd")) return {};
  const found = (await look()).discovered.registry.find(task.agentType);
  return found.type === "found" ? { definition: found.agent.definition } : {};
}

/** The parent's conversation, for a child that starts with it. */
async function forkedHistory(
  plan: ChildPlan,
  { parts, isElsewhere }: { readonly parts: ChildSourceParts; readonly isElsewhere: boolean },
): Promise<readonly Message[]> {
  if (!plan.task.forksContext) return [];
  if (!isElsewhere || plan.history === undefined) return parts.messages();
  return (await parts.loadHistory?.(plan.history)) ?? [];
}

async function close(
  state: TaskState | undefined,
  {
    id,
    record,
    held,
    parts,
    definition,
  }: {
    readonly id: string;
    readonly record: ChildRecord;
    readonly held: Held;
    readonly parts: ChildSourceParts;
    readonly definition: AgentDefinition | undefined;
  },
): Promise<KeptWorktree | undefined> {
  if (state !== undefined && definition?.behaviour?.onEnd !== undefined)
    await reportEnd(state, definition, parts.report);
  record.leaveQueue?.();
  // A caller that learns of its end must not find it cut off later, and have it do its work again.
  await record.close();
  await Promise.all([parts.release(id), held.servers?.release()]);
  return held.worktree?.finish();
}

async function reportEnd(
  state: TaskState,
  definition: AgentDefinition,
  report: ChildSourceParts["report"],
): Promise<void> {
  try {
    await describeDefinition(state, definition);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    report?.(`The \`onEnd\` of the agent ${definition.name} failed: ${why}`);
  }
}

/** What is held for a child that is not opened after all is given back. */
async function unlessOpened<Outcome extends { readonly type: string }>(
  held: Held,
  open: () => Promise<Outcome>,
): Promise<Outcome> {
  let isOpened = false;
  try {
    const outcome = await open();
    isOpened = outcome.type !== "refused";
    return outcome;
  } finally {
    if (!isOpened) {
      await held.servers?.release();
      await held.worktree?.finish();
    }
  }
}

/** Those who follow an agent while it runs: viewers in other processes, and those who measure. */
export function followersOf(
  plan: RunPlan,
  { liveText, runtime: { observer } }: Pick<AgentServices, "liveText" | "runtime">,
): readonly EventSink[] {
  const agentId = "task" in plan ? plan.agent.id : "main";
  return [
    { types: liveTextEvents, take: (event: RunEvent) => liveText.hear(agentId, event) },
    ...(observer === undefined ? [] : [{ take: (event: RunEvent) => observer.event(plan, event) }]),
  ];
}
