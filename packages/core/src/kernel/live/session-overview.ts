import { contextTokens } from "../../conversation/usage.ts";
import type { InspectedAgent, Inspection, Span, Step } from "../../inspection/inspection.ts";
import { bounded } from "../../inspection/read-answer.ts";
import type { BarKind } from "../../inspection/time-axis.ts";
import { spanOf } from "../../inspection/totals-of.ts";
import { lookUpModel } from "../../models/look-up-model.ts";
import type { MergeSummary } from "./merge-view.ts";
import type { StudioQuestion } from "./session-update.ts";
import type { WorkflowSummary } from "./workflow-view.ts";

/** An inspection without the single steps, small enough to be sent for a session of a thousand agents. */
export interface SessionOverview extends Omit<Inspection, "agents"> {
  /** In an update, only those that have changed. */
  readonly agents: readonly OverviewAgent[];
  /** Those that wait first; absent where there were none. */
  readonly questions?: readonly StudioQuestion[];
  /** Absent where its children were never merged. */
  readonly merge?: MergeSummary;
  /** Runs of workflows, the newest first; absent where there were none. */
  readonly workflows?: readonly WorkflowSummary[];
  /** What turns cost by the tools they called: the cost of a turn is divided by its calls. The dearest first; no tool: no call. */
  readonly costByTool: readonly { readonly tool?: string; readonly costUsd: number }[];
}

/** `agents`: a call that waits for agents it started; `waiting`: for a person. */
export type OverviewBarKind = BarKind | "waiting" | "agents";

export interface OverviewBar extends Span {
  readonly kind: OverviewBarKind;
}

export interface OverviewAgent extends Omit<InspectedAgent, "steps"> {
  readonly stepCount: number;
  /** What it did when, in milliseconds since 1970; neighbours that could not be told apart are one. */
  readonly bars: readonly OverviewBar[];
  /** How full its context window was at its last answer. */
  readonly context?: { readonly tokens: number; readonly window: number; readonly parts?: ContextParts };
}

/** What fills a context window, as the provider counted it: each request holds what the one before had, its answer, and what came since. */
export interface ContextParts {
  /** What the conversation, or its summary, began with: system prompt, tools, instructions and the first prompt. */
  readonly start: number;
  readonly answers: number;
  /** Results of calls and later messages. */
  readonly results: number;
}

const maxPrompt = 300;
const maxResult = 300;
/** Bars closer than this part of the whole time cannot be told apart; of many agents fewer can be sent. */
const maxResolution = 800;
const leastResolution = 80;
const maxBars = 40_000;

/** Pure. The main agent's answer stays whole: it is what people look for first. */
export function overviewOf(inspection: Inspection): SessionOverview {
  const starts = inspection.agents.flatMap(({ runs }) => runs);
  const from = starts.reduce((least, span) => Math.min(least, span.from), Number.POSITIVE_INFINITY);
  const to = starts.reduce((most, span) => Math.max(most, span.to), 0);
  const perAgent = maxBars / Math.max(1, inspection.agents.length);
  const resolution = Math.min(maxResolution, Math.max(leastResolution, perAgent));
  const gap = Math.max(1, (to - from) / resolution);
  return {
    ...inspection,
    agents: inspection.agents.map((agent) => overviewAgent(agent, gap)),
    costByTool: costByTool(inspection.agents),
  };
}

function overviewAgent(agent: InspectedAgent, gap: number): OverviewAgent {
  const { steps, prompt, result, ...rest } = agent;
  const isMain = agent.id === "main";
  const context = contextOf(agent);
  return {
    ...rest,
    ...(prompt === undefined ? {} : { prompt: isMain ? prompt : bounded(prompt, maxPrompt) }),
    ...(result === undefined ? {} : { result: isMain ? result : bounded(result, maxResult) }),
    stepCount: steps.length,
    bars: mergeBars(overviewBars(agent), gap),
    context,
  };
}

function contextOf({ steps }: InspectedAgent): OverviewAgent["context"] {
  const last = steps.findLast((step) => step.type === "turn" || step.type === "compaction");
  if (last === undefined) return undefined;
  const model = last.model ?? "unknown";
  const { contextWindow: window } = lookUpModel(model).facts;
  if (last.type === "compaction")
    return last.postTokens === undefined ? undefined : { tokens: last.postTokens, window };
  return { tokens: contextTokens(last.usage) + last.usage.outputTokens, window, parts: partsOf(steps) };
}

function partsOf(steps: readonly Step[]): ContextParts {
  const begin = steps.findLastIndex(({ type }) => type === "compaction") + 1;
  const turns = steps.slice(begin).filter((step) => step.type === "turn");
  const [first, ...later] = turns.map(({ usage }) => ({
    read: contextTokens(usage),
    written: usage.outputTokens,
  }));
  if (first === undefined) return { start: 0, answers: 0, results: 0 };
  const parts = { start: first.read, answers: first.written, results: 0 };
  let held = first.read + first.written;
  for (const { read, written } of later) {
    // What is no longer sent, such as thinking, was of the answers before.
    if (read >= held) parts.results += read - held;
    else parts.answers = Math.max(0, parts.answers - (held - read));
    parts.answers += written;
    held = read + written;
  }
  return parts;
}

/** What an agent did when; runs as a whole lie below what filled them. */
export function overviewBars({
  runs,
  steps,
  inFlight = [],
}: Pick<InspectedAgent, "runs" | "steps"> &
  Partial<Pick<InspectedAgent, "inFlight">>): readonly OverviewBar[] {
  const asked = new Set(
    inFlight.flatMap((one) => (one.type === "call" && one.askedSince !== undefined ? [one.callId] : [])),
  );
  return [
    ...runs.map((run): OverviewBar => ({ ...run, kind: "other" })),
    ...steps.flatMap((step) => [
      ...spanOf(step)
        .map((span) => afterAnswer(step, span))
        .flatMap((span): readonly OverviewBar[] => [
          { ...span, kind: step.type === "call" && asked.has(step.callId) ? "waiting" : kindOf(step) },
          ...badEnd(step, span),
        ]),
      ...waitOf(step),
    ]),
  ];
}

/** The calls of an agent that its person is asked about where the session runs. */
export function askedOf({
  inFlight,
}: Pick<InspectedAgent, "inFlight">): readonly { readonly askedSince: number }[] {
  return inFlight.flatMap((one) =>
    one.type === "call" && one.askedSince !== undefined ? [{ askedSince: one.askedSince }] : [],
  );
}

function kindOf(step: Step): OverviewBarKind {
  if (step.type !== "call") return "model";
  return step.agentId === undefined ? "tool" : "agents";
}

/** A call that was asked about ran when it had been answered. */
function afterAnswer(step: Step, { from, to }: Span): Span {
  const waited = step.type === "call" && step.asked === true ? (step.decidedMs ?? 0) : 0;
  return { from: from + waited, to: to + waited };
}

/** A call that did not succeed took its time like any other; how it went is a mark at its end. */
function badEnd(step: Step, { to }: Span): readonly OverviewBar[] {
  if (step.type !== "call" || (step.outcome !== "refused" && step.outcome !== "failed")) return [];
  return [{ kind: step.outcome, from: to, to }];
}

function waitOf(step: Step): readonly OverviewBar[] {
  if (step.type !== "call" || step.asked !== true || step.at === undefined) return [];
  return [{ kind: "waiting", from: step.at, to: step.at + (step.decidedMs ?? 0) }];
}

/** Neighbours of one kind that are closer than `gap` are one. */
export function mergeBars(bars: readonly OverviewBar[], gap: number): readonly OverviewBar[] {
  const merged = new Map<OverviewBarKind, { kind: OverviewBarKind; from: number; to: number }[]>();
  for (const bar of bars.toSorted((a, b) => a.from - b.from)) {
    const row = merged.get(bar.kind) ?? [];
    merged.set(bar.kind, row);
    const last = row.at(-1);
    if (last !== undefined && bar.from - last.to < gap) last.to = Math.max(last.to, bar.to);
    else row.push({ ...bar });
  }
  return [...merged.values()].flat();
}

function costByTool(agents: readonly InspectedAgent[]): SessionOverview["costByTool"] {
  const costs = new Map<string | undefined, number>();
  const add = (tool: string | undefined, cost: number): void =>
    void costs.set(tool, (costs.get(tool) ?? 0) + cost);
  for (const { steps } of agents) {
    let cost = 0;
    let tools: string[] = [];
    const close = (): void => {
      for (const tool of tools) add(tool, cost / tools.length);
      if (tools.length === 0 && cost > 0) add(undefined, cost);
      [cost, tools] = [0, []];
    };
    for (const step of steps) {
      if (step.type === "call") tools.push(step.tool);
      else if (step.type === "turn" || step.type === "compaction" || step.type === "lost") {
        close();
        cost = step.costUsd ?? 0;
      }
    }
    close();
  }
  return [...costs]
    .map(([tool, costUsd]) => (tool === undefined ? { costUsd } : { tool, costUsd }))
    .toSorted((a, b) => b.costUsd - a.costUsd);
}
