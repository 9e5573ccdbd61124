import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { type AgentScope, agentScopes } from "@retinue/config/agents/agent-source.ts";
import { parseAgentDefinition } from "@retinue/config/agents/parse-agent-definition.ts";
import { findMemory } from "@retinue/config/instructions/load-memory.ts";
import { createPaths } from "@retinue/config/settings/paths.ts";
import type { Fields, Roots } from "./security-case.ts";

/** A definition as its file would be read: every field of the case is in the frontmatter. */
export function caseAgent(written: Fields, usual: { readonly name: string; readonly scope: AgentScope }) {
  const { scope: given, plugin, prompt, ...fields } = written;
  const scope = agentScopeOf(given) ?? usual.scope;
  const name = typeof fields["name"] === "string" ? fields["name"] : usual.name;
  const [pluginName, bareName] = scope === "plugin" ? splitName(name, plugin) : [undefined, name];
  const front = { description: "It works.", ...fields, name: bareName };
  const lines = Object.entries(front).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  const text = `---\n${lines.join("\n")}\n---\n${typeof prompt === "string" ? prompt : "Work."}\n`;
  const { definition } = parseAgentDefinition(text, {
    file: `/agents/${bareName}.md`,
    scope,
    plugin: pluginName,
  });
  if (definition === undefined || pluginName === undefined) return definition;
  return { ...definition, source: { ...definition.source, id: `${pluginName}:${bareName}` } };
}

export function agentScopeOf(written: unknown): AgentScope | undefined {
  return written === "built-in" ? "builtin" : agentScopes.find((scope) => scope === written);
}

function splitName(name: string, plugin: unknown): readonly [string, string] {
  const [before, ...rest] = name.split(":");
  if (rest.length > 0) return [before ?? "", rest.join(":")];
  return [typeof plugin === "string" ? plugin : "plugin", name];
}

/** Where the agent of a case keeps its memory, as at its start. */
export async function findCaseMemory(definition: AgentDefinition, trusted: boolean, { P, H }: Roots) {
  const paths = createPaths({ home: H, cwd: P, environment: {}, platform: "linux" });
  return (await findMemory({ definition, paths, trusted })).place;
}
