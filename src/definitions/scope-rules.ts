import type { Diagnostic } from "../foundation/diagnostic.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { ParsedAgent } from "./parse-definition.ts";

/** Plugins are other people's code: they may describe an agent, but not run commands, start servers or widen permissions. */
const ignoredInPlugins = ["hooks", "mcpServers", "permissionMode", "initialPrompt"] as const;

/** Takes away what the scope of a definition may not decide, with a warning for each field. */
export function applyScopeRules(definition: AgentDefinition, diagnostics: readonly Diagnostic[]): ParsedAgent {
  if (definition.source.scope !== "plugin") return { definition, diagnostics };
  const warnings: Diagnostic[] = [];
  const kept: { -readonly [K in keyof AgentDefinition]: AgentDefinition[K] } = { ...definition };
  for (const key of ignoredInPlugins) {
    if (kept[key] === undefined) continue;
    delete kept[key];
    warnings.push({
      severity: "warning",
      code: "ignored-in-plugin",
      message: `\`${key}\` is ignored in a plugin's agent.`,
      advice: `Copy the agent to your own agents folder if it needs \`${key}\`.`,
      ...(definition.source.file === undefined ? {} : { file: definition.source.file }),
      ...definition.written[key]?.place,
    });
  }
  return { definition: kept, diagnostics: [...diagnostics, ...warnings] };
}
