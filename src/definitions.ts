/** `retinue/definitions`: reading, checking and finding agents and skills without running them. */

export type {
  Diagnostic,
  DocumentPath,
  Issue,
  Locate,
  Place,
  Severity,
} from "@retinue/base/foundation/diagnostic.ts";
export type {
  AgentBehaviour,
  AgentDefinition,
  AgentEnding,
  AgentMcpServer,
  MemoryScope,
  PromptContext,
  WrittenField,
} from "@retinue/config/agents/agent-definition.ts";
export {
  type AgentDenial,
  type AgentLookup,
  type AgentRegistry,
  createRegistry,
  type RegisteredAgent,
  type RegistryInput,
} from "@retinue/config/agents/agent-registry.ts";
export type { AgentScope, AgentSource } from "@retinue/config/agents/agent-source.ts";
export { type BuiltinAgentsOptions, builtinAgents } from "@retinue/config/agents/builtin/builtin-agents.ts";
export { type AgentInput, defineAgent } from "@retinue/config/agents/define-agent.ts";
export {
  type AgentsDescription,
  type DescribeAgentsOptions,
  describeAgents,
} from "@retinue/config/agents/describe-agents.ts";
export { type LintFacts, lintDefinition } from "@retinue/config/agents/lint-definition.ts";
export {
  type ParseAgentOptions,
  type ParsedAgent,
  parseAgentDefinition,
} from "@retinue/config/agents/parse-agent-definition.ts";
export { type DescriptionRating, rateDescription } from "@retinue/config/agents/rate-description.ts";
export { readSessionAgents, type SessionAgents } from "@retinue/config/agents/read-definition-object.ts";
export {
  type AgentCatalog,
  createAgentCatalog,
  type DiscoveredAgents,
  type DiscoverOptions,
  discoverAgents,
} from "@retinue/config/discovery/discover-agents.ts";
export type { AgentPlace } from "@retinue/config/discovery/find-agent-files.ts";
export type { Plugin, PluginOrigin } from "@retinue/config/plugins/plugin.ts";
export type { AgentLimits } from "@retinue/config/settings/agent-limits.ts";
export type { Skill, SkillScope, SkillSource } from "@retinue/config/skills/skill.ts";
export type { SkillCatalog, SkillSearch } from "@retinue/config/skills/skill-catalog.ts";
