/** `retinue/definitions`: reading, checking and finding agents and skills without running them. */
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
export {
  type AgentDenial,
  type AgentInput,
  type AgentLookup,
  type AgentRegistry,
  createRegistry,
  defineAgent,
  type RegisteredAgent,
  type RegistryInput,
} from "./definitions/agent-definition.ts";
export type { AgentLimits } from "./definitions/agent-limits.ts";
export { type BuiltinAgentsOptions, builtinAgents } from "./definitions/builtin/builtin-agents.ts";
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
export type { AgentPlace } from "./definitions/find-agent-files.ts";
export { type LintFacts, lintDefinition } from "./definitions/lint-definition.ts";
export {
  type ParseAgentOptions,
  type ParsedAgent,
  parseAgentDefinition,
} from "./definitions/parse-agent-definition.ts";
export { type DescriptionRating, rateDescription } from "./definitions/rate-description.ts";
export { readSessionAgents, type SessionAgents } from "./definitions/read-definition-object.ts";
export type { Diagnostic, DocumentPath, Issue, Locate, Place, Severity } from "./foundation/diagnostic.ts";
export type { Plugin, PluginOrigin } from "./plugins/plugin.ts";
export type { Skill, SkillScope, SkillSource } from "./skills/skill.ts";
export type { SkillCatalog, SkillSearch } from "./skills/skill-catalog.ts";
