// @io
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import type { Plugin } from "../plugins/plugin.ts";
import type { Paths } from "../settings/paths.ts";
import { builtinWorkflows } from "./builtin-workflows.ts";
import { maxScript, readWorkflowScript, type WorkflowScript } from "./read-workflow-script.ts";

export type WorkflowScope = "managed" | "project" | "user" | "plugin" | "builtin";

/** A workflow that can be called by its name. */
export interface SavedWorkflow {
  /** `meta.name`, behind the name of its plugin where it has one. */
  readonly name: string;
  readonly scope: WorkflowScope;
  /** Absent for those that come with the product. */
  readonly file?: string;
  readonly text: string;
  readonly script: WorkflowScript;
}

export interface DiscoveredWorkflows {
  /** By name; of several with one name the nearest. */
  readonly workflows: ReadonlyMap<string, SavedWorkflow>;
  readonly diagnostics: readonly Diagnostic[];
}

export interface WorkflowSearch {
  readonly paths: Pick<Paths, "workflows">;
  readonly plugins: readonly Plugin[];
  readonly settingSources?: readonly ("user" | "project" | "local")[] | undefined;
  /** Leaves out those that come with the product. */
  readonly disableBuiltin?: boolean;
}

/** Reads every saved workflow: the organisation's, the project's from the nearest folder up, the user's, plugins', our own. */
export function discoverWorkflows({
  paths,
  plugins,
  settingSources,
  disableBuiltin = false,
}: WorkflowSearch): DiscoveredWorkflows {
  const counts = (source: "user" | "project"): boolean => settingSources?.includes(source) !== false;
  const { managed, project, user } = paths.workflows;
  const diagnostics: Diagnostic[] = [];
  const found = [
    ...readFolder(managed, { scope: "managed" }, diagnostics),
    ...(counts("project")
      ? project.flatMap((folder) => readFolder(folder, { scope: "project" }, diagnostics))
      : []),
    ...(counts("user") ? readFolder(user, { scope: "user" }, diagnostics) : []),
    ...plugins
      .filter(({ enabled }) => enabled)
      .flatMap(({ root, name }) =>
        readFolder(join(root, "workflows"), { scope: "plugin", plugin: name }, diagnostics),
      ),
    ...(disableBuiltin ? [] : builtin()),
  ];
  const workflows = new Map<string, SavedWorkflow>();
  for (const workflow of found) if (!workflows.has(workflow.name)) workflows.set(workflow.name, workflow);
  return { workflows, diagnostics };
}

function readFolder(
  folder: string,
  { scope, plugin }: { readonly scope: WorkflowScope; readonly plugin?: string },
  diagnostics: Diagnostic[],
): readonly SavedWorkflow[] {
  return listScripts(folder).flatMap((name) => {
    const file = join(folder, name);
    const text = readText(file, diagnostics);
    if (text === undefined) return [];
    const script = readWorkflowScript(text, file);
    if (script.type === "broken") {
      diagnostics.push(script.problem);
      return [];
    }
    const own = script.meta.name;
    return [{ name: plugin === undefined ? own : `${plugin}:${own}`, scope, file, text, script }];
  });
}

/** Only files directly in the folder. */
function listScripts(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith(".js"))
      .sort();
  } catch {
    return [];
  }
}

function readText(file: string, diagnostics: Diagnostic[]): string | undefined {
  try {
    const stats = statSync(file);
    if (!stats.isFile()) return undefined;
    // A character takes up to four bytes.
    return stats.size > maxScript * 4 ? " ".repeat(maxScript + 1) : readFileSync(file, "utf8");
  } catch (error) {
    diagnostics.push({
      severity: "error",
      code: "unreadable-file",
      message: `This cannot be read (${errorCode(error) ?? String(error)}).`,
      advice: "Check that it exists and that you may read it.",
      file,
    });
    return undefined;
  }
}

function builtin(): readonly SavedWorkflow[] {
  return builtinWorkflows.flatMap((text) => {
    const script = readWorkflowScript(text);
    return script.type === "script"
      ? [{ name: script.meta.name, scope: "builtin" as const, text, script }]
      : [];
  });
}
