import { contextTokens } from "../../conversation/usage.ts";
import type { InspectedAgent, Inspection } from "../../inspection/inspection.ts";
import { bounded } from "../../inspection/read-answer.ts";
import { type Bar, barsOf } from "../../inspection/time-axis.ts";
import { lookUpModel } from "../../models/look-up-model.ts";
import type { StudioQuestion } from "./session-update.ts";

/** An inspection without the single steps, small enough to be sent for a session of a thousand agents. */
export interface SessionOverview extends Omit<Inspection, "agents"> {
  /** In an update, only those that have changed. */
  readonly agents: readonly OverviewAgent[];
  /** Those that wait first; absent where there were none. */
  readonly questions?: readonly StudioQuestion[];
}

export interface OverviewAgent extends Omit<InspectedAgent, "steps"> {
  readonly stepCount: number;
  /** What it did when, in milliseconds since 1970; neighbours that could not be told apart are one. */
  readonly bars: readonly Bar[];
  /** How full its context window was at its last answer. */
  readonly context?: { readonly tokens: number; readonly window: number };
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
  return { ...inspection, agents: inspection.agents.map((agent) => overviewAgent(agent, gap)) };
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
    bars: mergeBars(barsOf(agent, { durationMs: 0, place: (at) => at }), gap),
    ...(context === undefined ? {} : { context }),
  };
}

function contextOf({ steps }: InspectedAgent): OverviewAgent["context"] {
  const last = steps.findLast((step) => step.type === "turn" || step.type === "compaction");
  if (last === undefined) return undefined;
  const model = last.model ?? "unknown";
  const { contextWindow: window } = lookUpModel(model).facts;
  if (last.type === "compaction")
    return last.postTokens === undefined ? undefined : { tokens: last.postTokens, window };
  return { tokens: contextTokens(last.usage) + last.usage.outputTokens, window };
}

function mergeBars(bars: readonly Bar[], gap: number): readonly Bar[] {
  const merged = new Map<Bar["kind"], { kind: Bar["kind"]; from: number; to: number }[]>();
  for (const bar of bars.toSorted((a, b) => a.from - b.from)) {
    const row = merged.get(bar.kind) ?? [];
    merged.set(bar.kind, row);
    const last = row.at(-1);
    if (last !== undefined && bar.from - last.to < gap) last.to = Math.max(last.to, bar.to);
    else row.push({ ...bar });
  }
  return [...merged.values()].flat();
}
