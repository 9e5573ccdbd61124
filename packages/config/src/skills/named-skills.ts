import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import type { AgentDefinition } from "../agents/agent-definition.ts";
import type { Skill } from "./skill.ts";
import type { SkillCatalog } from "./skill-catalog.ts";

export interface NamedSkills {
  /** In the order named, each once. */
  readonly skills: readonly Skill[];
  /** Names that lead to nothing, and skills that no agent may preload. */
  readonly diagnostics: readonly Diagnostic[];
}

/** The skills an agent names in `skills`. An agent of a plugin may name its plugin's skills without the prefix. */
export function findNamedSkills(
  definition: Pick<AgentDefinition, "name" | "skills" | "source" | "written">,
  catalog: Pick<SkillCatalog, "find">,
): NamedSkills {
  const skills = new Map<string, Skill>();
  const diagnostics: Diagnostic[] = [];
  const { plugin } = definition.source;
  for (const name of new Set(definition.skills ?? [])) {
    const own = plugin === undefined ? undefined : catalog.find(`${plugin}:${name}`);
    const search = own?.type === "found" ? own : catalog.find(name);
    if (search.type === "unknown") diagnostics.push(unknownSkill(definition, name, search.nearest));
    else if (search.skill.disableModelInvocation) diagnostics.push(notPreloadable(definition, search.skill));
    else skills.set(search.skill.name, search.skill);
  }
  return { skills: [...skills.values()], diagnostics };
}

/** What is wrong with the skills that agents name, for the check of definitions. */
export function lintAgentSkills(
  definitions: readonly Pick<AgentDefinition, "name" | "skills" | "source" | "written">[],
  catalog: Pick<SkillCatalog, "find">,
): Diagnostic[] {
  return definitions.flatMap((definition) => findNamedSkills(definition, catalog).diagnostics);
}

type Named = Pick<AgentDefinition, "name" | "source" | "written">;

function unknownSkill(definition: Named, name: string, nearest: string | undefined): Diagnostic {
  return {
    severity: "warning",
    code: "unknown-skill",
    message: `The agent \`${definition.name}\` names the skill ${JSON.stringify(name.slice(0, 200))}, which does not exist.`,
    advice: nearest === undefined ? "Remove it, or add the skill." : `Did you mean \`${nearest}\`?`,
    ...placeOf(definition),
  };
}

function notPreloadable(definition: Named, skill: Skill): Diagnostic {
  return {
    severity: "warning",
    code: "skill-not-preloadable",
    message: `The agent \`${definition.name}\` names the skill \`${skill.name}\`, which only users may call; it was left out.`,
    advice: "Remove it, or remove `disable-model-invocation` from the skill.",
    ...placeOf(definition),
  };
}

function placeOf({ source, written }: Named): Partial<Diagnostic> {
  return { file: source.file, ...written["skills"]?.place };
}
