import { textOf } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { FolderContext, RuntimeContext } from "../runtime-context.ts";
import { agentAttributes, contentAttribute, usageAttributes } from "./genai-attributes.ts";
import { agentOf, type Measuring, metricAttributes, startSpan } from "./measuring.ts";
import { measureHook, measuringCapability } from "./measuring-capability.ts";
import type { Telemetry } from "./start-telemetry.ts";
import { writeTraceParent } from "./telemetry-settings.ts";
import type { SessionTelemetry } from "./telemetry-source.ts";

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
function withTraceParent(environment: FolderContext["environment"], { api, session }: Measuring) {
  return Object.defineProperty({ ...environment }, "TRACEPARENT", {
    enumerable: true,
    get: () => writeTraceParent((api.trace.getActiveSpan() ?? session.span).spanContext()),
  });
}

/** What is only known from the events of a run: when it begins and ends, compactions, refusals, prompts. */
export function hearEvent(plan: AgentPlan, event: RunEvent, measuring: Measuring): void {
  switch (event.type) {
    case "spawn-advanced":
      beginAgent(plan, measuring);
      return;
    case "user-added":
      if (event.origin !== "prompt") return;
      beginAgent(plan, measuring);
      logPrompt(plan, textOf(event.message), measuring);
      return;
    case "compaction-started":
      beginCompaction(plan, event, measuring);
      return;
    case "context-compacted":
      endCompaction(plan, event, measuring);
      return;
    case "call-finished":
      hearCall(plan, event, measuring);
      return;
    case "run-ended":
      endAgent(plan, event, measuring);
      return;
    default:
  }
}

function beginAgent(plan: AgentPlan, measuring: Measuring): void {
  const { agents, calls, session, now, instruments } = measuring;
  if (agents.has(plan.agent.id)) return;
  const { task } = plan;
  // A child belongs to the call that started it, also when it runs on after that.
  const parent = (task?.callId === undefined ? undefined : calls.get(task.callId)) ?? session;
  const attributes = {
    ...agentAttributes(plan),
    ...(task === undefined
      ? {}
      : { "gen_ai.agent.description": task.agentType, "retinue.agent.background": task.background }),
  };
  const name = `invoke_agent ${plan.agent.name}`;
  agents.set(plan.agent.id, startSpan(measuring, { name, attributes, parent: parent.context, at: now() }));
  instruments.agentStarted(metricAttributes(plan, measuring));
  if (task !== undefined) return;
  session.span.setAttribute("gen_ai.conversation.id", plan.sessionId);
  instruments.sessionStarted(metricAttributes(plan, measuring));
}

function endAgent(
  plan: AgentPlan,
  { ending }: Extract<RunEvent, { type: "run-ended" }>,
  measuring: Measuring,
): void {
  const { agents, now, instruments, api } = measuring;
  const open = agents.get(plan.agent.id);
  if (open === undefined) return;
  agents.delete(plan.agent.id);
  const { status, reason, totals, receipt } = ending;
  const { span } = open;
  span.setAttributes({
    ...usageAttributes(totals.usage),
    "retinue.status": status,
    "retinue.reason": reason,
    "retinue.turns": totals.turns,
    "retinue.tool_uses": totals.toolUses,
    ...(receipt === undefined
      ? {}
      : {
          "retinue.verify.status": receipt.status,
          "retinue.verify.checks": receipt.checks.length,
          "retinue.verify.retries": receipt.retries,
          ...(receipt.tree === undefined ? {} : { "retinue.verify.tree": receipt.tree.digest }),
        }),
    ...(totals.costUsd === undefined ? {} : { "retinue.cost.usd": totals.costUsd }),
  });
  const isFailure = status === "failed";
  if (isFailure) {
    span.setAttribute("error.type", reason);
    span.setStatus({ code: api.SpanStatusCode.ERROR, message: reason });
  }
  span.end();
  const counted = metricAttributes(plan, measuring);
  instruments.agentEnded(
    (now() - open.startedAt) / 1000,
    isFailure ? { ...counted, "error.type": reason } : counted,
  );
}

function beginCompaction(
  plan: AgentPlan,
  { trigger, preTokens }: Extract<RunEvent, { type: "compaction-started" }>,
  measuring: Measuring,
): void {
  const attributes = {
    "retinue.compaction.trigger": trigger,
    "retinue.compaction.tokens_before": preTokens,
    "gen_ai.conversation.id": plan.sessionId,
  };
  const parent = agentOf(plan, measuring).context;
  measuring.compactions.set(
    plan.agent.id,
    startSpan(measuring, { name: "compaction", attributes, parent, at: measuring.now() }),
  );
}

function endCompaction(
  plan: AgentPlan,
  { postTokens, by }: Extract<RunEvent, { type: "context-compacted" }>,
  { compactions }: Measuring,
): void {
  const open = compactions.get(plan.agent.id);
  compactions.delete(plan.agent.id);
  open?.span.setAttributes({ "retinue.compaction.tokens_after": postTokens, "retinue.compaction.by": by });
  open?.span.end();
}

function hearCall(
  plan: AgentPlan,
  { call, denied, durationMs, isError }: Extract<RunEvent, { type: "call-finished" }>,
  measuring: Measuring,
): void {
  const { instruments, log } = measuring;
  const { context } = agentOf(plan, measuring);
  const about = { tool_name: call.name, "session.id": plan.sessionId };
  log("tool_decision", { ...about, decision: denied === undefined ? "accept" : "reject" }, context);
  if (denied === undefined) {
    log("tool_result", { ...about, success: !isError, duration_ms: Math.round(durationMs) }, context);
    return;
  }
  instruments.refusal({ ...metricAttributes(plan, measuring), "gen_ai.tool.name": call.name });
}

function logPrompt(plan: AgentPlan, prompt: string, measuring: Measuring): void {
  if (plan.task !== undefined) return;
  const { settings, log } = measuring;
  const said = settings.content.prompts ? contentAttribute("prompt", prompt) : {};
  const about = { "session.id": plan.sessionId, prompt_length: prompt.length };
  if (settings.content.prompts)
    agentOf(plan, measuring).span.setAttributes(contentAttribute("retinue.prompt", prompt));
  log("user_prompt", { ...about, ...said }, agentOf(plan, measuring).context);
}
