import {
  countBySeverity,
  type Diagnostic,
  describeCounts,
  plural,
} from "@retinue/base/foundation/diagnostic.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { openProject } from "../shared/open-project.ts";
import { createPaint } from "../shared/paint.ts";
import type { CheckOptions } from "./agents/agents-check.ts";
import { diagnosticAsJson } from "./agents/source-as-json.ts";
import { groupByFile, renderDiagnostics } from "./views/render-diagnostics.ts";

/** `retinue skills check`: every problem of skills with its place, and exit code 1 when there is an error. */
export async function skillsCheck(context: CommandContext, options: CheckOptions): Promise<number> {
  const { stdout } = context.host;
  const { skills, nameOf, textOf } = openProject(context, { toleratesBrokenFiles: true });
  const { files: checked, diagnostics } = await skills.check();
  const counts = countBySeverity(diagnostics);
  const isBad = counts.error > 0 || (options.strict === true && counts.warning > 0);
  const groups = groupByFile(
    diagnostics.filter(({ severity }) => options.quiet !== true || severity === "error"),
  );
  const files = checked.length;
  if (options.json === true) {
    const { error: errors, warning: warnings, note: notes } = counts;
    const view = {
      version: 1,
      files: groups.map(({ file, diagnostics: members }) => ({
        file: file ?? null,
        diagnostics: members.map((diagnostic: Diagnostic) => diagnosticAsJson(diagnostic)),
      })),
      summary: { files, errors, warnings, notes },
    };
    stdout.write(`${JSON.stringify(view, undefined, 2)}\n`);
    return isBad ? 1 : 0;
  }
  if (options.quiet === true && groups.length === 0) return isBad ? 1 : 0;
  const paint = createPaint(stdout.isColourAllowed);
  const body = renderDiagnostics(groups, {
    paint,
    width: Math.min(stdout.columns ?? 100, 120),
    nameOf,
    textOf,
  });
  const summary = `${plural(files, "file")} checked: ${describeCounts(counts)}.`;
  stdout.write(`${body === "" ? "" : `${body}\n`}${isBad ? paint.error(summary) : paint.good(summary)}\n`);
  return isBad ? 1 : 0;
}
