import { readFileSync, rmSync, statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { fileError } from "@retinue/base/foundation/file-error.ts";
import { refuseSystemPath } from "@retinue/base/foundation/find-working-folder.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { writeNewFile } from "@retinue/core/kernel/project/write-new-file.ts";
import type { CliHost } from "../shared/cli-host.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { displayPath } from "../shared/display-path.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import { type EvalReport, type EvalResult, renderEvalPage, summarize } from "../shared/eval-results.ts";
import { pathsOf } from "../shared/find-named-task.ts";
import { checkFlags } from "../shared/flags.ts";
import { misuse } from "../shared/misuse.ts";
import { createPrintRuntime, refuseKeyless, refuseOffline } from "../shared/open-print-session.ts";
import { createPaint } from "../shared/paint.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import { type EvalPlan, readEvalFile } from "./eval/read-eval-file.ts";
import { runEval } from "./eval/run-eval.ts";
import { renderTable } from "./views/render-table.ts";

export interface EvalOptions {
  readonly json?: boolean;
  readonly html?: string;
  readonly results?: string;
  readonly fresh?: boolean;
}

/** `retinue eval FILE`: runs a table of tasks, agents and models, scores the answers, and continues where it was stopped. */
export async function evaluate(
  context: CommandContext,
  written: string,
  options: EvalOptions,
): Promise<number> {
  const { host } = context;
  checkFlags(context.session, host.cwd);
  if (options.html === "")
    throw misuse("--html needs the name of a file.", "Write, for example, --html eval.html.");
  const file = resolve(host.cwd, written);
  const plan = loadPlan(file, displayPath(file, host));
  const resultsFile = resolve(host.cwd, options.results ?? `${written}.results.jsonl`);
  // Before anything is paid for.
  if (options.html !== undefined) await refuseSystemPath(resolve(host.cwd, options.html));
  await refuseSystemPath(resultsFile);
  if (options.fresh === true) rmSync(resultsFile, { force: true });
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  try {
    const outcome = await runEval({
      plan,
      resultsFile,
      directory: host.cwd,
      environment: host.environment,
      signal: stop.signal,
      open: (cwd, kept) => createPrintRuntime({ ...context, host: { ...host, cwd } }, kept),
      onResult: (result, done, planned) => host.stderr.write(describeResult(result, done, planned)),
      onNoResult: (attempt) => host.stderr.write(describeNoResult(attempt)),
      checkModel(session, model) {
        const { environment } = host;
        refuseOffline(session, { model, environment });
        refuseKeyless(session, environment);
      },
    });
    const report = reportOf(outcome, { plan, file: basename(file), isStopped: stop.signal.aborted });
    const { html, json } = options;
    if (html !== undefined) {
      const file = resolve(host.cwd, html);
      const notes = pathsOf(host).temporaryNotes;
      await writeNewFile(file, renderEvalPage(report), { replaces: true, notes });
      host.stderr.write(`Written: ${displayPath(file, host)}\n`);
    }
    host.stdout.write(json === true ? `${JSON.stringify(report, undefined, 2)}\n` : describe(report, host));
    if (stop.signal.aborted) {
      host.stderr.write(
        `Stopped. The same command continues with the other ${report.planned - report.done} runs.\n`,
      );
      return exitCodeOf(stop.signal.reason);
    }
    return report.done === report.planned && report.results.every(({ passed }) => passed) ? 0 : 1;
  } finally {
    forget();
  }
}

function loadPlan(file: string, name: string): EvalPlan {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw fileError("read", file, error);
  }
  const plan = readEvalFile(text, name);
  if (plan.workspace === undefined) return plan;
  const workspace = resolve(dirname(file), plan.workspace);
  if (statSync(workspace, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new RetinueError("invalid-eval", `${name}: workspace must be a folder, but ${workspace} is none.`);
  return { ...plan, workspace };
}

function reportOf(
  { planned, results, stopped }: Awaited<ReturnType<typeof runEval>>,
  { plan, file, isStopped }: { readonly plan: EvalPlan; readonly file: string; readonly isStopped: boolean },
): EvalReport {
  const why = isStopped ? "It was stopped." : stopped;
  return {
    version: 1,
    file,
    planned,
    done: results.length,
    costUsd: results.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0),
    budgetUsd: plan.budgetUsd,
    stopped: why,
    summaries: summarize(results),
    results,
  };
}

function describe(report: EvalReport, host: CliHost): string {
  const heading = (text: string) => ({ heading: text, atLeast: 4 });
  const table = renderTable({
    columns: ["AGENT", "MODEL", "PASSED", "SCORE", "COST", "TIME"].map(heading),
    rows: report.summaries.map(({ definition, model, passed, runs, score, costUsd, meanMs }) => [
      definition,
      model,
      `${passed} of ${runs}`,
      score.toFixed(2),
      `$${costUsd.toFixed(4)}`,
      `${(meanMs / 1000).toFixed(1)} s`,
    ]),
    width: host.stdout.columns,
    paint: createPaint(host.stdout.isColourAllowed),
  });
  const rest = report.done < report.planned ? ` ${report.stopped ?? ""}` : "";
  return `${table}\n${report.done} of ${report.planned} runs, $${report.costUsd.toFixed(4)}.${rest}\n`;
}

function describeNoResult({ task, definition, model, repetition, reason = "" }: EvalResult): string {
  return `${stripControlCharacters(`${task}, ${definition}, ${model}, run ${repetition}: no result: ${reason}`)}\n`;
}

function describeResult(result: EvalResult, done: number, planned: number): string {
  const { task, definition, model, repetition, passed, reason } = result;
  const what = `${task}, ${definition}, ${model}, run ${repetition}`;
  const verdict = passed ? "passed" : `not passed${reason === undefined ? "" : `: ${reason}`}`;
  return `[${done}/${planned}] ${stripControlCharacters(`${what}: ${verdict}`)}\n`;
}
