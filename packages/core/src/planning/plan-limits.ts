import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import {
  type AgentLimitKey,
  type AgentLimits,
  readAgentLimits,
  treeLimitKeys,
} from "@retinue/config/settings/agent-limits.ts";
import { deepest, flawOfCount } from "@retinue/config/settings/limits.ts";
import type { AgentPlan, Decided, Nesting, RunLimits } from "./agent-plan.ts";

/** What a caller says for one session; the smallest number of all that speak counts. */
export interface SessionLimitOptions {
  /** Of each child. */
  readonly agent?: AgentLimits | undefined;
  /** Of the main agent and all its children together. */
  readonly tree?: TreeLimits | undefined;
  /** How many levels of agents there may be below the main agent; 1 unless specified otherwise. */
  readonly depth?: number | undefined;
  /** How many agents may be started by agents below the main one, in all. */
  readonly nested?: number | undefined;
}

/** What was found out about limits before planning. */
export interface LimitFacts {
  readonly settings?: LimitSettings;
  /** The file a part of the setting is from, by its dotted name. */
  readonly settingsFrom?: (name: string) => string | undefined;
  readonly session?: SessionLimitOptions;
  /** When a silent agent in the background is stopped, and who says so. */
  readonly background?: { readonly stopMs: number; readonly from: string };
  /** The depth that the environment sets. */
  readonly depth?: Decided<number>;
}

type LimitPlan = Pick<AgentPlan, "limits" | "treeLimits" | "task"> & Partial<Pick<AgentPlan, "agent">>;
type PlannedLimits = Pick<AgentPlan, "limits" | "treeLimits">;

/** The limits of an agent, and those of the tree that it is the root or a part of. */
export function planLimits(
  request: {
    readonly limits?: AgentLimits;
    readonly timeout?: number;
    readonly background: boolean;
    readonly maxBudgetUsd?: number;
  },
  definition: Pick<AgentDefinition, "limits" | "timeout"> | undefined,
  { limits: facts = {}, parent }: { readonly limits?: LimitFacts; readonly parent?: LimitPlan | undefined },
): PlannedLimits {
  const { settings, session } = facts;
  const ofSettings = settingsFile("agent", facts);
  if (parent !== undefined) {
    const sources: readonly LimitSource[] = [
      { limits: settings?.agent, from: ofSettings },
      { limits: session?.agent, from: "the session" },
      { limits: definition?.limits, from: "the definition" },
      { limits: { seconds: definition?.timeout }, from: "the definition" },
      { limits: request.limits, from: "the call" },
      { limits: { seconds: request.timeout }, from: "the call" },
    ];
    const usual = request.background ? defaultSilence(sources, facts) : [];
    const own = decideLimits([...sources, ...usual]);
    return asPlan(parent.task === undefined ? own : withinLimits(own, parent), parent.treeLimits ?? {});
  }
  const { maxBudgetUsd: usd } = request;
  const tree = decideLimits([
    { limits: settings?.tree, from: settingsFile("tree", facts) },
    { limits: session?.tree, from: "the call" },
    { limits: usd === undefined ? {} : { usd }, from: "the call" },
  ]);
  // A setting for agents is about children, but a tool that hangs and a loop are the same for all agents.
  const perCall = ({ toolSeconds, repeatedCalls }: AgentLimits): AgentLimits => ({
    toolSeconds,
    repeatedCalls,
  });
  // The main agent is not watched for silence: its caller sees that.
  const { silenceSeconds: _silence, ...own } = definition?.limits ?? {};
  return asPlan(
    decideLimits([
      { limits: perCall(settings?.agent ?? {}), from: ofSettings },
      { limits: perCall(session?.agent ?? {}), from: "the call" },
      { limits: own, from: "the definition" },
      { limits: { seconds: definition?.timeout }, from: "the definition" },
    ]),
    tree,
  );
}

/** What a subagent starts has at most what the subagent has; of what is spent, both know. */
function withinLimits(own: RunLimits, { limits = {}, agent }: LimitPlan): RunLimits {
  const from = `the agent above it, ${agent?.name ?? "its parent"}`;
  const lower = Object.entries(limits).flatMap(([key, above]: [string, Decided<number>]) => {
    const mine = own[key as keyof RunLimits];
    return mine !== undefined && mine.value <= above.value ? [] : [[key, { value: above.value, from }]];
  });
  return { ...own, ...Object.fromEntries(lower) };
}

/** How many agents are started below the children of the main agent, unless a setting has another number. */
const defaultNested = 50;

/** Whether subagents may start agents: only where it is specified, and the smallest number counts. */
export function planNesting({
  settings,
  settingsFrom,
  session,
  depth: environment,
}: LimitFacts): Nesting | undefined {
  const fromSettings = (key: "depth" | "nested"): readonly Decided<number>[] => {
    const value = settings?.[key];
    return value === undefined ? [] : [{ value, from: settingsFrom?.(`limits.${key}`) ?? "settings" }];
  };
  const fromSession = (value: number | undefined): readonly Decided<number>[] =>
    value === undefined ? [] : [{ value, from: "the session" }];
  const least = (all: readonly Decided<number>[]): Decided<number> | undefined =>
    all.toSorted((a, b) => a.value - b.value)[0];
  const depth = least([
    ...fromSettings("depth"),
    ...(environment === undefined ? [] : [{ ...environment, value: Math.min(environment.value, deepest) }]),
    ...fromSession(session?.depth),
  ]);
  if (depth === undefined || depth.value < 2) return undefined;
  const agents = least([...fromSettings("nested"), ...fromSession(session?.nested)]);
  return { depth, agents: agents ?? { value: defaultNested, from: "the default" } };
}

/** In the background a silent agent is not noticed, so there is a limit where none is set. */
function defaultSilence(sources: readonly LimitSource[], { background }: LimitFacts): readonly LimitSource[] {
  if (background === undefined || background.stopMs <= 0) return [];
  if (sources.some(({ limits }) => limits?.silenceSeconds !== undefined)) return [];
  return [{ limits: { silenceSeconds: background.stopMs / 2000 }, from: background.from }];
}

/** Why limits of a program cannot be used. */
export function refuseAgentLimits(
  limits: unknown,
  name: string,
  known?: readonly AgentLimitKey[],
): string | undefined {
  if (limits === undefined) return undefined;
  const reading = readAgentLimits(limits, known);
  if (reading.type === "limits") return undefined;
  return `${name}${reading.at === undefined ? "" : `.${reading.at}`} ${reading.reason}.`.replace(
    /\?\.$/,
    "?",
  );
}

/** The same for those of a session, which are of each child or of all agents together. */
export function refuseSessionLimits(limits: unknown): string | undefined {
  if (limits === undefined) return undefined;
  if (!isRecord(limits)) return `limits must be an object, but is ${quote(limits)}.`;
  const { agent, tree, depth, nested, ...others } = limits;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    return `limits.${unknown} is not a limit; use limits.agent for each child, or limits.tree for all agents together.`;
  for (const [key, value, most] of [["depth", depth, deepest] as const, ["nested", nested] as const]) {
    const flaw = value === undefined ? undefined : flawOfCount(value, most);
    if (flaw !== undefined) return `limits.${key} ${flaw}.`;
  }
  return refuseAgentLimits(agent, "limits.agent") ?? refuseAgentLimits(tree, "limits.tree", treeLimitKeys);
}

function settingsFile(part: "agent" | "tree", { settingsFrom }: LimitFacts): (key: AgentLimitKey) => string {
  return (key) => settingsFrom?.(`limits.${part}.${key}`) ?? "settings";
}

function asPlan(own: RunLimits, tree: RunLimits): PlannedLimits {
  return {
    ...(Object.keys(own).length === 0 ? {} : { limits: own }),
    ...(Object.keys(tree).length === 0 ? {} : { treeLimits: tree }),
  };
}

/** Limits from one place: settings, a definition, a call. */
interface LimitSource {
  readonly limits: AgentLimits | undefined;
  /** The place, by the key that is asked for. */
  readonly from: string | ((key: AgentLimitKey) => string);
}

/** Where several places set a limit, the smallest number counts: none can widen what another has narrowed. Pure. */
export function decideLimits(sources: readonly LimitSource[]): RunLimits {
  const decided = (key: AgentLimitKey, factor = 1): Decided<number> | undefined =>
    smallest(sources, key, factor);
  return defined({
    timeMs: decided("seconds", 1000),
    tokens: decided("tokens"),
    costUsd: decided("usd"),
    toolCalls: decided("toolCalls"),
    toolTimeMs: decided("toolSeconds", 1000),
    silenceMs: decided("silenceSeconds", 1000),
    repeatedCalls: decided("repeatedCalls"),
  });
}

function smallest(
  sources: readonly LimitSource[],
  key: AgentLimitKey,
  factor: number,
): Decided<number> | undefined {
  const said = sources.flatMap(({ limits, from }): Decided<number>[] => {
    const value = limits?.[key];
    if (value === undefined) return [];
    return [{ value: value * factor, from: typeof from === "string" ? from : from(key) }];
  });
  return said.reduce<Decided<number> | undefined>(
    (least, next) => (least === undefined || next.value < least.value ? next : least),
    undefined,
  );
}

/** What all agents of the session of a plan may take together, for a process in which it is the only one. */
export function treeLimitsOf(
  { treeLimits = {} }: Pick<AgentPlan, "treeLimits">,
  maxSeconds = Number.POSITIVE_INFINITY,
): TreeLimits {
  const { timeMs, tokens, costUsd: cost, toolCalls } = treeLimits;
  const seconds = Math.min(maxSeconds, (timeMs?.value ?? Number.POSITIVE_INFINITY) / 1000);
  return {
    ...(Number.isFinite(seconds) ? { seconds } : {}),
    tokens: tokens?.value,
    usd: cost?.value,
    toolCalls: toolCalls?.value,
  };
}

/** What all agents of a session together may take. */
type TreeLimits = Pick<AgentLimits, "seconds" | "tokens" | "usd" | "toolCalls">;

/** The setting `limits`, but for how many agents run concurrently. */
export interface LimitSettings {
  /** Of each child. */
  readonly agent: AgentLimits;
  readonly tree: TreeLimits;
  /** What happens to calls of a model without a known price where money is limited. */
  readonly unknownPrice: "allow" | "refuse";
  /** How many levels of agents there may be below the main agent. */
  readonly depth?: number;
  /** How many agents may be started by agents below the main one, in all. */
  readonly nested?: number;
}

/** The value of the setting, which its reader has checked. */
export function readLimitSettings(setting: Readonly<Record<string, unknown>> | undefined): LimitSettings {
  const { agent, tree, unknownPrice, depth, nested } = setting ?? {};
  return {
    agent: limitsIn(agent),
    tree: limitsIn(tree, treeLimitKeys),
    unknownPrice: unknownPrice === "refuse" ? "refuse" : "allow",
    ...(typeof depth === "number" ? { depth } : {}),
    ...(typeof nested === "number" ? { nested } : {}),
  };
}

function limitsIn(written: unknown, known?: readonly AgentLimitKey[]): AgentLimits {
  const reading = readAgentLimits(written ?? {}, known);
  return reading.type === "limits" ? reading.limits : {};
}

/** How long a provider may be silent. */
export function readModelClocks(
  setting: Readonly<Record<string, unknown>> | undefined,
  requestMs?: number,
): { readonly firstTokenMs?: number; readonly betweenTokensMs?: number } {
  const model = isRecord(setting?.model) ? setting.model : {};
  const firstTokenMs = millisecondsOf(model.firstTokenSeconds) ?? requestMs;
  const betweenTokensMs = millisecondsOf(model.betweenTokensSeconds);
  return {
    firstTokenMs,
    betweenTokensMs,
  };
}

function millisecondsOf(seconds: unknown): number | undefined {
  return typeof seconds === "number" && Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined;
}
