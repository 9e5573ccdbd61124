import type { Band, QuoteCoverage, QuotedBands } from "@retinue/gate/batch-quote.ts";
import { contextTokens, costOf, noUsage, type Price, type Usage } from "../conversation/usage.ts";

/** What one run took, from its record. */
export interface PastRun {
  readonly usage: Usage;
  /** US dollars; absent where the price was not known. */
  readonly costUsd?: number;
  readonly durationMs: number;
  readonly model?: string;
  /** What had been quoted for it. */
  readonly quoted?: QuotedBands;
}

/** What is known of a run before it starts. */
export interface RunOutlook {
  readonly model: string;
  readonly price?: Price;
  /** What every request begins with: system prompt, tools and task. */
  readonly prefixTokens: number;
  readonly tools: "none" | "reading" | "acting";
  readonly maxTurns?: number;
  /** What the run and its tree may take; nothing is expected beyond that. */
  readonly most?: { readonly costUsd?: number; readonly tokens?: number; readonly durationMs?: number };
}

/** What a run is expected to take: from runs of the same agent type where there are any, else from what is known of it. */
export function predictRun(outlook: RunOutlook, past: readonly PastRun[]): QuotedBands {
  const runs = past.filter(({ usage }) => tokensOf(usage) > 0);
  const bands = runs.length === 0 ? estimate(outlook) : bandsOf(runs, outlook);
  const { costUsd, tokens, durationMs } = bands;
  const { most = {} } = outlook;
  return {
    ...(costUsd === undefined ? {} : { costUsd: within(costUsd, most.costUsd) }),
    tokens: within(tokens, most.tokens),
    durationMs: within(durationMs, most.durationMs),
    basis: bands.basis,
  };
}

function within({ low, likely, high }: Band, most = Number.POSITIVE_INFINITY): Band {
  return { low: Math.min(low, most), likely: Math.min(likely, most), high: Math.min(high, most) };
}

function tokensOf(usage: Usage): number {
  return contextTokens(usage) + usage.outputTokens;
}

function bandsOf(runs: readonly PastRun[], { model, price }: RunOutlook): QuotedBands {
  const widening = wideningOf(runs);
  const band = (values: readonly number[]): Band => bandOfValues(values, widening);
  const costs = runs.flatMap((run) => costNow(run, model, price) ?? []);
  const coverage = coverageOf(runs);
  return {
    ...(costs.length === 0 ? {} : { costUsd: band(costs) }),
    tokens: band(runs.map(({ usage }) => tokensOf(usage))),
    durationMs: band(runs.map(({ durationMs }) => durationMs)),
    basis: { from: "history", runs: runs.length, coverage },
  };
}

/** What the run would cost with the model that is planned now. */
function costNow(run: PastRun, model: string, price: Price | undefined): number | undefined {
  if (run.costUsd !== undefined && (run.model === undefined || run.model === model)) return run.costUsd;
  if (price === undefined) return undefined;
  // A sum over many requests says nothing of how long each prompt was.
  const { longPrompt: _dearer, ...usual } = price;
  return costOf(run.usage, usual);
}

/** How much a few runs are believed to vary before they show it: about a factor of two, with the weight of three runs. */
const before = { runs: 3, deviation: 0.6 } as const;
/** What costs nothing at all has no logarithm. */
const least = 1e-6;

/**
 * The range in which 90 of 100 further values are expected, if logarithms of values are distributed normally; with few values
 * it is wider, as the t distribution says.
 */
export function bandOfValues(values: readonly number[], widening = 1): Band {
  const logs = values.map((value) => Math.log(Math.max(value, least)));
  const count = logs.length;
  const mean = logs.reduce((sum, log) => sum + log, 0) / count;
  const squares = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0);
  const freedom = before.runs + count - 1;
  const deviation = Math.sqrt((before.runs * before.deviation ** 2 + squares) / freedom);
  const half = studentT(freedom) * deviation * Math.sqrt(1 + 1 / count) * widening;
  if (values.every((value) => value === 0)) return { low: 0, likely: 0, high: 0 };
  return { low: Math.exp(mean - half), likely: Math.exp(mean), high: Math.exp(mean + half) };
}

/** The value that a t distribution exceeds in 5 of 100 cases. */
function studentT(freedom: number): number {
  return 1.645 + 1.52 / freedom + 1.42 / freedom ** 2;
}

/**
 * How often the real value was inside a band that earlier runs had given; money where it was quoted, else tokens. An
 * estimate that missed says nothing of such bands.
 */
export function coverageOf(runs: readonly PastRun[]): QuoteCoverage | undefined {
  const errors = runs.flatMap((run) => errorOf(run) ?? []);
  if (errors.length === 0) return undefined;
  return { inside: errors.filter((error) => error <= 1).length, of: errors.length };
}

/** The real value of a quoted run, and its band, in what was quoted first: money, else tokens. */
export function quotedAndReal({ quoted, costUsd, usage }: PastRun):
  | {
      readonly band: Band;
      readonly real: number;
      readonly unit: "usd" | "tokens";
    }
  | undefined {
  if (quoted === undefined) return undefined;
  return quoted.costUsd !== undefined && costUsd !== undefined
    ? { band: quoted.costUsd, real: costUsd, unit: "usd" }
    : { band: quoted.tokens, real: tokensOf(usage), unit: "tokens" };
}

export function isInside({ low, high }: Band, real: number): boolean {
  const slack = Math.abs(high) * 1e-9;
  return real >= low - slack && real <= high + slack;
}

/** How far the real value was from the likely one, as a part of the way to the end of the band; up to 1 is inside. */
function errorOf(run: PastRun): number | undefined {
  const compared = quotedAndReal(run);
  if (compared === undefined || run.quoted?.basis.from !== "history") return undefined;
  const { band, real } = compared;
  if (isInside(band, real)) return 0.5;
  const log = (value: number): number => Math.log(Math.max(value, least));
  const end = real > band.likely ? band.high : band.low;
  const way = Math.abs(log(end) - log(band.likely));
  return way === 0 ? maxWidening : Math.abs(log(real) - log(band.likely)) / way;
}

const maxWidening = 3;
/** Fewer errors say nothing about how often the band is missed. */
const fewestErrors = 5;

/** Bands that were missed too often become wider: so far that nine of ten of the real values would have been inside. */
function wideningOf(runs: readonly PastRun[]): number {
  const errors = runs.flatMap((run) => errorOf(run) ?? []).sort((a, b) => a - b);
  if (errors.length < fewestErrors) return 1;
  const reached = errors[Math.ceil(errors.length * 0.9) - 1] ?? 1;
  return Math.min(maxWidening, Math.max(1, reached));
}

interface RunShape {
  readonly turns: number;
  /** What a turn adds to the conversation, its answer included. */
  readonly growth: number;
  readonly output: number;
  readonly secondsPerTurn: number;
}

/** How runs of an agent go of which no run is known; low, likely, high. */
const courses: Readonly<Record<RunOutlook["tools"], readonly [RunShape, RunShape, RunShape]>> = {
  none: [
    { turns: 1, growth: 0, output: 200, secondsPerTurn: 3 },
    { turns: 1, growth: 0, output: 800, secondsPerTurn: 15 },
    { turns: 2, growth: 2000, output: 3000, secondsPerTurn: 60 },
  ],
  reading: [
    { turns: 2, growth: 700, output: 150, secondsPerTurn: 3 },
    { turns: 7, growth: 2000, output: 350, secondsPerTurn: 8 },
    { turns: 25, growth: 4000, output: 700, secondsPerTurn: 20 },
  ],
  acting: [
    { turns: 3, growth: 700, output: 200, secondsPerTurn: 3 },
    { turns: 14, growth: 2000, output: 450, secondsPerTurn: 12 },
    { turns: 45, growth: 4000, output: 900, secondsPerTurn: 40 },
  ],
};

function estimate(outlook: RunOutlook): QuotedBands {
  const [low, likely, high] = courses[outlook.tools].map((course) => usageOf(course, outlook)) as [
    Expected,
    Expected,
    Expected,
  ];
  const band = (read: (expected: Expected) => number): Band => ({
    low: read(low),
    likely: read(likely),
    high: read(high),
  });
  const { price } = outlook;
  return {
    ...(price === undefined
      ? {}
      : { costUsd: band(({ turns }) => turns.reduce((sum, usage) => sum + costOf(usage, price), 0)) }),
    tokens: band(({ turns }) => turns.reduce((sum, usage) => sum + tokensOf(usage), 0)),
    durationMs: band(({ durationMs }) => durationMs),
    basis: { from: "estimate" },
  };
}

interface Expected {
  readonly turns: readonly Usage[];
  readonly durationMs: number;
}

/** Every turn reads the conversation so far from the cache and writes what is new in it. */
function usageOf(
  course: RunShape,
  { prefixTokens, maxTurns = Number.POSITIVE_INFINITY }: RunOutlook,
): Expected {
  const count = Math.max(1, Math.min(course.turns, maxTurns));
  const { growth, output: outputTokens, secondsPerTurn } = course;
  const turns = Array.from({ length: count }, (_, at): Usage => {
    if (at === 0) return { ...noUsage, cacheWriteTokens: prefixTokens, outputTokens };
    const cacheReadTokens = prefixTokens + (at - 1) * growth;
    return { ...noUsage, cacheReadTokens, cacheWriteTokens: growth, outputTokens };
  });
  return { turns, durationMs: count * secondsPerTurn * 1000 };
}
