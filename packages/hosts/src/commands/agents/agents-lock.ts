import { plural } from "@retinue/base/foundation/diagnostic.ts";
import type { LockJudgement } from "@retinue/core/kernel/project/lock/project-lock.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { misuse } from "../../shared/misuse.ts";
import { openProject } from "../../shared/open-project.ts";
import { createPaint, type Paint } from "../../shared/paint.ts";
import { groupByFile, renderDiagnostics } from "../views/render-diagnostics.ts";
import {
  differenceLines,
  isWider,
  lockAsComment,
  lockAsJson,
  lockAsSarif,
  openDifferences,
} from "./lock-report.ts";
import { diagnosticAsJson } from "./source-as-json.ts";

export interface LockOptions {
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** `retinue agents lock`: writes what the configuration may do, and shows what is accepted by that. */
export async function agentsLock(context: CommandContext, options: LockOptions): Promise<number> {
  const { stdout, stderr } = context.host;
  const { lock, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  const written = await lock.write({ dryRun: options.dryRun === true });
  const { file, status, parts, differences, missingPlugins, diagnostics } = written;
  if (options.json === true) {
    const answer = { version: 1, lock: nameOf(file), status, parts, differences, missingPlugins };
    stdout.write(`${JSON.stringify(answer, undefined, 2)}\n`);
    return 0;
  }
  const paint = createPaint(stdout.isColourAllowed);
  for (const difference of openDifferences(differences))
    stdout.write(`${paintLines(differenceLines(difference), paint)}\n`);
  for (const each of diagnostics)
    stderr.write(`${each.file ?? ""}: ${each.message} It is not in the lock.\n`);
  for (const name of missingPlugins)
    stderr.write(`The plugin ${name} is not installed here; what the lock has of it was kept.\n`);
  const words = { written: "is written", unchanged: "fits already", "would-write": "would be written" };
  stdout.write(`${nameOf(file)} ${words[status]}: ${plural(parts, "part")}.\n`);
  return 0;
}

export interface LockedOptions {
  readonly json?: boolean;
  readonly sarif?: boolean;
  readonly comment?: boolean;
  readonly quiet?: boolean;
}

/** `retinue agents check --locked`: exit code 1 where something changed that has not been accepted. */
export async function checkLocked(
  context: CommandContext,
  paths: readonly string[],
  options: LockedOptions,
): Promise<number> {
  if (paths.length > 0)
    throw misuse("--locked takes no paths: it compares the whole project.", "Leave out the paths.");
  const { stdout } = context.host;
  const { lock, nameOf, textOf } = openProject(context, { toleratesBrokenFiles: true });
  const judgement = await lock.check();
  if (judgement.type === "none")
    throw misuse(
      `There is no ${nameOf(judgement.file)}, so nothing was accepted.`,
      "`retinue agents lock` writes it; look at it before you commit it.",
    );
  if (judgement.type === "broken") {
    const found = groupByFile(judgement.diagnostics);
    if (options.json === true)
      stdout.write(
        `${JSON.stringify({ version: 1, lock: nameOf(judgement.file), fits: false, diagnostics: judgement.diagnostics.map(diagnosticAsJson) }, undefined, 2)}\n`,
      );
    else
      context.host.stderr.write(
        renderDiagnostics(found, {
          paint: createPaint(context.host.stderr.isColourAllowed),
          width: Math.min(stdout.columns ?? 100, 120),
          nameOf,
          textOf,
        }),
      );
    return 1;
  }
  stdout.write(reportText(judgement, { context, options, name: nameOf(judgement.file) }));
  return openDifferences(judgement.differences).length === 0 ? 0 : 1;
}

function reportText(
  judgement: Extract<LockJudgement, { readonly type: "compared" }>,
  {
    context: { host },
    options,
    name,
  }: { readonly context: CommandContext; readonly options: LockedOptions; readonly name: string },
): string {
  const { differences, missingPlugins } = judgement;
  const report = { file: "retinue.lock", differences, missingPlugins };
  if (options.json === true)
    return `${JSON.stringify(lockAsJson({ ...report, file: name }), undefined, 2)}\n`;
  if (options.sarif === true) return `${JSON.stringify(lockAsSarif(report, host.version), undefined, 2)}\n`;
  if (options.comment === true) return lockAsComment(report);
  const paint = createPaint(host.stdout.isColourAllowed);
  const open = openDifferences(differences);
  if (open.length === 0) return options.quiet === true ? "" : `${paint.good(`Everything fits ${name}.`)}\n`;
  const wider = open.filter((each) => isWider([each])).length;
  const summary = `${plural(open.length, "difference")} from ${name}; ${wider === 0 ? "none may do more" : `${wider} may do more`}. \`retinue agents lock\` accepts ${open.length === 1 ? "it" : "them"}.`;
  const missing = missingPlugins.map(
    (plugin) => `The plugin ${plugin} is not installed here and was not compared.\n`,
  );
  return `${open.map((each) => `${paintLines(differenceLines(each), paint)}\n`).join("")}${missing.join("")}${wider === 0 ? summary : paint.error(summary)}\n`;
}

/** The first line names the part, and what it may do more is what must be seen. */
export function paintLines(lines: readonly string[], paint: Paint): string {
  return lines
    .map((line, index) => {
      if (index === 0) return paint.bold(line);
      return line.startsWith("  + ") ? paint.error(line) : line;
    })
    .join("\n");
}
