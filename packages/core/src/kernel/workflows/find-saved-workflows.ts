import type { Skill, SkillScope } from "@retinue/config/skills/skill.ts";
import {
  builtinSaved,
  listWorkflowFiles,
  type SavedWorkflow,
  type WorkflowScope,
  type WorkflowSearch,
} from "@retinue/config/workflows/list-workflow-files.ts";
import { removesTool } from "@retinue/gate/decide.ts";
import type { PolicyRule } from "@retinue/gate/permission-policy.ts";
import type { FolderContext } from "../runtime-context.ts";

/** The saved workflows of a folder as they are now; undefined where there are no workflows at all. */
export async function findSavedWorkflows(
  {
    discovered,
    settingSources,
    variables,
  }: Pick<FolderContext, "discovered" | "settingSources" | "variables">,
  deny: readonly PolicyRule[],
): Promise<ReadonlyMap<string, SavedWorkflow> | undefined> {
  const { plain } = discovered.settings.settings;
  const isOff =
    plain.disableWorkflows === true ||
    plain.enableWorkflows === false ||
    variables.workflowsDisabled === true ||
    removesTool({ name: "Workflow" }, { deny });
  if (isOff) return undefined;
  const search: WorkflowSearch = {
    paths: discovered.paths,
    plugins: discovered.plugins,
    settingSources,
    disableBuiltin: plain.disableBundledSkills === true || variables.bundledSkillsDisabled === true,
  };
  // The parser is loaded only where there is something to parse.
  if (listWorkflowFiles(search).length === 0)
    return new Map(search.disableBuiltin === true ? [] : builtinSaved().map((saved) => [saved.name, saved]));
  const { discoverWorkflows } = await import("@retinue/config/workflows/discover-workflows.ts");
  return discoverWorkflows(search).workflows;
}

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
    whenToUse: meta.whenToUse,
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
