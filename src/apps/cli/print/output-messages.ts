import type { RunEnding, RunEvent } from "../../../conversation/run-event.ts";
import type { Usage } from "../../../conversation/usage.ts";
import { version } from "../../../foundation/version.ts";
import type { RunPlan } from "../../../planning/run-plan.ts";
import { streamEventOf } from "./stream-event.ts";
import { wireUsage } from "./wire-usage.ts";

/** One line of `--output-format stream-json`. */
export type OutputMessage = Readonly<Record<string, unknown>> & { readonly type: string };

export interface MessageContext {
  readonly sessionId: string;
  readonly uuid: () => string;
}

/** The first message of a session: what was decided for it. */
export function initMessage(
  plan: RunPlan,
  extra: { readonly agents: readonly string[]; readonly plugins: readonly { name: string; path: string }[] },
  { uuid }: MessageContext,
): OutputMessage {
  return {
    type: "system",
    subtype: "init",
    cwd: plan.directory,
    session_id: plan.sessionId,
    tools: plan.tools.map(({ name }) => name),
    mcp_servers: [],
    model: plan.model.value,
    permissionMode: plan.policy.mode,
    slash_commands: [],
    agents: extra.agents,
    skills: [],
    plugins: extra.plugins,
    output_style: "default",
    retinue_version: version,
    uuid: uuid(),
  };
}

/** What an event looks like on the stream; most events are not shown. */
export function messageOf(
  event: RunEvent,
  options: { readonly partial: boolean; readonly replay: boolean },
  context: MessageContext,
): OutputMessage | undefined {
  const common = { parent_tool_use_id: null, session_id: context.sessionId, uuid: context.uuid() };
  switch (event.type) {
    case "assistant-answered": {
      const { id, model, message, stopReason, usage } = event;
      return {
        type: "assistant",
        message: {
          id,
          type: "message",
          role: "assistant",
          model,
          content: message.content,
          stop_reason: stopReason,
          stop_sequence: null,
          usage: wireUsage(usage),
        },
        ...(event.requestId === undefined ? {} : { request_id: event.requestId }),
        ...common,
      };
    }
    case "user-added":
      if (event.origin === "prompt" && !options.replay) return undefined;
      return {
        type: "user",
        message: event.message,
        ...(event.origin === "prompt" ? { isReplay: true } : {}),
        ...(event.results === undefined ? {} : { tool_use_result: onlyResult(event.results) }),
        ...common,
      };
    case "model-streamed": {
      const streamed = options.partial ? streamEventOf(event.event) : undefined;
      return streamed === undefined ? undefined : { type: "stream_event", event: streamed, ...common };
    }
    case "model-retried":
      return {
        type: "system",
        subtype: "api_retry",
        attempt: event.attempt,
        max_retries: event.maxAttempts,
        retry_delay_ms: event.delayMs,
        error_status: event.status ?? null,
        error: event.message,
        session_id: context.sessionId,
        uuid: context.uuid(),
      };
    case "call-finished":
      if (event.denied === undefined) return undefined;
      return {
        type: "system",
        subtype: "permission_denied",
        tool_name: event.call.name,
        tool_use_id: event.call.id,
        message: event.denied,
        session_id: context.sessionId,
        uuid: context.uuid(),
      };
    default:
      return undefined;
  }
}

/** Viewers expect the result itself where a message answers a single call. */
function onlyResult(results: Readonly<Record<string, unknown>>): unknown {
  const values = Object.values(results);
  return values.length === 1 ? values[0] : values;
}

/** The last message of a run. */
export function resultMessage(
  ending: RunEnding,
  model: string,
  { sessionId, uuid }: MessageContext,
): OutputMessage {
  const { totals } = ending;
  const subtype = subtypeOf(ending);
  return {
    type: "result",
    subtype,
    is_error: subtype !== "success",
    duration_ms: Math.round(totals.durationMs),
    duration_api_ms: Math.round(totals.modelMs),
    num_turns: totals.turns,
    result: ending.text,
    stop_reason: ending.reason,
    session_id: sessionId,
    total_cost_usd: totals.cost ?? null,
    usage: wireUsage(totals.usage),
    modelUsage: { [model]: modelUsage(totals.usage, totals.cost) },
    permission_denials: ending.denials.map(({ call }) => ({
      tool_name: call.name,
      tool_use_id: call.id,
      tool_input: call.input,
    })),
    ...(ending.output === undefined ? {} : { structured_output: ending.output }),
    ...(ending.error === undefined ? {} : { errors: [ending.error] }),
    uuid: uuid(),
  };
}

function subtypeOf({ status, reason }: RunEnding): string {
  if (reason === "max_turns") return "error_max_turns";
  if (reason === "max_budget") return "error_max_budget_usd";
  if (reason === "max_structured_output_retries") return "error_max_structured_output_retries";
  return status === "completed" ? "success" : "error_during_execution";
}

function modelUsage(usage: Usage, cost: number | undefined) {
  return {
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
    cacheReadInputTokens: usage.cacheReadTokens,
    cacheCreationInputTokens: usage.cacheWriteTokens,
    costUSD: cost ?? null,
  };
}
