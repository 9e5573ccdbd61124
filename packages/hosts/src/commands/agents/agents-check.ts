import {
  countBySeverity,
  type Diagnostic,
  describeCounts,
  plural,
} from "@retinue/base/foundation/diagnostic.ts";
import type { AgentCheck } from "@retinue/core/kernel/project/project-agents.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { openProject } from "../../shared/open-project.ts";
import { createPaint } from "../../shared/paint.ts";
import { type FileDiagnostics, groupByFile, renderDiagnostics } from "../views/render-diagnostics.ts";
import { diagnosticAsJson } from "./source-as-json.ts";

export interface CheckOptions {
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly strict?: boolean;
}

/** `retinue agents check`: every problem with its place, and exit code 1 when there is an error. */
export async function agentsCheck(
  context: CommandContext,
  paths: readonly string[],
  options: CheckOptions,
): Promise<number> {
  const { stdout } = context.host;
  // What is discovered here, or only the files and folders named; `--agents` whenever it is given.
  const { agents, option, nameOf, textOf } = openProject(context, { toleratesBrokenFiles: true });
  const { files, diagnostics } = await agents.check(paths);
  const checked: Checked = {
    files: [...new Set([...files, ...(option === undefined ? [] : [option.file])])],
    diagnostics: [...(option?.diagnostics ?? []), ...diagnostics],
    nameOf,
    textOf,
  };
  const counts = countBySeverity(checked.diagnostics);
  const isBad = counts.error > 0 || (options.strict === true && counts.warning > 0);
  const shown = checked.diagnostics.filter(({ severity }) => options.quiet !== true || severity === "error");
  const groups = groupByFile(shown);
  if (options.json === true) stdout.write(`${JSON.stringify(asJson(groups, checked), undefined, 2)}\n`);
  else stdout.write(asText(groups, checked, { context, options, isBad }));
  return isBad ? 1 : 0;
}

interface Checked extends AgentCheck {
  nameOf(file: string): string;
  textOf(file: string): string | undefined;
}

function asText(
  groups: readonly FileDiagnostics[],
  { files, diagnostics, nameOf, textOf }: Checked,
  {
    context,
    options,
    isBad,
  }: { readonly context: CommandContext; readonly options: CheckOptions; readonly isBad: boolean },
): string {
  const { stdout } = context.host;
  const paint = createPaint(stdout.isColourAllowed);
  const width = Math.min(stdout.columns ?? 100, 120);
  const body = renderDiagnostics(groups, { paint, width, nameOf, textOf });
  if (options.quiet === true && groups.length === 0) return "";
  const summary = `${plural(files.length, "file")} checked: ${describeCounts(countBySeverity(diagnostics))}.`;
  const styled = isBad ? paint.error(summary) : paint.good(summary);
  return body === "" ? `${styled}\n` : `${body}\n${styled}\n`;
}

function asJson(groups: readonly FileDiagnostics[], { files, diagnostics }: Checked) {
  const { error: errors, warning: warnings, note: notes } = countBySeverity(diagnostics);
  return {
    version: 1,
    files: groups.map(({ file, diagnostics: members }) => ({
      file: file ?? null,
      diagnostics: members.map((diagnostic: Diagnostic) => diagnosticAsJson(diagnostic)),
    })),
    summary: { files: files.length, errors, warnings, notes },
  };
}
