/** `@retinue/gate`: whether a call of an agent may run, for any agent. */
export {
  createGate,
  type Gate,
  type GateCall,
  type GateCallOptions,
  type GateDecision,
} from "./create-gate.ts";
export {
  type ParsedPolicy,
  type PermissionSettings,
  type PolicyPlace,
  type PolicyProblem,
  parsePolicy,
} from "./parse-policy.ts";
export type { PermissionMode, PermissionPolicy, PolicyRule } from "./permission-policy.ts";
export {
  formatRule,
  type PermissionRule,
  parseRule,
  type RuleList,
  type RuleOptions,
  type RuleReading,
  type RuleSpecifier,
} from "./rules/parse-rule.ts";
