import type { Attributes, Meter } from "@opentelemetry/api";
import { contextTokens, type Usage } from "../../conversation/usage.ts";
import type { TelemetrySettings } from "./telemetry-settings.ts";

/** What is counted. */
export interface Instruments {
  /** One model call: its tokens, cost and duration. */
  modelCall(call: {
    readonly usage: Usage;
    readonly cost: number | undefined;
    readonly seconds: number;
    readonly attributes: Attributes;
    readonly model: string;
  }): void;
  /** A model call that failed. */
  modelFailure(seconds: number, attributes: Attributes): void;
  agentStarted(attributes: Attributes): void;
  agentEnded(seconds: number, attributes: Attributes): void;
  toolCall(seconds: number, attributes: Attributes): void;
  refusal(attributes: Attributes): void;
  sessionStarted(attributes: Attributes): void;
}

/** The names of the GenAI conventions where there are some, and our own where not; for Claude Code's dashboards also theirs. */
export function createInstruments(meter: Meter, { claudeNames }: TelemetrySettings): Instruments {
  const tokens = meter.createHistogram("gen_ai.client.token.usage", { unit: "{token}" });
  const duration = meter.createHistogram("gen_ai.client.operation.duration", { unit: "s" });
  const cost = meter.createCounter("retinue.cost.usage", { unit: "USD" });
  const active = meter.createUpDownCounter("retinue.agents.active", { unit: "{agent}" });
  const agents = meter.createHistogram("retinue.agent.duration", { unit: "s" });
  const tools = meter.createHistogram("retinue.tool.duration", { unit: "s" });
  const refusals = meter.createCounter("retinue.tool.refusals", { unit: "{call}" });
  const claude = claudeNames
    ? {
        tokens: meter.createCounter("claude_code.token.usage", { unit: "tokens" }),
        cost: meter.createCounter("claude_code.cost.usage", { unit: "USD" }),
        sessions: meter.createCounter("claude_code.session.count"),
      }
    : undefined;
  return {
    modelCall({ usage, cost: paid, seconds, attributes, model }) {
      tokens.record(contextTokens(usage), { ...attributes, "gen_ai.token.type": "input" });
      tokens.record(usage.outputTokens, { ...attributes, "gen_ai.token.type": "output" });
      duration.record(seconds, attributes);
      if (paid !== undefined) cost.add(paid, attributes);
      if (claude === undefined) return;
      const own = { ...sessionPart(attributes), model };
      for (const [type, count] of claudeTokens(usage)) claude.tokens.add(count, { ...own, type });
      if (paid !== undefined) claude.cost.add(paid, own);
    },
    modelFailure: (seconds, attributes) => duration.record(seconds, attributes),
    agentStarted: (attributes) => active.add(1, attributes),
    agentEnded(seconds, { "error.type": error, ...attributes }) {
      active.add(-1, attributes);
      agents.record(seconds, error === undefined ? attributes : { ...attributes, "error.type": error });
    },
    toolCall: (seconds, attributes) => tools.record(seconds, attributes),
    refusal: (attributes) => refusals.add(1, attributes),
    sessionStarted: (attributes) => claude?.sessions.add(1, sessionPart(attributes)),
  };
}

function claudeTokens(usage: Usage): readonly (readonly [string, number])[] {
  return [
    ["input", usage.inputTokens],
    ["output", usage.outputTokens],
    ["cacheRead", usage.cacheReadTokens],
    ["cacheCreation", usage.cacheWriteTokens],
  ];
}

function sessionPart({ "session.id": id, "app.version": version }: Attributes): Attributes {
  return {
    ...(id === undefined ? {} : { "session.id": id }),
    ...(version === undefined ? {} : { "app.version": version }),
  };
}
