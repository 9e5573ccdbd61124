/** `retinue/model`: models as programs write them, and the tools of agents for a loop of your own. */
export type {
  AssistantBlock,
  AssistantMessage,
  DocumentBlock,
  ImageBlock,
  Message,
  ModelEvent,
  StopReason,
  TextBlock,
  ToolResultBlock,
  ToolUseBlock,
  UserBlock,
  UserMessage,
} from "./conversation/message.ts";
export type { Price, Usage } from "./conversation/usage.ts";
export type { WaitClock } from "./foundation/abortable.ts";
export { createTextModel, type TextAnswer, type TextMessage } from "./model/create-text-model.ts";
export type { Model, ModelFacts, ModelRequest, ServerTool, ToolSpecification } from "./model/model.ts";
export { ModelError, type ModelErrorCode, type ModelErrorOptions } from "./model/model-error.ts";
export type { AliasTable, AliasTarget } from "./model/select-subagent-model.ts";
export { type ModelReference, parseModelReference } from "./model/select-subagent-model.ts";
export { type AiSdkTool, toAiSdkTools } from "./runtime/loop-tools/ai-sdk-tools.ts";
export { type AnthropicTools, toAnthropicTools } from "./runtime/loop-tools/anthropic-tools.ts";
export type { LoopTool, LoopToolResult } from "./runtime/loop-tools/tools-for-loops.ts";
