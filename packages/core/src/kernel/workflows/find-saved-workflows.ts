import {
  builtinSaved,
  listWorkflowFiles,
  type SavedWorkflow,
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
