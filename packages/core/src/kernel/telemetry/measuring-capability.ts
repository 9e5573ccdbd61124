import type { Attributes } from "@opentelemetry/api";
import { costOf } from "../../conversation/usage.ts";
import type { Model, ModelEvent, ModelRequest } from "../../models/model.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { RecordedMessageEnd } from "../../replay/recording.ts";
import type { Tool, ToolContext } from "../../tools/tool.ts";
import type { Capability } from "../agent/open-agent.ts";
import {
  answerAttributes,
  chatAttributes,
  contentAttribute,
  messagesAttribute,
  toolAttributes,
} from "./genai-attributes.ts";
import { agentOf, fail, type Measuring, metricAttributes, type OpenSpan, startSpan } from "./measuring.ts";
import { writeTraceParent } from "./telemetry-settings.ts";

/** Around the model and the tools of an agent, and the decision about each call. */
export function measuringCapability(plan: AgentPlan, measuring: Measuring): Capability {
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

export async function measureHook<Outcome>(
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
