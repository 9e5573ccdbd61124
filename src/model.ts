/** `retinue/model`: models as programs write them, and the tools of agents for a loop of your own. */

export type { WaitClock } from "@retinue/base/foundation/abortable.ts";
export type { AliasTable, AliasTarget } from "@retinue/config/models/select-subagent-model.ts";
export { type ModelReference, parseModelReference } from "@retinue/config/models/select-subagent-model.ts";
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
} from "@retinue/core/conversation/message.ts";
export type { Price, Usage } from "@retinue/core/conversation/usage.ts";
export { type AiSdkTool, toAiSdkTools } from "@retinue/core/kernel/loop-tools/ai-sdk-tools.ts";
export { type AnthropicTools, toAnthropicTools } from "@retinue/core/kernel/loop-tools/anthropic-tools.ts";
export type { LoopTool, LoopToolResult } from "@retinue/core/kernel/loop-tools/tools-for-loops.ts";
export {
  createTextModel,
  type TextAnswer,
  type TextMessage,
} from "@retinue/core/models/create-text-model.ts";
export type {
  Model,
  ModelFacts,
  ModelRequest,
  ServerTool,
  ToolSpecification,
} from "@retinue/core/models/model.ts";
export { ModelError, type ModelErrorCode, type ModelErrorOptions } from "@retinue/core/models/model-error.ts";
