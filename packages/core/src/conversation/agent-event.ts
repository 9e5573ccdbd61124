import type { PermissionDenial, RunEnding, RunEvent, RunTotals } from "./run-event.ts";
import { addUsage, noUsage, type Usage } from "./usage.ts";

/** The id of the main agent in events and results. */
export const mainAgentId = "main";

/** Which agent of the tree an event belongs to. */
export interface EventSource {
  /** `main`, or the id of a child. */
  readonly agentId: string;
  /** The agent that started it; absent for the agent whose run this is. */
  readonly parentId?: string;
  readonly agentType?: string;
}

/** An event of any agent of a run. */
export type AgentEvent = RunEvent & EventSource;

/** Tokens, calls and cost of one model. */
export interface ModelTotals {
  readonly usage: Usage;
  /** Answers, those that broke off and summaries included. */
  readonly calls: number;
  /** US dollars; absent when the price is not known. */
  readonly costUsd?: number;
}

/** What one agent of a tree took. */
export interface AgentTotals extends EventSource {
  readonly status: RunEnding["status"] | "running" | "idle";
  readonly totals: RunTotals;
  /** The same by model. */
  readonly models: Readonly<Record<string, ModelTotals>>;
}

/** A denial, with the agent whose call it was. */
export type AgentDenial = PermissionDenial & Pick<EventSource, "agentId">;

/** The sums of a tree, by agent and by model. */
export interface TreeTotals {
  readonly agents: readonly AgentTotals[];
  readonly models: Readonly<Record<string, ModelTotals>>;
  readonly denials: readonly AgentDenial[];
}

/** The events that change the sums of a tree. */
export const countedEvents: ReadonlySet<RunEvent["type"]> = new Set([
  "turn-started",
  "assistant-answered",
  "answer-lost",
  "context-compacted",
  "call-finished",
  "run-idled",
  "run-ended",
]);

/** Adds up the events of a tree as they come; those that are not counted change nothing. */
export function createTreeFold(): { add(event: AgentEvent): void; totals(): TreeTotals } {
  const agents = new Map<string, AgentTotals>();
  const models = new Map<string, ModelTotals>();
  const denials: AgentDenial[] = [];

  function change(source: EventSource, next: (before: AgentTotals) => Partial<AgentTotals>): void {
    const { agentId, parentId, agentType } = source;
    const before = agents.get(agentId) ?? {
      agentId,
      parentId,
      agentType,
      status: "running",
      totals: noTotals,
      models: {},
    };
    agents.set(agentId, { ...before, ...next(before) });
  }

  function pay(event: Extract<AgentEvent, { readonly usage: Usage; readonly model: string }>): void {
    const { model, usage, costUsd } = event;
    models.set(model, addCall(models.get(model), event));
    change(event, ({ totals, models: own }) => {
      const { costUsd: soFar, ...others } = totals;
      const before = Object.hasOwn(own, model) ? own[model] : undefined;
      return {
        models: Object.fromEntries([...Object.entries(own), [model, addCall(before, event)]]),
        totals: {
          ...others,
          usage: addUsage(totals.usage, usage),
          turns: totals.turns + (event.type === "assistant-answered" ? 1 : 0),
          ...(soFar === undefined || costUsd === undefined ? {} : { costUsd: soFar + costUsd }),
        },
      };
    });
  }

  return {
    add(event) {
      switch (event.type) {
        case "turn-started":
          return change(event, () => ({ status: "running" }));
        case "assistant-answered":
        case "answer-lost":
        case "context-compacted":
          return pay(event);
        case "call-finished":
          if (event.denied !== undefined)
            denials.push({ call: event.call, reason: event.denied, agentId: event.agentId });
          return change(event, ({ totals }) => ({
            totals: { ...totals, toolUses: totals.toolUses + 1 },
          }));
        case "run-idled":
          return change(event, () => ({ status: "idle" }));
        case "run-ended": {
          // The rest was counted as it came; an agent that is resumed ends several times.
          const { status, totals: last } = event.ending;
          return change(event, ({ totals }) => ({
            status,
            totals: {
              ...totals,
              durationMs: totals.durationMs + last.durationMs,
              modelMs: totals.modelMs + last.modelMs,
            },
          }));
        }
        default:
      }
    },
    totals: () => ({
      agents: [...agents.values()],
      models: Object.fromEntries(models),
      denials: [...denials],
    }),
  };
}

function addCall(
  paid: ModelTotals = { usage: noUsage, calls: 0, costUsd: 0 },
  { usage, costUsd }: { readonly usage: Usage; readonly costUsd?: number | undefined },
): ModelTotals {
  const { costUsd: before, ...rest } = paid;
  return {
    ...rest,
    usage: addUsage(paid.usage, usage),
    calls: paid.calls + 1,
    ...(before === undefined || costUsd === undefined ? {} : { costUsd: before + costUsd }),
  };
}

const noTotals: RunTotals = {
  usage: noUsage,
  turns: 0,
  toolUses: 0,
  durationMs: 0,
  modelMs: 0,
  costUsd: 0,
};
