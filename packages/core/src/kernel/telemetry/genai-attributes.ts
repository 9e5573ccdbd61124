import type { Attributes } from "@opentelemetry/api";
import type { Message } from "../../conversation/message.ts";
import { contextTokens, type Usage } from "../../conversation/usage.ts";
import type { ModelFacts, ModelRequest } from "../../models/model.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { RecordedMessageEnd } from "../../replay/recording.ts";
import type { Tool } from "../../tools/tool.ts";

/** The names of the GenAI semantic conventions, and values in their form. */

export function agentAttributes(plan: AgentPlan): Attributes {
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.id": plan.agent.id,
    "gen_ai.agent.name": plan.agent.name,
    "gen_ai.conversation.id": plan.sessionId,
    "gen_ai.request.model": plan.model.value,
  };
}

export function chatAttributes(plan: AgentPlan, facts: ModelFacts, request: ModelRequest): Attributes {
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

export function answerAttributes(answer: RecordedMessageEnd): Attributes {
  return {
    "gen_ai.response.id": answer.id,
    "gen_ai.response.model": answer.model,
    "gen_ai.response.finish_reasons": [answer.stopReason],
    ...usageAttributes(answer.usage),
  };
}

/** What was read from and written to the cache is part of the input. */
export function usageAttributes(usage: Usage): Attributes {
  return {
    "gen_ai.usage.input_tokens": contextTokens(usage),
    "gen_ai.usage.output_tokens": usage.outputTokens,
    "gen_ai.usage.cache_read.input_tokens": usage.cacheReadTokens,
    "gen_ai.usage.cache_creation.input_tokens": usage.cacheWriteTokens,
  };
}

export function toolAttributes(plan: AgentPlan, tool: Tool, callId: string): Attributes {
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
export function contentAttribute(name: string, value: unknown): Attributes {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return { [name]: text.length > maxContent ? `${text.slice(0, maxContent)}…` : text };
}

export function messagesAttribute(name: string, messages: readonly Message[]): Attributes {
  const shown = messages.map(({ role, content }) => ({
    role,
    parts: typeof content === "string" ? [{ type: "text", content }] : content,
  }));
  return contentAttribute(name, shown);
}
