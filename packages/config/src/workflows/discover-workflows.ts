// @io
import { readFileSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import {
  builtinSaved,
  listWorkflowFiles,
  type SavedWorkflow,
  type WorkflowFile,
  type WorkflowSearch,
} from "./list-workflow-files.ts";
import { maxScript, readWorkflowScript } from "./read-workflow-script.ts";

export interface DiscoveredWorkflows {
  /** By name; of several with one name the nearest. */
  readonly workflows: ReadonlyMap<string, SavedWorkflow>;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads every saved workflow; one that is broken is reported with its line and left out. */
export function discoverWorkflows(search: WorkflowSearch): DiscoveredWorkflows {
  const diagnostics: Diagnostic[] = [];
  const found = [
    ...listWorkflowFiles(search).flatMap((file) => readSaved(file, diagnostics)),
    ...(search.disableBuiltin === true ? [] : builtinSaved()),
  ];
  const workflows = new Map<string, SavedWorkflow>();
  for (const workflow of found) {
    const { name, file } = workflow;
    const other = workflows.get(name);
    if (other === undefined) workflows.set(name, workflow);
    else if (file !== undefined && other.file !== undefined && dirname(file) === dirname(other.file))
      diagnostics.push({
        severity: "warning",
        code: "same-name",
        message: `${basename(other.file)} beside it has the same name, ${JSON.stringify(name)}, so this file is left out.`,
        advice: "Give each its own `meta.name`.",
        file,
      });
  }
  return { workflows, diagnostics };
}

function readSaved(
  { file, scope, plugin }: WorkflowFile,
  diagnostics: Diagnostic[],
): readonly SavedWorkflow[] {
  const text = readText(file, diagnostics);
  if (text === undefined) return [];
  const script = readWorkflowScript(text, file);
  if (script.type === "broken") {
    diagnostics.push(script.problem);
    return [];
  }
  const { meta } = script;
  return [{ name: plugin === undefined ? meta.name : `${plugin}:${meta.name}`, scope, file, text, meta }];
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
