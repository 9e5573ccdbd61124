// @io
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "../plugins/plugin.ts";
import type { Paths } from "../settings/paths.ts";
import { builtinWorkflows } from "./builtin-workflows.ts";
import type { WorkflowMeta } from "./workflow-meta.ts";

export type WorkflowScope = "managed" | "project" | "user" | "plugin" | "builtin";

export interface WorkflowSearch {
  readonly paths: Pick<Paths, "workflows">;
  readonly plugins: readonly Plugin[];
  readonly settingSources?: readonly ("user" | "project" | "local")[] | undefined;
  /** Leaves out those that come with the product. */
  readonly disableBuiltin?: boolean;
}

export interface WorkflowFile {
  readonly file: string;
  readonly scope: WorkflowScope;
  /** The plugin it belongs to. */
  readonly plugin?: string;
}

/** Where saved workflows are, those that win first: the organisation's, the project's from the nearest folder up, the user's, plugins'. */
export function listWorkflowFiles({
  paths,
  plugins,
  settingSources,
}: WorkflowSearch): readonly WorkflowFile[] {
  const counts = (source: "user" | "project"): boolean => settingSources?.includes(source) !== false;
  const { managed, project, user } = paths.workflows;
  return [
    ...filesOf(managed, { scope: "managed" }),
    ...(counts("project") ? project.flatMap((folder) => filesOf(folder, { scope: "project" })) : []),
    ...(counts("user") ? filesOf(user, { scope: "user" }) : []),
    ...plugins
      .filter(({ enabled }) => enabled)
      .flatMap(({ root, name }) => filesOf(join(root, "workflows"), { scope: "plugin", plugin: name })),
  ];
}

/** Only files directly in the folder. */
function filesOf(folder: string, origin: Omit<WorkflowFile, "file">): readonly WorkflowFile[] {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(".js"));
    return names.sort().map((name) => ({ ...origin, file: join(folder, name) }));
  } catch {
    return [];
  }
}

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
