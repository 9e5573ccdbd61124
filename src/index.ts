export type { CallIntent, Repeats } from "./conversation/call-intent.ts";
export type { InFlightCall, InterruptedAgent } from "./conversation/interrupted-agent.ts";
export type {
  AssistantBlock,
  AssistantMessage,
  DocumentBlock,
  ImageBlock,
  Message,
  TextBlock,
  ToolResultBlock,
  ToolUseBlock,
  UserBlock,
  UserMessage,
} from "./conversation/message.ts";
export type { ModelEvent } from "./conversation/model-event.ts";
export type { PermissionDenial, RunEnding, RunEvent, RunTotals } from "./conversation/run-event.ts";
export type { StopReason } from "./conversation/stop-reason.ts";
export type { Price, Usage } from "./conversation/usage.ts";
export type {
  AgentBehaviour,
  AgentDefinition,
  AgentEnding,
  AgentMcpServer,
  AgentScope,
  AgentSource,
  MemoryScope,
  PromptContext,
  WrittenField,
} from "./definitions/agent-definition.ts";
export type { AgentLimits } from "./definitions/agent-limits.ts";
export { type BuiltinAgentsOptions, builtinAgents } from "./definitions/builtin/builtin-agents.ts";
export { type AgentInput, defineAgent } from "./definitions/define-agent.ts";
export { readSessionAgents, type SessionAgents } from "./definitions/definition-object.ts";
export {
  type AgentsDescription,
  type DescribeAgentsOptions,
  describeAgents,
} from "./definitions/describe-agents.ts";
export {
  type AgentCatalog,
  createAgentCatalog,
  type DiscoveredAgents,
  type DiscoverOptions,
  discoverAgents,
} from "./definitions/discover-agents.ts";
export { type LintFacts, lintDefinition } from "./definitions/lint-definition.ts";
export type { AgentPlace } from "./definitions/load-agent-files.ts";
export {
  type ParseAgentOptions,
  type ParsedAgent,
  parseAgentDefinition,
} from "./definitions/parse-definition.ts";
export { type DescriptionRating, rateDescription } from "./definitions/rate-description.ts";
export {
  type AgentDenial,
  type AgentLookup,
  type AgentRegistry,
  createRegistry,
  type RegisteredAgent,
  type RegistryInput,
} from "./definitions/registry.ts";
export { RetinueError, type RetinueErrorOptions, isRetinueError } from "./foundation/retinue-error.ts";
export type { DocumentPath, Issue, Locate, Place, Diagnostic, Severity } from "./foundation/diagnostic.ts";
export type { WaitClock } from "./foundation/wait-clock.ts";
export type { HookHandler, HookHandlerType, HookRule } from "./hooks/hook-config.ts";
export type { HookFunction } from "./hooks/run-one-hook.ts";
export type {
  InspectedAgent,
  InspectedSession,
  InspectedTotals,
  Inspection,
  Step as InspectedStep,
} from "./inspection/inspection.ts";
export type { McpStatus, ProgramServer } from "./mcp/mcp-connections.ts";
export type { McpScope } from "./mcp/mcp-server.ts";
export type { Model, ModelFacts, ModelRequest, ServerTool, ToolSpecification } from "./model/model.ts";
export type { AliasTable, AliasTarget } from "./model/model-aliases.ts";
export { ModelError, type ModelErrorCode, type ModelErrorOptions } from "./model/model-error.ts";
export { type ModelReference, parseModelReference } from "./model/model-reference.ts";
export type { ApprovalAnswer, ApprovalRequest, Approver, AskingAgent } from "./permissions/approver.ts";
export {
  formatRule,
  type PermissionRule,
  parseRule,
  type RuleList,
  type RuleOptions,
  type RuleReading,
  type RuleSpecifier,
} from "./permissions/parse-rule.ts";
export type { PermissionMode } from "./permissions/permission-mode.ts";
export type { SessionLimitOptions } from "./planning/plan-limits.ts";
export type { Decided, RunPlan } from "./planning/run-plan.ts";
export type { Plugin, PluginOrigin } from "./plugins/plugin.ts";
export type { CanUseTool } from "./runtime/authorize.ts";
export { type AiSdkTool, toAiSdkTools } from "./runtime/ai-sdk-tools.ts";
export { type AnthropicTools, toAnthropicTools } from "./runtime/anthropic-tools.ts";
export { createRuntime, type Runtime } from "./runtime/create-runtime.ts";
export type { RunHandle, RunResult } from "./runtime/run-handle.ts";
export type { RunOptions, RuntimeOptions, SessionOptions } from "./runtime/runtime-options.ts";
export type { Session } from "./runtime/session.ts";
export type { SessionServer } from "./runtime/session-servers.ts";
export type { SpawnOptions } from "./runtime/spawn-options.ts";
export type { LoopTool, LoopToolResult } from "./runtime/tools-for-loops.ts";
export type { OutputSchema } from "./runtime/typed-output.ts";
export { type LoadedSettings, type LoadSettingsOptions, loadSettings } from "./settings/load-settings.ts";
export type { MergedPermissions, MergedSettings } from "./settings/merge-settings.ts";
export { createPaths, type Paths, type PathsInput } from "./settings/paths.ts";
export type { SettingsScope } from "./settings/settings.ts";
export type {
  HeldBack,
  SettingsLayer,
  SettingsSource,
  SourcedHook,
  SourcedRule,
} from "./settings/settings-layer.ts";
export {
  createTrustStore,
  type TrustAnswer,
  type TrustOutcome,
  type TrustStore,
  type TrustStoreOptions,
} from "./settings/trust.ts";
export type { Skill, SkillScope, SkillSource } from "./skills/skill.ts";
export type { SkillCatalog, SkillSearch } from "./skills/skill-catalog.ts";
export type { AgentHandle, AgentResult } from "./tasks/agent-handle.ts";
export type { Interrupted } from "./tasks/find-interrupted.ts";
export type { InterruptedSession } from "./tasks/find-interrupted-sessions.ts";
export type { FoundTask } from "./tasks/find-tasks.ts";
export type { StoppedBy, TaskManager, TaskEvent } from "./tasks/task-manager.ts";
export type { TaskState, TaskStatus } from "./tasks/task-state.ts";
export type { ToolEffect } from "./tools/builtin-tools.ts";
export type { FileLedger } from "./tools/file-ledger.ts";
export type { AvailableTool } from "./tools/match-tools.ts";
export { defineTool, type Tool, type ToolContext, type ToolOutcome } from "./tools/tool.ts";
export {
  type GrantedTool,
  type GrantRequest,
  grantTools,
  type SpawnRule,
  type ToolGrant,
} from "./tools/tool-grants.ts";
export type { HostQuestion, TodoItem, ToolHost } from "./tools/tool-host.ts";
