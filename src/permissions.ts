/** `retinue/permissions`: rules, tool grants, settings and trust. */
export type { HookHandler, HookHandlerType, HookRule } from "./hooks/read-hooks.ts";
export type { ApprovalAnswer, ApprovalRequest, Approver, AskingAgent } from "./permissions/approver.ts";
export type { PermissionMode } from "./permissions/permission-policy.ts";
export {
  formatRule,
  type PermissionRule,
  parseRule,
  type RuleList,
  type RuleOptions,
  type RuleReading,
  type RuleSpecifier,
} from "./permissions/rules/parse-rule.ts";
export { type LoadedSettings, type LoadSettingsOptions, loadSettings } from "./settings/load-settings.ts";
export { createPaths, type Paths, type PathsInput } from "./settings/paths.ts";
export type { SettingsScope } from "./settings/settings.ts";
export type {
  HeldBack,
  MergedPermissions,
  MergedSettings,
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
} from "./settings/trust-store.ts";
export type { ToolEffect } from "./tools/grants/builtin-tools.ts";
export type { AvailableTool } from "./tools/grants/match-tools.ts";
export {
  type GrantedTool,
  type GrantRequest,
  grantTools,
  type SpawnRule,
  type ToolGrant,
} from "./tools/grants/tool-grants.ts";
