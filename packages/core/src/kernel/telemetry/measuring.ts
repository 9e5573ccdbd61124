import type { Attributes, Context, Span } from "@opentelemetry/api";
import { version } from "@retinue/base/foundation/version.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { Telemetry } from "./start-telemetry.ts";

/** A span that has not ended, and what belongs below it. */
export interface OpenSpan {
  readonly span: Span;
  readonly context: Context;
  readonly startedAt: number;
}

/** A session while it is measured: its open spans, by agent and by call. */
export interface Measuring extends Telemetry {
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly epochMs: () => number;
  readonly session: OpenSpan;
  readonly agents: Map<string, OpenSpan>;
  readonly calls: Map<string, OpenSpan>;
  readonly compactions: Map<string, OpenSpan>;
}

interface SpanOrder {
  readonly name: string;
  readonly attributes: Attributes;
  readonly parent: Context;
  readonly at: number;
  readonly isClient?: boolean;
  /** Since 1970; now when absent. */
  readonly startTime?: number;
}

export function startSpan({ api, tracer }: Telemetry, order: SpanOrder): OpenSpan {
  const { name, attributes, parent, at, isClient = false, startTime } = order;
  const kind = isClient ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL;
  const options = { attributes, kind, startTime };
  const span = tracer.startSpan(name, options, parent);
  return { span, context: api.trace.setSpan(parent, span), startedAt: at };
}

export function agentOf(plan: AgentPlan, { agents, session }: Measuring): OpenSpan {
  return agents.get(plan.agent.id) ?? session;
}

export function metricAttributes(plan: AgentPlan, { settings }: Measuring): Attributes {
  const { sessionId, version: includesVersion } = settings.metricAttributes;
  return {
    "gen_ai.agent.name": plan.agent.name,
    ...(sessionId ? { "session.id": plan.sessionId } : {}),
    ...(includesVersion ? { "app.version": version } : {}),
  };
}

/** Marks a span as failed, by the kind of the error. */
export function fail(span: Span, error: unknown, { api }: Telemetry): string {
  const type = typeof error === "string" ? error : kindOf(error);
  span.setAttribute("error.type", type);
  // What went wrong may quote what people said, so that only its kind is reported.
  span.setStatus({ code: api.SpanStatusCode.ERROR, message: type });
  return type;
}

function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return "error";
  return "code" in error ? String(error.code) : error.name;
}
