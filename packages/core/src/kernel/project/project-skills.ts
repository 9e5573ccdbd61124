import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { escapeLine } from "@retinue/base/foundation/escape-control-tags.ts";
import { firstSentence } from "@retinue/base/foundation/first-sentence.ts";
import { lintAgentSkills } from "@retinue/config/skills/named-skills.ts";
import { describePowers, mayGrant, type Skill } from "@retinue/config/skills/skill.ts";
import { hasCommands } from "@retinue/config/skills/skill-pieces.ts";
import type { ProjectFacts } from "./project-facts.ts";

export interface ListedSkill {
  readonly skill: Skill;
  /** Its name on one line, and the first sentence of its description. */
  readonly title: string;
  readonly about: string;
  /** What it does besides giving its text. */
  readonly powers: readonly string[];
  /** Whether what it does besides counts here. */
  readonly mayGrant: boolean;
  /** Whether its text runs commands. */
  readonly runsCommands: boolean;
}

export interface SkillList {
  readonly skills: readonly ListedSkill[];
  readonly diagnostics: readonly Diagnostic[];
}

export interface SkillCheck {
  readonly files: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/** What can be asked about the skills of a folder. Files are read anew each time. */
export interface ProjectSkills {
  list(): Promise<SkillList>;
  /** Every mistake in skills and commands, and in agents that name skills that do not exist. */
  check(): Promise<SkillCheck>;
}

export function projectSkills(gather: () => Promise<ProjectFacts>): ProjectSkills {
  return {
    async list() {
      const { trust, skills } = await gather();
      const catalog = await skills();
      const list = catalog.list().map((skill) => ({
        skill,
        title: escapeLine(skill.name),
        about: firstSentence(escapeLine(skill.description)),
        powers: describePowers(skill).map(escapeLine),
        mayGrant: mayGrant(skill, trust.trusted),
        runsCommands: hasCommands(skill.body),
      }));
      return { skills: list, diagnostics: catalog.diagnostics };
    },
    async check() {
      const { discovered, skills } = await gather();
      const catalog = await skills();
      const definitions = discovered.registry.all().map(({ definition }) => definition);
      const diagnostics = [...catalog.diagnostics, ...lintAgentSkills(definitions, catalog)];
      return { files: catalog.files, diagnostics };
    },
  };
}
