/** `retinue/permissions`: rules, tool grants, settings and trust. */
export type { HookHandler, HookHandlerType, HookRule } from "@retinue/config/hooks/hook-rule.ts";
export {
  type LoadedSettings,
  type LoadSettingsOptions,
  loadSettings,
} from "@retinue/config/settings/load-settings.ts";
export { createPaths, type Paths, type PathsInput } from "@retinue/config/settings/paths.ts";
export type { SettingsScope } from "@retinue/config/settings/settings.ts";
export type {
  HeldBack,
  MergedPermissions,
  MergedSettings,
  SettingsLayer,
  SettingsSource,
  SourcedHook,
  SourcedRule,
} from "@retinue/config/settings/settings-layer.ts";
export {
  createTrustStore,
  type TrustAnswer,
  type TrustOutcome,
  type TrustStore,
  type TrustStoreOptions,
} from "@retinue/config/settings/trust-store.ts";
export type { ToolEffect } from "@retinue/config/tools/builtin-tools.ts";
export type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
export {
  type GrantedTool,
  type GrantRequest,
  grantTools,
  type SpawnRule,
  type ToolGrant,
} from "@retinue/config/tools/tool-grants.ts";
export type { ApprovalAnswer, ApprovalRequest, Approver, AskingAgent } from "@retinue/gate/approver.ts";
export type { PermissionMode } from "@retinue/gate/permission-policy.ts";
export {
  formatRule,
  type PermissionRule,
  parseRule,
  type RuleList,
  type RuleOptions,
  type RuleReading,
  type RuleSpecifier,
} from "@retinue/gate/rules/parse-rule.ts";
