import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import type { Skill } from "./skill.ts";

export type SkillLookup =
  | { readonly type: "found"; readonly skill: Skill }
  | { readonly type: "refused"; readonly reason: string };

const maxNames = 40;

/** Finds a skill by its whole name and nothing else, so that rules about names cannot be passed by another spelling. */
export function lookUpSkill(skills: readonly Skill[], name: string, caller: "model" | "person"): SkillLookup {
  const mayCall = (skill: Skill): boolean =>
    caller === "person" ? skill.userInvocable : !skill.disableModelInvocation;
  const skill = skills.find((candidate) => candidate.name === name);
  if (skill === undefined) return { type: "refused", reason: unknownText(skills.filter(mayCall), name) };
  if (mayCall(skill)) return { type: "found", skill };
  const why = {
    person: "only agents may call it (`user-invocable: false`)",
    model: "only users may call it (`disable-model-invocation`)",
  }[caller];
  return { type: "refused", reason: `The skill ${JSON.stringify(name)} was not loaded: ${why}.` };
}

function unknownText(skills: readonly Skill[], name: string): string {
  const names = skills.map((skill) => skill.name).toSorted();
  const nearest = nearestName(name, names);
  const near = nearest === undefined ? "" : ` Did you mean ${nearest}?`;
  const shown = names.slice(0, maxNames).join(", ");
  const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : "";
  const known = names.length === 0 ? "There are none here." : `Available: ${shown}${more}.`;
  return `There is no skill ${JSON.stringify(name.slice(0, 200))}.${near} ${known}`;
}
