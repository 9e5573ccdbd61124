import { builtinWorkflows } from "./builtin-workflows.ts";
import type { WorkflowScope } from "./list-workflow-files.ts";
import type { WorkflowMeta } from "./workflow-meta.ts";

/** A workflow that can be called by its name. */
export interface SavedWorkflow {
  /** `meta.name`, behind the name of its plugin where it has one. */
  readonly name: string;
  readonly scope: WorkflowScope;
  /** Absent for those that come with the product. */
  readonly file?: string;
  readonly text: string;
  readonly meta: WorkflowMeta;
}

/** Those that come with the product. */
export function builtinSaved(): readonly SavedWorkflow[] {
  return builtinWorkflows.map(({ meta, text }) => ({ name: meta.name, scope: "builtin", text, meta }));
}
