import type { RuntimeContext } from "../runtime-context.ts";
import { hearEvent } from "./hear-event.ts";
import { type Measuring, startSpan } from "./measuring.ts";
import { measureHook, measuringCapability } from "./measuring-capability.ts";
import type { Telemetry } from "./start-telemetry.ts";
import { writeTraceParent } from "./telemetry-settings.ts";

/** Measures one session: its facts with those who measure in them, and the end. */
export interface SessionTelemetry {
  readonly facts: RuntimeContext;
  end(): void;
}

/** Spans for the session, its agents, model calls, tools, hooks, questions and compactions, and what is counted of them. */
export function openSessionTelemetry(telemetry: Telemetry, facts: RuntimeContext): SessionTelemetry {
  const { api, settings } = telemetry;
  const { parent } = settings;
  const outer =
    parent === undefined
      ? api.context.active()
      : api.trace.setSpanContext(api.ROOT_CONTEXT, { ...parent, isRemote: true });
  const now = facts.now;
  const session = startSpan(telemetry, { name: "retinue.session", attributes: {}, parent: outer, at: now() });
  const measuring: Measuring = {
    ...telemetry,
    now,
    epochMs: facts.epochMs,
    session,
    agents: new Map(),
    calls: new Map(),
    compactions: new Map(),
  };
  return {
    facts: {
      ...facts,
      environment: withTraceParent(facts.environment, measuring),
      additions: [...(facts.additions ?? []), (plan) => measuringCapability(plan, measuring)],
      observer: {
        event: (plan, event) => hearEvent(plan, event, measuring),
        hook: (plan, event, run) => measureHook(plan, event, { run, measuring }),
      },
    },
    end() {
      for (const open of [...measuring.calls.values(), ...measuring.agents.values()]) open.span.end();
      session.span.end();
    },
  };
}

/** What starts processes finds the span that they belong to: the one that is active, or the session's. */
function withTraceParent(environment: RuntimeContext["environment"], { api, session }: Measuring) {
  return Object.defineProperty({ ...environment }, "TRACEPARENT", {
    enumerable: true,
    get: () => writeTraceParent((api.trace.getActiveSpan() ?? session.span).spanContext()),
  });
}
