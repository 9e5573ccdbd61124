import { type LoadedMemory, loadMemory } from "../context/load-memory.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { PolicyRule } from "../permissions/permission-policy.ts";
import { parseRule } from "../permissions/rules/parse-rule.ts";
import { readEnvironment } from "../settings/read-environment.ts";
import { mayLoadIn } from "./may-load-in.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import type { RuleFlags } from "./session-rules.ts";

/** The memory of an agent of this session, as settings, rules and trust allow it. */
export async function gatherMemory(
  world: Pick<RuntimeContext, "discovered" | "environment" | "trusted" | "disallowedTools" | "platform">,
  options: RuleFlags,
  definition: AgentDefinition | undefined,
): Promise<LoadedMemory> {
  if (definition === undefined) return { diagnostics: [] };
  const { paths, settings } = world.discovered;
  const isOff = readEnvironment(world.environment).options.autoMemoryDisabled === true;
  const mayLoad = mayLoadIn(world, options, ownRules(definition, paths.cwd));
  return loadMemory({
    definition,
    ...(mayLoad === undefined ? {} : { mayLoad }),
    paths,
    trusted: world.trusted,
    disabled: isOff || settings.settings.plain.autoMemoryEnabled === false,
  });
}

function ownRules({ disallowedTools = [] }: AgentDefinition, anchor: string): readonly PolicyRule[] {
  return disallowedTools.flatMap((text) => {
    const reading = parseRule(text, { list: "deny" });
    return reading.type === "rule" ? [{ rule: reading.rule, anchor }] : [];
  });
}
