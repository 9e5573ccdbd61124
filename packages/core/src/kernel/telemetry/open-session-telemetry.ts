import type { Attributes, Context, Span } from "@opentelemetry/api";
import { version } from "@retinue/base/foundation/version.ts";
import { type Message, textOf } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import { contextTokens, costOf, type Usage } from "../../conversation/usage.ts";
import type { Model, ModelEvent, ModelFacts, ModelRequest } from "../../models/model.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { RecordedMessageEnd } from "../../replay/recording.ts";
import type { Tool, ToolContext } from "../../tools/tool.ts";
import type { Capability } from "../agent/open-agent.ts";
import type { FolderContext, RuntimeContext } from "../runtime-context.ts";
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
        event: (plan, event) => recordEvent(plan, event, measuring),
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
export function recordEvent(plan: AgentPlan, event: RunEvent, measuring: Measuring): void {
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
      recordCall(plan, event, measuring);
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

function recordCall(
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
  const promptAttributes = settings.content.prompts ? contentAttribute("prompt", prompt) : {};
  const about = { "session.id": plan.sessionId, prompt_length: prompt.length };
  if (settings.content.prompts)
    agentOf(plan, measuring).span.setAttributes(contentAttribute("retinue.prompt", prompt));
  log("user_prompt", { ...about, ...promptAttributes }, agentOf(plan, measuring).context);
}

/** Around the model and the tools of an agent, and the decision about each call. */
function measuringCapability(plan: AgentPlan, measuring: Measuring): Capability {
  const { api, now } = measuring;
  return {
    model: (inner) => measureModel(inner, plan, measuring),
    tool: (tool) => ({
      ...tool,
      call: (input, context) => measureTool({ tool, input, context, plan }, measuring),
    }),
    beforeCall: (next) => async (request, options) => {
      const agent = agentOf(plan, measuring);
      const at = now();
      const startTime = measuring.epochMs();
      const answer = await api.context.with(agent.context, () => next(request, options));
      if (answer.asked === true) {
        const attributes = {
          ...toolAttributes(plan, request.tool, request.call.id),
          "gen_ai.operation.name": "permission",
          "retinue.permission.decision": answer.type,
        };
        startSpan(measuring, {
          name: `permission ${request.tool.name}`,
          attributes,
          parent: agent.context,
          at,
          startTime,
        }).span.end();
      }
      return answer;
    },
  };
}

function measureModel(inner: Model, plan: AgentPlan, measuring: Measuring): Model {
  return {
    facts: inner.facts,
    stream: (request, options) =>
      measuredStream(inner.stream(request, options), { inner, request, plan }, measuring),
  };
}

interface MeasuredRequest {
  readonly inner: Model;
  readonly request: ModelRequest;
  readonly plan: AgentPlan;
}

async function* measuredStream(
  events: ReturnType<Model["stream"]>,
  asked: MeasuredRequest,
  measuring: Measuring,
): AsyncGenerator<ModelEvent> {
  const { api, now } = measuring;
  const { facts } = asked.inner;
  const attributes = chatAttributes(asked.plan, facts, asked.request);
  const parent = (measuring.compactions.get(asked.plan.agent.id) ?? agentOf(asked.plan, measuring)).context;
  const open = startSpan(measuring, {
    name: `chat ${facts.id}`,
    attributes,
    parent,
    at: now(),
    isClient: true,
  });
  const { span } = open;
  if (measuring.settings.content.messages)
    span.setAttributes(messagesAttribute("gen_ai.input.messages", asked.request.messages));
  const iterator = api.context.with(open.context, () => events[Symbol.asyncIterator]());
  try {
    while (true) {
      const step = await api.context.with(open.context, () => iterator.next());
      if (step.done === true) return;
      const event = step.value;
      if (event.type === "attempt-failed")
        span.addEvent("retry", { attempt: event.attempt, "error.type": event.code });
      if (event.type === "message-ended") noteAnswer(event, open, { ...asked, measuring });
      yield event;
    }
  } catch (error) {
    const type = fail(span, error, measuring);
    const counted = metricOnly({ ...attributes, ...metricAttributes(asked.plan, measuring) });
    measuring.instruments.modelFailure((now() - open.startedAt) / 1000, { ...counted, "error.type": type });
    const about = { model: facts.id, "session.id": asked.plan.sessionId, error: type };
    measuring.log("api_error", about, open.context);
    throw error;
  } finally {
    span.end();
    await iterator.return?.();
  }
}

function noteAnswer(
  event: RecordedMessageEnd,
  open: OpenSpan,
  { inner, request, plan, measuring }: MeasuredRequest & { readonly measuring: Measuring },
): void {
  const { now, settings, instruments, log } = measuring;
  const { facts } = inner;
  const { usage } = event;
  const cost = facts.price === undefined ? undefined : costOf(usage, facts.price);
  const seconds = (now() - open.startedAt) / 1000;
  open.span.setAttributes({
    ...answerAttributes(event),
    ...(cost === undefined ? {} : { "retinue.cost.usd": cost }),
    ...(settings.content.messages ? messagesAttribute("gen_ai.output.messages", [event.message]) : {}),
  });
  const counted = { ...chatAttributes(plan, facts, request), ...metricAttributes(plan, measuring) };
  instruments.modelCall({ usage, cost, seconds, attributes: metricOnly(counted), model: facts.id });
  const about = {
    model: facts.id,
    "session.id": plan.sessionId,
    cost_usd: cost ?? 0,
    duration_ms: Math.round(seconds * 1000),
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cache_read_tokens: usage.cacheReadTokens,
    cache_creation_tokens: usage.cacheWriteTokens,
  };
  log("api_request", about, open.context);
}

/** Ids of calls and answers would make a series of their own each. */
function metricOnly({
  "gen_ai.conversation.id": _conversation,
  "gen_ai.agent.id": _agent,
  "gen_ai.request.max_tokens": _max,
  ...attributes
}: Attributes): Attributes {
  return attributes;
}

interface MeasuredCall {
  readonly tool: Tool;
  readonly input: unknown;
  readonly context: ToolContext;
  readonly plan: AgentPlan;
}

async function measureTool(
  { tool, input, context, plan }: MeasuredCall,
  measuring: Measuring,
): ReturnType<Tool["call"]> {
  const { api, now, settings, instruments, calls } = measuring;
  const attributes = toolAttributes(plan, tool, context.callId);
  const parent = agentOf(plan, measuring).context;
  const open = startSpan(measuring, { name: `execute_tool ${tool.name}`, attributes, parent, at: now() });
  const { span } = open;
  if (settings.content.toolInputs) span.setAttributes(contentAttribute("gen_ai.tool.call.arguments", input));
  calls.set(context.callId, open);
  const environment = { ...context.environment, TRACEPARENT: writeTraceParent(span.spanContext()) };
  let error: string | undefined;
  try {
    const outcome = await api.context.with(open.context, () => tool.call(input, { ...context, environment }));
    if (settings.content.toolResults)
      span.setAttributes(contentAttribute("gen_ai.tool.call.result", outcome.content));
    if (outcome.isError === true) error = fail(span, "tool_error", measuring);
    return outcome;
  } catch (failure) {
    error = fail(span, failure, measuring);
    throw failure;
  } finally {
    span.end();
    calls.delete(context.callId);
    const counted = { ...metricAttributes(plan, measuring), "gen_ai.tool.name": tool.name };
    instruments.toolCall(
      (now() - open.startedAt) / 1000,
      error === undefined ? counted : { ...counted, "error.type": error },
    );
  }
}

async function measureHook<Outcome>(
  plan: AgentPlan,
  event: string,
  { run, measuring }: { readonly run: () => Promise<Outcome>; readonly measuring: Measuring },
): Promise<Outcome> {
  const { api, now } = measuring;
  const attributes = {
    "retinue.hook.event": event,
    "gen_ai.agent.id": plan.agent.id,
    "gen_ai.conversation.id": plan.sessionId,
  };
  const parent = agentOf(plan, measuring).context;
  const { span, context } = startSpan(measuring, { name: `hook ${event}`, attributes, parent, at: now() });
  try {
    return await api.context.with(context, run);
  } finally {
    span.end();
  }
}

/** The names of the GenAI semantic conventions, and values in their form. */

function agentAttributes(plan: AgentPlan): Attributes {
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.id": plan.agent.id,
    "gen_ai.agent.name": plan.agent.name,
    "gen_ai.conversation.id": plan.sessionId,
    "gen_ai.request.model": plan.model.value,
  };
}

function chatAttributes(plan: AgentPlan, facts: ModelFacts, request: ModelRequest): Attributes {
  return {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": facts.provider,
    "gen_ai.request.model": facts.id,
    "gen_ai.conversation.id": plan.sessionId,
    "gen_ai.agent.id": plan.agent.id,
    "gen_ai.agent.name": plan.agent.name,
    ...(request.maxTokens === undefined ? {} : { "gen_ai.request.max_tokens": request.maxTokens }),
  };
}

function answerAttributes(answer: RecordedMessageEnd): Attributes {
  return {
    "gen_ai.response.id": answer.id,
    "gen_ai.response.model": answer.model,
    "gen_ai.response.finish_reasons": [answer.stopReason],
    ...usageAttributes(answer.usage),
  };
}

/** What was read from and written to the cache is part of the input. */
function usageAttributes(usage: Usage): Attributes {
  return {
    "gen_ai.usage.input_tokens": contextTokens(usage),
    "gen_ai.usage.output_tokens": usage.outputTokens,
    "gen_ai.usage.cache_read.input_tokens": usage.cacheReadTokens,
    "gen_ai.usage.cache_creation.input_tokens": usage.cacheWriteTokens,
  };
}

function toolAttributes(plan: AgentPlan, tool: Tool, callId: string): Attributes {
  return {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": tool.name,
    "gen_ai.tool.call.id": callId,
    "gen_ai.tool.type": tool.origin === "mcp" ? "extension" : "function",
    "gen_ai.agent.id": plan.agent.id,
    "gen_ai.conversation.id": plan.sessionId,
    ...(tool.mcp === undefined ? {} : { "mcp.server.name": tool.mcp.serverName }),
  };
}

const maxContent = 60_000;

/** A value as the text of an attribute; what is longer than backends take is cut. */
function contentAttribute(name: string, value: unknown): Attributes {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return { [name]: text.length > maxContent ? `${text.slice(0, maxContent)}…` : text };
}

function messagesAttribute(name: string, messages: readonly Message[]): Attributes {
  const shown = messages.map(({ role, content }) => ({
    role,
    parts: typeof content === "string" ? [{ type: "text", content }] : content,
  }));
  return contentAttribute(name, shown);
}

/** A span that has not ended, and what belongs below it. */
interface OpenSpan {
  readonly span: Span;
  readonly context: Context;
  readonly startedAt: number;
}

/** A session while it is measured: its open spans, by agent and by call. */
interface Measuring extends Telemetry {
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

function startSpan({ api, tracer }: Telemetry, order: SpanOrder): OpenSpan {
  const { name, attributes, parent, at, isClient = false, startTime } = order;
  const kind = isClient ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL;
  const options = { attributes, kind, startTime };
  const span = tracer.startSpan(name, options, parent);
  return { span, context: api.trace.setSpan(parent, span), startedAt: at };
}

function agentOf(plan: AgentPlan, { agents, session }: Measuring): OpenSpan {
  return agents.get(plan.agent.id) ?? session;
}

function metricAttributes(plan: AgentPlan, { settings }: Measuring): Attributes {
  const { sessionId, version: includesVersion } = settings.metricAttributes;
  return {
    "gen_ai.agent.name": plan.agent.name,
    ...(sessionId ? { "session.id": plan.sessionId } : {}),
    ...(includesVersion ? { "app.version": version } : {}),
  };
}

/** Marks a span as failed, by the kind of the error. */
function fail(span: Span, error: unknown, { api }: Telemetry): string {
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
