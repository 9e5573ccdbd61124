import { isRecord, type JsonRecord, quote } from "@retinue/base/foundation/json-record.ts";
import type { JsonSchema } from "@retinue/base/foundation/json-schema.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import {
  type AgentLimitKey,
  agentLimitKeys,
  agentLimitsSchema,
  readAgentLimits,
  treeLimitKeys,
} from "./agent-limits.ts";
import { choice, type ValueReader, type WrongPart } from "./read-environment.ts";

/** Deeper trees are a slip of the keyboard. */
export const deepest = 10;

/** Why a value cannot be how many levels, or how many agents, there may be. */
export function flawOfCount(value: unknown, most?: number): string | undefined {
  if (Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= (most ?? Number(value)))
    return undefined;
  return `needs a whole number from 1${most === undefined ? "" : ` to ${most}`}, but is ${quote(value)}`;
}

interface Flaw {
  /** The key inside that is wrong; absent when it is the whole. */
  readonly at?: string;
  readonly reason: string;
}

interface Part {
  readonly flawOf: (value: unknown) => Flaw | undefined;
  readonly example: string;
  readonly schema: JsonSchema;
}

const clocks = ["firstTokenSeconds", "betweenTokensSeconds"] as const;

const parts: Readonly<Record<string, Part>> = {
  agents: count("How many children of a session run concurrently.", "20"),
  overflow: word("Whether one more is refused or waits.", choice("refuse", "queue")),
  depth: count(
    "How many levels of agents there may be below the main agent; 1: only it starts agents.",
    "2",
    deepest,
  ),
  nested: count("How many agents may be started by agents below the main one, in a session.", "20"),
  agent: {
    flawOf: (value) => flawOfLimits(value, agentLimitKeys),
    example: '{"seconds": 900}',
    schema: { description: "Of each child.", ...agentLimitsSchema() },
  },
  tree: {
    flawOf: (value) => flawOfLimits(value, treeLimitKeys),
    example: '{"usd": 5}',
    schema: {
      description: "Of the main agent and all children together.",
      ...agentLimitsSchema(treeLimitKeys),
    },
  },
  model: {
    flawOf: flawOfClocks,
    example: '{"firstTokenSeconds": 300}',
    schema: {
      description: "How long a provider may be silent.",
      type: "object",
      properties: Object.fromEntries(clocks.map((key) => [key, { type: "number", exclusiveMinimum: 0 }])),
      additionalProperties: false,
    },
  },
  unknownPrice: word("What happens to calls of a model without a known price.", choice("allow", "refuse")),
};

/** `limits` of a settings file. What cannot be honoured makes it unreadable: a limit that is not kept is worse than none. */
export const limits: ValueReader<JsonRecord> = {
  expected: 'an object such as {"agent": {"seconds": 900}, "tree": {"usd": 5}}',
  read: (value) => (isRecord(value) && wrongPart(value) === undefined ? value : undefined),
  wrongPart: (value) => (isRecord(value) ? wrongPart(value) : undefined),
  schema: {
    type: "object",
    properties: Object.fromEntries(Object.entries(parts).map(([key, { schema }]) => [key, schema])),
    additionalProperties: false,
  },
};

function wrongPart(value: JsonRecord): WrongPart | undefined {
  for (const [key, written] of Object.entries(value)) {
    const part = Object.hasOwn(parts, key) ? parts[key] : undefined;
    if (part === undefined) return { path: [key], ...unknownKey(key, Object.keys(parts)) };
    const flaw = part.flawOf(written);
    if (flaw === undefined) continue;
    const { at, reason } = flaw;
    const path = at === undefined ? [key] : [key, at];
    return { path, reason: `it ${reason}`, advice: `Write, for example, "${key}": ${part.example}.` };
  }
  return undefined;
}

function unknownKey(key: string, known: readonly string[]): Pick<WrongPart, "reason" | "advice"> {
  const nearest = nearestName(key, known);
  return {
    reason: "it is not known",
    advice: nearest === undefined ? `Write one of ${known.join(", ")}.` : `Write "${nearest}".`,
  };
}

function count(description: string, example: string, most?: number): Part {
  return {
    flawOf(value) {
      const reason = flawOfCount(value, most);
      return reason === undefined ? undefined : { reason };
    },
    example,
    schema: {
      description,
      type: "integer",
      minimum: 1,
      maximum: most,
    },
  };
}

function word(description: string, { read, expected, schema }: ValueReader<string>): Part {
  return {
    flawOf: (value) =>
      read(value) === undefined ? { reason: `needs ${expected}, but is ${quote(value)}` } : undefined,
    example: expected.replace(/ or .*/, ""),
    schema: { description, ...schema },
  };
}

function flawOfLimits(value: unknown, known: readonly AgentLimitKey[]): Flaw | undefined {
  const reading = readAgentLimits(value, known);
  return reading.type === "limits" ? undefined : reading;
}

function flawOfClocks(value: unknown): Flaw | undefined {
  if (!isRecord(value)) return { reason: `needs an object, but is ${quote(value)}` };
  for (const [key, seconds] of Object.entries(value)) {
    if (!clocks.some((clock) => clock === key))
      return { at: key, reason: `is not a key; expected ${clocks.join(" or ")}` };
    if (typeof seconds !== "number" || !Number.isFinite(seconds) || seconds <= 0)
      return { at: key, reason: `needs a number above 0, but is ${quote(seconds)}` };
  }
  return undefined;
}
