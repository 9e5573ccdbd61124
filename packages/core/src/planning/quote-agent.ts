import { classOf } from "@retinue/config/formats/tool-words.ts";
import { builtinTools } from "@retinue/config/tools/builtin-tools.ts";
import type {
  Band,
  BatchQuote,
  QuotedAgent,
  QuotedBands,
  QuotedRight,
  QuotedRights,
} from "@retinue/gate/batch-quote.ts";
import { estimateTextTokens } from "../conversation/estimate-request-tokens.ts";
import type { Price } from "../conversation/usage.ts";
import type { ChildPlan } from "./agent-plan.ts";
import { levelOf, rightsOfPlan, type ToolRight } from "./agent-rights.ts";
import { type PastRun, predictRun } from "./predict-run.ts";

export interface QuoteFacts {
  /** Earlier runs of the same agent type; of any order. */
  readonly past: readonly PastRun[];
  /** Absent: it is not known. */
  readonly price?: Price | undefined;
  /** How many tokens the description of a tool takes; absent means the usual number. */
  readonly toolTokens?: ((tool: string) => number | undefined) | undefined;
}

/** What one planned agent is expected to take, and what it may do. */
export function quoteAgent(plan: ChildPlan, { past, price, toolTokens }: QuoteFacts): QuotedAgent {
  const { task, system, tools, maxTurns, limits = {}, treeLimits = {}, chosenModel } = plan;
  const texts = [...system, task.prompt].reduce((sum, text) => sum + estimateTextTokens(text), 0);
  const offered = tools.reduce((sum, { name }) => sum + (toolTokens?.(name) ?? defaultToolTokens), 0);
  const rights = quotedRights(plan);
  const acts = [rights.write, rights.run].some(({ level }) => level !== "none");
  const withTools = acts ? "acting" : "reading";
  const smaller = (one?: { readonly value: number }, other?: { readonly value: number }) => {
    const given = [one, other].flatMap((limit) => limit?.value ?? []);
    return given.length === 0 ? undefined : Math.min(...given);
  };
  const most = {
    costUsd: smaller(limits.costUsd, treeLimits.costUsd),
    tokens: smaller(limits.tokens, treeLimits.tokens),
    durationMs: smaller(limits.timeMs, treeLimits.timeMs),
  };
  const bands = predictRun(
    {
      model: chosenModel.id,
      price,
      prefixTokens: texts + offered,
      tools: tools.length === 0 ? "none" : withTools,
      maxTurns: maxTurns?.value,
      most,
    },
    past,
  );
  return {
    agentType: task.agentType,
    description: task.description,
    model: plan.model.value,
    ...bands,
    rights,
  };
}

const defaultToolTokens = 300;

/** What agents are expected to take together; `places` is how many of them run at the same time. */
export function quoteBatch(
  agents: readonly QuotedAgent[],
  {
    places = Number.POSITIVE_INFINITY,
    refused = [],
  }: { readonly places?: number; readonly refused?: BatchQuote["refused"] } = {},
): BatchQuote {
  const costs = agents.flatMap(({ costUsd }) => costUsd ?? []);
  return {
    agents,
    total: {
      ...(costs.length === 0 ? {} : { costUsd: sumOf(costs) }),
      tokens: sumOf(agents.map(({ tokens }) => tokens)),
      durationMs: together(
        agents.map(({ durationMs }) => durationMs),
        places,
      ),
    },
    unpriced: agents.length - costs.length,
    refused,
  };
}

/** The part of a quote that is kept with the run. */
export function bandsOnly({ costUsd, tokens, durationMs, basis }: QuotedBands): QuotedBands {
  return { costUsd, tokens, durationMs, basis };
}

const ends = ["low", "likely", "high"] as const;

function sumOf(bands: readonly Band[]): Band {
  const [low, likely, high] = ends.map((end) => bands.reduce((sum, band) => sum + band[end], 0));
  return { low: low ?? 0, likely: likely ?? 0, high: high ?? 0 };
}

/** The longest one, or all of them one after the other in as many rows as there are places. */
function together(bands: readonly Band[], places: number): Band {
  const [low, likely, high] = ends.map((end) => {
    const values = bands.map((band) => band[end]);
    const sum = values.reduce((total, value) => total + value, 0);
    return Math.max(0, ...values, sum / Math.min(places, Math.max(1, values.length)));
  });
  return { low: low ?? 0, likely: likely ?? 0, high: high ?? 0 };
}

const respects = {
  write: ["create", "change", "notebook"],
  run: ["shell"],
  reach: ["fetch", "websearch", "mcp"],
} as const;

const builtinNames: ReadonlySet<string> = new Set(builtinTools.map(({ name }) => name));

/** What a planned agent may write, run and reach, by the classes that rights are compared in. */
export function quotedRights(plan: Pick<ChildPlan, "tools" | "policy">): QuotedRights {
  const rights = rightsOfPlan(plan);
  const isPlanning = rights.mode === "plan";
  const right = (kinds: readonly string[], isMeant: (name: string) => boolean): QuotedRight => {
    const own = Object.entries(rights.tools).filter(([name]) => isMeant(name));
    const levels = kinds.map((kind) => levelOf(rights, kind)).filter((level) => level !== "none");
    if (own.length === 0) return { level: "none", tools: [] };
    const isNarrowed = levels.includes("narrowed") || own.some(([, tool]) => isLimited(tool));
    return {
      level: isNarrowed ? "narrowed" : "full",
      tools: own.map(([name, tool]) => shownTool(name, tool)),
    };
  };
  const ofClass = (kinds: readonly string[]) => (name: string) => kinds.includes(classOf(name));
  // What a tool of the program does is known only to the program.
  const isPrograms = (name: string): boolean => classOf(name) === "other" && !builtinNames.has(name);
  const isCommand = ofClass(respects.run);
  return {
    mode: rights.mode,
    write: isPlanning ? { level: "none", tools: [] } : right(respects.write, ofClass(respects.write)),
    run: right(respects.run, (name) => isCommand(name) || isPrograms(name)),
    reach: right(respects.reach, ofClass(respects.reach)),
  };
}

function isLimited({ only, not }: ToolRight): boolean {
  return only !== undefined || not !== undefined;
}

function shownTool(name: string, { only, not }: ToolRight): string {
  const narrow = only === undefined ? name : `${name}(${only.join(", ")})`;
  return not === undefined ? narrow : `${narrow} but not ${not.join(", ")}`;
}
