import {
  type AgentLimitKey,
  type AgentLimits,
  type LimitsReading,
  readAgentLimits,
} from "../definitions/agent-limits.ts";
import { isRecord } from "../foundation/json-record.ts";
import { nearestName } from "../foundation/nearest-name.ts";
import { RetinueError } from "../foundation/retinue-error.ts";

/** What all agents of a session together may take. */
export type TreeLimits = Pick<AgentLimits, "seconds" | "tokens" | "usd" | "toolCalls">;

/** The setting `limits`, but for how many agents run concurrently. */
export interface LimitSettings {
  /** Of each child. */
  readonly agent: AgentLimits;
  readonly tree: TreeLimits;
  /** What happens to calls of a model without a known price where money is limited. */
  readonly unknownPrice: "allow" | "refuse";
}

export const treeKeys: readonly AgentLimitKey[] = ["seconds", "tokens", "usd", "toolCalls"];
const known = ["agents", "overflow", "agent", "tree", "unknownPrice", "model"] as const;

/** A value that cannot be used ends the start, because a limit that is not kept is worse than none that was promised. */
export function readLimitSettings(setting: Readonly<Record<string, unknown>> = {}): LimitSettings {
  for (const key of Object.keys(setting)) {
    if (known.some((name) => name === key)) continue;
    const nearest = nearestName(key, known);
    throw unusable(key, `is not known${nearest === undefined ? "" : `; did you mean ${nearest}?`}`);
  }
  const { agent = {}, tree = {}, unknownPrice = "allow", model = {} } = setting;
  if (unknownPrice !== "allow" && unknownPrice !== "refuse")
    throw unusable("unknownPrice", `needs "allow" or "refuse", but is ${JSON.stringify(unknownPrice)}`);
  const clocks = readModelClocks(setting);
  if (!isRecord(model) || Object.keys(clocks).length !== Object.keys(model).length) {
    const expected = "needs firstTokenSeconds and betweenTokensSeconds as numbers above 0";
    throw unusable("model", `${expected}, but is ${JSON.stringify(model)}`);
  }
  return {
    agent: usable("agent", readAgentLimits(agent)),
    tree: usable("tree", readAgentLimits(tree, treeKeys)),
    unknownPrice,
  };
}

/** How long a provider may be silent. Tolerant: what cannot be read ends the start of a session elsewhere. */
export function readModelClocks(setting: Readonly<Record<string, unknown>> | undefined): {
  readonly firstTokenMs?: number;
  readonly betweenTokensMs?: number;
} {
  const model = isRecord(setting?.model) ? setting.model : {};
  const firstTokenMs = millisecondsOf(model.firstTokenSeconds);
  const betweenTokensMs = millisecondsOf(model.betweenTokensSeconds);
  return {
    ...(firstTokenMs === undefined ? {} : { firstTokenMs }),
    ...(betweenTokensMs === undefined ? {} : { betweenTokensMs }),
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
