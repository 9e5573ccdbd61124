import { isRecord } from "../foundation/json-value.ts";
import type { Skill } from "./skill.ts";

export interface OverriddenSkills {
  readonly skills: readonly Skill[];
  /** Those that stand in the model's list without a description. */
  readonly nameOnly: ReadonlySet<string>;
}

/** What `skillOverrides` of settings makes of the skills that were found. */
export function overrideSkills(skills: readonly Skill[], overrides: unknown): OverriddenSkills {
  const wordOf = (name: string): unknown =>
    isRecord(overrides) && Object.hasOwn(overrides, name) ? overrides[name] : undefined;
  return {
    skills: skills.flatMap((skill) => {
      const word = wordOf(skill.name);
      if (word === "off") return [];
      return [word === "user-invocable-only" ? { ...skill, disableModelInvocation: true } : skill];
    }),
    nameOnly: new Set(skills.map(({ name }) => name).filter((name) => wordOf(name) === "name-only")),
  };
}
