import type { Problem } from "../../../foundation/problem.ts";
import type { CommandContext } from "../session-options.ts";
import { createPaint } from "../views/colour.ts";
import {
  countBySeverity,
  describeCounts,
  type FileProblems,
  groupByFile,
  plural,
  renderProblems,
} from "../views/problem-view.ts";
import { problemAsJson } from "./agent-json.ts";
import { type Checked, checkEverything, checkPaths } from "./gather-checks.ts";

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
  const checked = paths.length === 0 ? await checkEverything(context) : await checkPaths(context, paths);
  const counts = countBySeverity(checked.problems);
  const isBad = counts.error > 0 || (options.strict === true && counts.warning > 0);
  const shown = checked.problems.filter(({ severity }) => options.quiet !== true || severity === "error");
  const groups = groupByFile(shown);
  if (options.json === true) stdout.write(`${JSON.stringify(asJson(groups, checked), undefined, 2)}\n`);
  else stdout.write(asText(groups, checked, { context, options, isBad }));
  return isBad ? 1 : 0;
}

function asText(
  groups: readonly FileProblems[],
  { files, problems, nameOf, textOf }: Checked,
  {
    context,
    options,
    isBad,
  }: { readonly context: CommandContext; readonly options: CheckOptions; readonly isBad: boolean },
): string {
  const { stdout } = context.host;
  const paint = createPaint(stdout.isColourAllowed);
  const width = Math.min(stdout.columns ?? 100, 120);
  const body = renderProblems(groups, { paint, width, nameOf, textOf });
  if (options.quiet === true && groups.length === 0) return "";
  const summary = `${plural(files.length, "file")} checked: ${describeCounts(countBySeverity(problems))}.`;
  const styled = isBad ? paint.error(summary) : paint.good(summary);
  return body === "" ? `${styled}\n` : `${body}\n${styled}\n`;
}

function asJson(groups: readonly FileProblems[], { files, problems }: Checked) {
  const { error: errors, warning: warnings, note: notes } = countBySeverity(problems);
  return {
    version: 1,
    files: groups.map(({ file, problems: members }) => ({
      file: file ?? null,
      problems: members.map((problem: Problem) => problemAsJson(problem)),
    })),
    summary: { files: files.length, errors, warnings, notes },
  };
}
