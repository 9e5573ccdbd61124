import type {
  Band,
  BatchQuote,
  QuoteBasis,
  QuotedAgent,
  QuotedBands,
  QuotedRights,
} from "@retinue/gate/batch-quote.ts";

import { describeTokens } from "./describe-duration.ts";
import type { InspectedQuote } from "./inspection.ts";

export type {
  Band,
  BatchQuote,
  QuoteBasis,
  QuotedAgent,
  QuotedBands,
} from "@retinue/gate/batch-quote.ts";

/** `$0.021`, `$1.20`, `$35`. */
export function describeMoney(usd: number): string {
  if (usd === 0) return "$0";
  if (usd < 0.0005) return "<$0.001";
  if (usd < 0.0995) return `$${usd.toFixed(3)}`;
  return `$${usd < 99.5 ? usd.toFixed(2) : usd.toFixed(0)}`;
}

/** Expected numbers of tokens are no whole numbers. */
export function describeTokenCount(tokens: number): string {
  return describeTokens(Math.round(tokens));
}

/** `20 s`, `4 min`, `2.5 h`. */
export function describeTime(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 99.5) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 99.5 * 60 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** `likely $1.20 ($0.60 to $2.80), 900k tokens (400k to 2.0M), 4 min (2 min to 9 min)`. */
export function describeBands({ costUsd, tokens, durationMs }: Omit<QuotedBands, "basis">): string {
  const money = costUsd === undefined ? "at an unknown price" : describeBand(costUsd, describeMoney);
  return `likely ${money}, ${describeBand(tokens, describeTokenCount, " tokens")}, ${describeBand(durationMs, describeTime)}`;
}

function describeBand({ low, likely, high }: Band, show: (value: number) => string, unit = ""): string {
  return `${show(likely)}${unit} (${show(low)} to ${show(high)})`;
}

/** What the numbers rest on, in few words. */
export function describeBasis(basis: QuoteBasis): string {
  if (basis.from === "estimate") return "estimate";
  const runs = basis.runs === 1 ? "1 run" : `${basis.runs} runs`;
  const { coverage } = basis;
  const right = coverage === undefined ? "" : `; ${coverage.inside} of ${coverage.of} quotes were right`;
  return `${runs} on this machine${right}`;
}

/** A batch as a person sees it before it starts, for callers that lay it out themselves. */
export interface QuoteParts {
  /** The sum, and what is not in it. */
  readonly sum: readonly string[];
  /** What the agents may do, each with its label. */
  readonly rights: readonly (readonly [string, string])[];
  /** The heads of the columns, then a row for each kind of agent. */
  readonly table: readonly (readonly string[])[];
  /** What has no room, and requests that would not start. */
  readonly rest: readonly string[];
}

/** The sum, a line for each agent, and what they may do. At most 74 columns. */
export function quoteRows(quote: BatchQuote, maxAgents = 12): readonly string[] {
  const { sum, rights, table, rest } = quoteParts(quote, maxAgents);
  // What decides comes first: where there is no room for all, the rest is cut.
  return [
    ...sum,
    ...rights.flatMap(rightRows),
    "",
    ...inColumns(table),
    ...rest.flatMap((line) => wrap(line, 72)),
  ];
}

export function quoteParts({ agents, total, unpriced, refused }: BatchQuote, maxAgents = 12): QuoteParts {
  const shown = grouped(agents);
  const table = [
    ["agent", "likely", "low to high", "tokens", "time", "from"],
    ...shown
      .slice(0, maxAgents)
      .map(({ agent, count }) => [
        cut(count === 1 ? agent.agentType : `${count}x ${agent.agentType}`, 22),
        agent.costUsd === undefined ? "?" : describeMoney(agent.costUsd.likely),
        agent.costUsd === undefined
          ? "unknown"
          : `${describeMoney(agent.costUsd.low)} to ${describeMoney(agent.costUsd.high)}`,
        describeTokenCount(agent.tokens.likely),
        describeTime(agent.durationMs.likely),
        describeBasisShort(agent.basis),
      ]),
  ];
  const left = shown.slice(maxAgents).reduce((sum, { count }) => sum + count, 0);
  const own = (count: number, text: string): readonly string[] => (count === 0 ? [] : [text]);
  const { costUsd, tokens, durationMs } = total;
  const money = costUsd === undefined ? "at an unknown price" : describeBand(costUsd, describeMoney);
  const sum = [
    `${agents.length === 1 ? "1 agent, likely" : `${agents.length} agents, together likely`} ${money}`,
    `${describeBand(tokens, describeTokenCount, " tokens")}, ${describeBand(durationMs, describeTime)}`,
    ...own(
      unpriced,
      `The price of ${unpriced === agents.length ? "their models" : `the model of ${unpriced}`} is not known, so money says less.`,
    ),
  ];
  const rest = [
    ...own(left, `and ${left} more`),
    ...refused
      .slice(0, maxAgents)
      .map(({ agentType, reason }) => oneLine(`would not start: ${agentType}: ${reason}`)),
  ];
  return { sum, rights: rightsOf(agents), table, rest };
}

function describeBasisShort(basis: QuoteBasis): string {
  return basis.from === "estimate" ? "estimate" : `${basis.runs} run${basis.runs === 1 ? "" : "s"}`;
}

/** `$0.60 to $2.80, likely $1.20`. */
export function describeRange({ low, likely, high }: Band, show: (value: number) => string): string {
  return `${show(low)} to ${show(high)}, likely ${show(likely)}`;
}

/** Agents of one type with the same figures are one line, each line for one agent of them. */
function grouped(
  agents: readonly QuotedAgent[],
): readonly { readonly agent: QuotedAgent; readonly count: number }[] {
  const groups = new Map<string, { agent: QuotedAgent; count: number }>();
  for (const agent of agents) {
    const { agentType, model, tokens, costUsd } = agent;
    const key = JSON.stringify([
      agentType,
      model,
      describeTokenCount(tokens.likely),
      costUsd && describeMoney(costUsd.likely),
    ]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { agent, count: 1 });
    else group.count += 1;
  }
  return [...groups.values()];
}

const respects = [
  ["write", "may write"],
  ["run", "may run"],
  ["reach", "may reach"],
] as const;

/** What was quoted for a run and what it took: `quoted $0.20 to $0.60, took $0.34`. */
export function describeQuoted({ costUsd, tokens, durationMs, real, isInside }: InspectedQuote): string {
  const [band, took, show] =
    costUsd !== undefined && real.costUsd !== undefined
      ? [costUsd, real.costUsd, describeMoney]
      : [tokens, real.tokens, describeTokenCount];
  const unit = show === describeMoney ? "" : " tokens";
  const time = `${describeTime(durationMs.low)} to ${describeTime(durationMs.high)}, took ${describeTime(real.durationMs)}`;
  return `quoted ${show(band.low)} to ${show(band.high)}${unit}, took ${show(took)}${isInside ? "" : ", which is outside"}; ${time}`;
}

function rightRows([label, text]: readonly [string, string]): readonly string[] {
  return wrap(text, 62).map((line, at) => `${at === 0 ? `${label}:`.padEnd(11) : " ".repeat(11)}${line}`);
}

type RightsOfAgent = Pick<QuotedAgent, "agentType" | "rights">;

function rightsOf(agents: readonly RightsOfAgent[]): QuoteParts["rights"] {
  return respects.map(([key, label]) => {
    const able = agents.filter(({ rights }) => rights[key].level !== "none");
    if (able.length === 0) return [label, "none of them"];
    const tools = [...new Set(able.flatMap(({ rights }) => rights[key].tools))];
    const types = [...new Set(able.map(({ agentType, rights }) => `${agentType}${asks(rights)}`))];
    return [label, `${listed(types, 6)}: ${listed(tools, 8)}`];
  });
}

/** Which mode decides about what no rule allows. */
function asks({ mode }: QuotedRights): string {
  return mode === "default" ? "" : ` (${mode})`;
}

function listed(names: readonly string[], most: number): string {
  const rest = names.length - most;
  return rest > 0 ? `${names.slice(0, most).join(", ")} and ${rest} more` : names.join(", ");
}

function inColumns(table: readonly (readonly string[])[]): readonly string[] {
  const widths = (table[0] ?? []).map((_, at) => Math.max(...table.map((row) => row[at]?.length ?? 0)));
  return table.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

function cut(long: string, width: number): string {
  const text = oneLine(long);
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** Names that a model wrote may hold line breaks, which must not pretend to be rows. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").slice(0, 300);
}

function wrap(text: string, width: number): readonly string[] {
  const rows: string[] = [];
  for (const word of text.split(" ")) {
    const last = rows.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      rows[rows.length - 1] = `${last} ${word}`;
    else rows.push(word);
  }
  return rows;
}
