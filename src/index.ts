export type { WaitClock } from "@retinue/base/foundation/abortable.ts";
export type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
export { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
export type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
export { type AgentInput, defineAgent } from "@retinue/config/agents/define-agent.ts";
export type { HookInput, HookOutput } from "@retinue/config/hooks/hook-input.ts";
export type { SettingsInput } from "@retinue/config/settings/settings.ts";
export type { ToolEffect } from "@retinue/config/tools/builtin-tools.ts";
export type {
  AgentDenial,
  AgentEvent,
  AgentTotals,
  EventSource,
  ModelTotals,
} from "@retinue/core/conversation/agent-event.ts";
export type { InterruptedAgent } from "@retinue/core/conversation/interrupted-agent.ts";
export type {
  AssistantBlock,
  AssistantMessage,
  DocumentBlock,
  ImageBlock,
  Message,
  ModelEvent,
  TextBlock,
  ToolResultBlock,
  ToolUseBlock,
  UserBlock,
  UserMessage,
} from "@retinue/core/conversation/message.ts";
export type { CheckRun, Receipt } from "@retinue/core/conversation/receipt.ts";
export type {
  PermissionDenial,
  RunEnding,
  RunEvent,
  RunTotals,
} from "@retinue/core/conversation/run-event.ts";
export type { Usage } from "@retinue/core/conversation/usage.ts";
export type { HookFunction } from "@retinue/core/hooks/run-handler.ts";
export type { BatchQuote } from "@retinue/core/inspection/describe-quote.ts";
export type { Inspection } from "@retinue/core/inspection/inspection.ts";
export type { CanUseTool } from "@retinue/core/kernel/agent/create-authorize.ts";
export { createRuntime, type Runtime } from "@retinue/core/kernel/create-runtime.ts";
export type { LoopTool } from "@retinue/core/kernel/loop-tools/tools-for-loops.ts";
export type {
  AgentsInput,
  ForeignTool,
  HooksByEvent,
  McpServerConfig,
  ModelInput,
  RunOptions,
  RuntimeOptions,
  SessionOptions,
  ToolsInput,
} from "@retinue/core/kernel/options/runtime-options.ts";
export type { ChildOptions, SpawnOptions } from "@retinue/core/kernel/options/spawn-options.ts";
export type { OutputSchema } from "@retinue/core/kernel/options/typed-output.ts";
export type { AgentHandle, AgentResult, RunHandle, RunResult } from "@retinue/core/kernel/run-handle.ts";
export type { SessionServer } from "@retinue/core/kernel/servers/session-servers.ts";
export type { Session, SessionTasks } from "@retinue/core/kernel/session.ts";
export {
  type ApprovalChange,
  type ApprovalQueue,
  createApprovalQueue,
  type PendingApproval,
} from "@retinue/core/kernel/web/create-approval-queue.ts";
export { promptFromUiMessages } from "@retinue/core/kernel/web/prompt-from-ui-messages.ts";
export type {
  AgentPart,
  ApprovalPart,
  ResponseOptions,
  UiMetadata,
  UiParts,
} from "@retinue/core/kernel/web/to-response.ts";
export type { LanguageModel } from "@retinue/core/models/language-model.ts";
export type { Model, ModelFacts } from "@retinue/core/models/model.ts";
export type { AgentPlan as RunPlan } from "@retinue/core/planning/agent-plan.ts";
export type { SessionLimitOptions } from "@retinue/core/planning/plan-limits.ts";
export type { TaskState } from "@retinue/core/protocol/agent-state.ts";
export type { Interrupted } from "@retinue/core/tasks/find-interrupted.ts";
export type { TaskEvent } from "@retinue/core/tasks/task-manager.ts";
export type { HostQuestion, ToolHost } from "@retinue/core/tools/tool.ts";
export { defineTool, type Tool, type ToolContext, type ToolOutcome } from "@retinue/core/tools/tool.ts";
export type { ApprovalAnswer, ApprovalRequest, Approver, AskingAgent } from "@retinue/gate/approver.ts";
export type { PermissionMode } from "@retinue/gate/permission-policy.ts";
