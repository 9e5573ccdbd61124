import { isRecord } from "@retinue/base/foundation/json-record.ts";

/** A range with the value in it that is most likely. */
export interface Band {
  readonly low: number;
  readonly likely: number;
  readonly high: number;
}

/** What the run of one agent is expected to take. */
export interface QuotedBands {
  /** US dollars; absent where the price of its model is not known. */
  readonly costUsd?: Band;
  readonly tokens: Band;
  readonly durationMs: Band;
  readonly basis: QuoteBasis;
}

/** What the bands were made from: recorded runs of the same agent type, or its prompt, tools, turns and prices. */
export type QuoteBasis =
  | { readonly from: "history"; readonly runs: number; readonly coverage?: QuoteCoverage }
  | { readonly from: "estimate" };

/** Of how many runs that were quoted before the real value was inside the band. */
export interface QuoteCoverage {
  readonly inside: number;
  readonly of: number;
}

/** How far the tools of an agent go in one respect, with the tools that reach there. */
export interface QuotedRight {
  readonly level: "none" | "narrowed" | "full";
  readonly tools: readonly string[];
}

export interface QuotedRights {
  readonly mode: string;
  /** Files. */
  readonly write: QuotedRight;
  /** Commands. */
  readonly run: QuotedRight;
  /** The network, and MCP servers. */
  readonly reach: QuotedRight;
}

export interface QuotedAgent extends QuotedBands {
  readonly agentType: string;
  readonly description: string;
  readonly model: string;
  readonly rights: QuotedRights;
}

/** What a batch of agents is expected to take, and what they may do, before any of them starts. */
export interface BatchQuote {
  readonly agents: readonly QuotedAgent[];
  /** In sum; the time is that of agents that run at the same time. */
  readonly total: Omit<QuotedBands, "basis">;
  /** How many agents have a model without a known price, and are not in the sum of the money. */
  readonly unpriced: number;
  /** Which setting asks about it; absent where it is only shown. */
  readonly why?: string;
  /** Requests that would not start, and why. */
  readonly refused: readonly { readonly agentType: string; readonly reason: string }[];
}

/** Undefined for what is no band. */
export function readBand(value: unknown): Band | undefined {
  if (!isRecord(value)) return undefined;
  const { low, likely, high } = value;
  const isBand = [low, likely, high].every((part) => typeof part === "number" && part >= 0);
  // Each of the three was looked at.
  return isBand ? { low: low as number, likely: likely as number, high: high as number } : undefined;
}

/** Undefined for what is no quote of one run. */
export function readQuotedBands(value: unknown): QuotedBands | undefined {
  if (!isRecord(value)) return undefined;
  const tokens = readBand(value["tokens"]);
  const durationMs = readBand(value["durationMs"]);
  const costUsd = readBand(value["costUsd"]);
  const basis = readBasis(value["basis"]);
  if (tokens === undefined || durationMs === undefined || basis === undefined) return undefined;
  return { costUsd, tokens, durationMs, basis };
}

function readBasis(value: unknown): QuoteBasis | undefined {
  if (!isRecord(value)) return undefined;
  const { from, runs, coverage } = value;
  if (from === "estimate") return { from };
  if (from !== "history" || typeof runs !== "number") return undefined;
  if (!isRecord(coverage)) return { from, runs };
  const { inside, of } = coverage;
  return typeof inside === "number" && typeof of === "number"
    ? { from, runs, coverage: { inside, of } }
    : { from, runs };
}

/** Undefined for what is no quote of a batch. */
export function readBatchQuote(value: unknown): BatchQuote | undefined {
  if (!isRecord(value) || !isRecord(value["total"]) || !Array.isArray(value["agents"])) return undefined;
  const total = readQuotedBands({ ...value["total"], basis: { from: "estimate" } });
  const agents = value["agents"].map(readQuotedAgent);
  const refused = readRefused(value["refused"]);
  const { unpriced } = value;
  if (total === undefined || refused === undefined || typeof unpriced !== "number") return undefined;
  const { basis: _basis, ...sums } = total;
  const whole = agents.filter((agent) => agent !== undefined);
  if (whole.length < agents.length) return undefined;
  const why = typeof value["why"] === "string" ? { why: value["why"] } : {};
  return { agents: whole, total: sums, unpriced, ...why, refused };
}

function readQuotedAgent(value: unknown): QuotedAgent | undefined {
  const bands = readQuotedBands(value);
  if (bands === undefined || !isRecord(value) || !isRecord(value["rights"])) return undefined;
  const { agentType, description, model, rights } = value;
  const { mode } = rights as Readonly<Record<string, unknown>>;
  const [write, run, reach] = [rights["write"], rights["run"], rights["reach"]].map(readRight);
  if (typeof agentType !== "string" || typeof description !== "string" || typeof model !== "string")
    return undefined;
  if (typeof mode !== "string" || write === undefined || run === undefined || reach === undefined)
    return undefined;
  return { agentType, description, model, ...bands, rights: { mode, write, run, reach } };
}

function readRight(value: unknown): QuotedRight | undefined {
  if (!isRecord(value) || !Array.isArray(value["tools"])) return undefined;
  const { level, tools } = value;
  if (level !== "none" && level !== "narrowed" && level !== "full") return undefined;
  const names = tools as readonly unknown[];
  return names.every((name) => typeof name === "string") ? { level, tools: names } : undefined;
}

function readRefused(value: unknown): BatchQuote["refused"] | undefined {
  if (!Array.isArray(value)) return undefined;
  const read = value.flatMap((each: unknown) =>
    isRecord(each) && typeof each["agentType"] === "string" && typeof each["reason"] === "string"
      ? [{ agentType: each["agentType"], reason: each["reason"] }]
      : [],
  );
  return read.length === value.length ? read : undefined;
}
