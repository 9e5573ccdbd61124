export type {
  AgentDenial,
  AgentEvent,
  AgentTotals,
  EventSource,
  ModelTotals,
} from "./conversation/agent-event.ts";
export type { InterruptedAgent } from "./conversation/interrupted-agent.ts";
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
} from "./conversation/message.ts";
export type { PermissionDenial, RunEnding, RunEvent, RunTotals } from "./conversation/run-event.ts";
export type { Usage } from "./conversation/usage.ts";
export type { AgentDefinition } from "./definitions/agent-definition.ts";
export { type AgentInput, defineAgent } from "./definitions/agent-definition.ts";
export type { WaitClock } from "./foundation/abortable.ts";
export type { Diagnostic } from "./foundation/diagnostic.ts";
export { isRetinueError, RetinueError } from "./foundation/retinue-error.ts";
export type { HookInput, HookOutput } from "./hooks/hook-input.ts";
export type { HookFunction } from "./hooks/run-handler.ts";
export type { Inspection } from "./inspection/inspection.ts";
export type { LanguageModel } from "./model/language-model.ts";
export type { Model, ModelFacts } from "./model/model.ts";
export type { ApprovalAnswer, ApprovalRequest, Approver, AskingAgent } from "./permissions/approver.ts";
export type { PermissionMode } from "./permissions/permission-policy.ts";
export type { AgentPlan as RunPlan } from "./planning/agent-plan.ts";
export type { SessionLimitOptions } from "./planning/limit-plan.ts";
export type { CanUseTool } from "./runtime/agent/create-authorize.ts";
export { createRuntime, type Runtime } from "./runtime/create-runtime.ts";
export type { LoopTool } from "./runtime/loop-tools/tools-for-loops.ts";
export type {
  AgentsInput,
  ForeignTool,
  HooksByEvent,
  InteractiveOptions,
  McpServerConfig,
  ModelInput,
  RunOptions,
  RuntimeOptions,
  SessionOptions,
  ToolsInput,
} from "./runtime/options/runtime-options.ts";
export type { ChildOptions, SpawnOptions } from "./runtime/options/spawn-options.ts";
export type { OutputSchema } from "./runtime/options/typed-output.ts";
export type { AgentHandle, AgentResult, RunHandle, RunResult } from "./runtime/run-handle.ts";
export type { SessionServer } from "./runtime/servers/session-servers.ts";
export type { Session } from "./runtime/session.ts";
export type { SessionTasks } from "./runtime/session-tasks.ts";
export {
  type ApprovalChange,
  type ApprovalQueue,
  createApprovalQueue,
  type PendingApproval,
} from "./runtime/web/create-approval-queue.ts";
export { promptFromUiMessages } from "./runtime/web/prompt-from-ui-messages.ts";
export type {
  AgentPart,
  ApprovalPart,
  ResponseOptions,
  UiMetadata,
  UiParts,
} from "./runtime/web/to-response.ts";
export type { SettingsInput } from "./settings/settings.ts";
export type { TaskState } from "./tasks/drive-task.ts";
export type { Interrupted } from "./tasks/find-interrupted.ts";
export type { TaskEvent } from "./tasks/task-manager.ts";
export type { ToolEffect } from "./tools/grants/builtin-tools.ts";
export type { HostQuestion, ToolHost } from "./tools/tool.ts";
export { defineTool, type Tool, type ToolContext, type ToolOutcome } from "./tools/tool.ts";
