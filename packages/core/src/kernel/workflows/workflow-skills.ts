import type { Skill, SkillScope } from "@retinue/config/skills/skill.ts";
import type { SavedWorkflow, WorkflowScope } from "@retinue/config/workflows/list-workflow-files.ts";

const scopes: Readonly<Record<WorkflowScope, SkillScope>> = {
  managed: "managed",
  project: "project",
  user: "user",
  plugin: "plugin",
  builtin: "managed",
};

/** Saved workflows as slash commands: each is a text that asks the model to call the tool. */
export function workflowSkills(
  saved: ReadonlyMap<string, SavedWorkflow>,
  taken: ReadonlySet<string>,
): readonly Skill[] {
  // Another name could not be written after a slash, or would be more than a name in the text.
  const callable = [...saved.values()].filter(({ name }) => /^[\w:.-]+$/.test(name) && !taken.has(name));
  return callable.map(({ name, scope, file = "", meta }) => ({
    name,
    description: meta.description,
    ...(meta.whenToUse === undefined ? {} : { whenToUse: meta.whenToUse }),
    argumentHint: "[args]",
    // Those of the product are in the description of the tool, and need no second place.
    disableModelInvocation: scope === "builtin",
    userInvocable: true,
    body: bodyOf(name),
    source: { scope: scopes[scope], kind: "skill", file, directory: file.replace(/[\\/][^\\/]*$/, "") },
  }));
}

function bodyOf(name: string): string {
  return `Run the saved workflow ${name}: call the Workflow tool now with name "${name}". If there is a text below the line, pass it as args, the whole of it as one string; otherwise leave args out.

---
$ARGUMENTS`;
}
