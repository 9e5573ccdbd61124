import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import {
  type AgentLimitKey,
  type AgentLimits,
  type LimitsReading,
  readAgentLimits,
  treeLimitKeys,
} from "@retinue/config/agents/agent-limits.ts";
import type { AgentPlan, Decided, RunLimits } from "./agent-plan.ts";

/** What a caller says for one session; the smallest number of all that speak counts. */
export interface SessionLimitOptions {
  /** Of each child. */
  readonly agent?: AgentLimits | undefined;
  /** Of the main agent and all its children together. */
  readonly tree?: TreeLimits | undefined;
}

/** What was found out about limits before planning. */
export interface LimitFacts {
  readonly settings?: LimitSettings;
  /** The file a part of the setting is from, by its dotted name. */
  readonly settingsFrom?: (name: string) => string | undefined;
  readonly session?: SessionLimitOptions;
  /** When a silent agent in the background is stopped, and who says so. */
  readonly background?: { readonly stopMs: number; readonly from: string };
}

type LimitPlan = Pick<AgentPlan, "limits" | "treeLimits">;

/** The limits of an agent, and those of the tree that it is the root or a part of. */
export function planLimits(
  request: { readonly limits?: AgentLimits; readonly background: boolean; readonly maxBudgetUsd?: number },
  definition: Pick<AgentDefinition, "limits"> | undefined,
  { limits: facts = {}, parent }: { readonly limits?: LimitFacts; readonly parent?: LimitPlan | undefined },
): LimitPlan {
  const { settings, session } = facts;
  const ofSettings = settingsFile("agent", facts);
  if (parent !== undefined) {
    const said: readonly LimitSource[] = [
      { limits: settings?.agent, from: ofSettings },
      { limits: session?.agent, from: "the session" },
      { limits: definition?.limits, from: "the definition" },
      { limits: request.limits, from: "the call" },
    ];
    const usual = request.background ? defaultSilence(said, facts) : [];
    return asPlan(decideLimits([...said, ...usual]), parent.treeLimits ?? {});
  }
  const { maxBudgetUsd: usd } = request;
  const tree = decideLimits([
    { limits: settings?.tree, from: settingsFile("tree", facts) },
    { limits: session?.tree, from: "the call" },
    { limits: usd === undefined ? {} : { usd }, from: "the call" },
  ]);
  // What a setting says of agents is about children, but a tool that hangs and a loop are the same for everybody.
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
    ]),
    tree,
  );
}

/** In the background no one notices a silent agent, so there is a limit where no one has set one. */
function defaultSilence(said: readonly LimitSource[], { background }: LimitFacts): readonly LimitSource[] {
  if (background === undefined || background.stopMs <= 0) return [];
  if (said.some(({ limits }) => limits?.silenceSeconds !== undefined)) return [];
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
  if (!isRecord(limits)) return `limits needs an object, but is ${quote(limits)}.`;
  const { agent, tree, ...others } = limits;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    return `limits.${unknown} is not known here; write limits.agent for each child, or limits.tree for all agents together.`;
  return refuseAgentLimits(agent, "limits.agent") ?? refuseAgentLimits(tree, "limits.tree", treeLimitKeys);
}

function settingsFile(part: "agent" | "tree", { settingsFrom }: LimitFacts): (key: AgentLimitKey) => string {
  return (key) => settingsFrom?.(`limits.${part}.${key}`) ?? "settings";
}

function asPlan(own: RunLimits, tree: RunLimits): LimitPlan {
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

/** Where several places speak, the smallest number counts: no one can widen what another has narrowed. Pure. */
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
}

const known = ["agents", "overflow", "agent", "tree", "unknownPrice", "model"] as const;

/** A value that cannot be used ends the start, because a limit that is not kept is worse than none that was promised. */
export function readLimitSettings(setting: Readonly<Record<string, unknown>> | undefined): LimitSettings {
  if (setting === undefined) return { agent: {}, tree: {}, unknownPrice: "allow" };
  for (const key of Object.keys(setting)) {
    if (known.some((name) => name === key)) continue;
    const nearest = nearestName(key, known);
    throw unusable(key, `is not known${nearest === undefined ? "" : `; did you mean ${nearest}?`}`);
  }
  const { agent = {}, tree = {}, unknownPrice = "allow", model = {} } = setting;
  if (unknownPrice !== "allow" && unknownPrice !== "refuse")
    throw unusable("unknownPrice", `needs "allow" or "refuse", but is ${JSON.stringify(unknownPrice)}`);
  const clocks = defined(readModelClocks(setting));
  if (!isRecord(model) || Object.keys(clocks).length !== Object.keys(model).length) {
    const expected = "needs firstTokenSeconds and betweenTokensSeconds as numbers above 0";
    throw unusable("model", `${expected}, but is ${JSON.stringify(model)}`);
  }
  return {
    agent: usable("agent", readAgentLimits(agent)),
    tree: usable("tree", readAgentLimits(tree, treeLimitKeys)),
    unknownPrice,
  };
}

/** How long a provider may be silent. Tolerant: what cannot be read ends the start of a session elsewhere. */
export function readModelClocks(setting: Readonly<Record<string, unknown>> | undefined): {
  readonly firstTokenMs?: number;
  readonly betweenTokensMs?: number;
} {
  if (setting?.model === undefined) return {};
  const model = isRecord(setting.model) ? setting.model : {};
  const firstTokenMs = millisecondsOf(model.firstTokenSeconds);
  const betweenTokensMs = millisecondsOf(model.betweenTokensSeconds);
  return {
    firstTokenMs,
    betweenTokensMs,
  };
}

function millisecondsOf(seconds: unknown): number | undefined {
  return typeof seconds === "number" && Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined;
}

function usable(name: string, reading: LimitsReading): AgentLimits {
  if (reading.type === "limits") return reading.limits;
  throw unusable(reading.at === undefined ? name : `${name}.${reading.at}`, reading.reason);
}

function unusable(key: string, reason: string): RetinueError {
  return new RetinueError("invalid-limits", `The setting limits.${key} ${reason}.`, {
    advice: 'Write, for example, "limits": {"agent": {"seconds": 900}, "tree": {"usd": 5}}.',
  });
}
