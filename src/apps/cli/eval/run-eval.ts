import { appendFile, cp, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRetinueError } from "../../../foundation/retinue-error.ts";
import type { Runtime } from "../../../runtime/create-runtime.ts";
import { readLines } from "../../../storage/read-lines.ts";
import { cellsOf, type EvalCell, type EvalResult, readResult } from "./eval-results.ts";
import { type EvalPlan, mainDefinition } from "./read-eval-file.ts";
import { scoreAnswer } from "./score-answer.ts";

export interface RunEvalOptions {
  readonly plan: EvalPlan;
  /** The file that each result is appended to, and from which an earlier evaluation continues. */
  readonly resultsFile: string;
  readonly directory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly open: (directory: string) => Runtime;
  readonly signal: AbortSignal;
  readonly onResult: (result: EvalResult, done: number, planned: number) => void;
}

export interface EvalOutcome {
  readonly planned: number;
  readonly results: readonly EvalResult[];
  readonly stopped?: string;
}

/** Runs what of the table has no result yet, within one budget. Each result is on disk before the next run begins. */
export async function runEval(options: RunEvalOptions): Promise<EvalOutcome> {
  const { plan, signal, resultsFile, onResult } = options;
  const cells = cellsOf(plan);
  const { results: known, spent } = await loadResults(resultsFile);
  const results = new Map(
    cells.flatMap(({ key }) => (known.has(key) ? [[key, known.get(key) as EvalResult]] : [])),
  );
  const waiting = cells.filter(({ key }) => !results.has(key)).values();
  const budget = createBudget(plan, spent);
  let stopped: string | undefined;

  async function work(): Promise<void> {
    for (const cell of waiting) {
      if (signal.aborted) return;
      const share = budget.reserve();
      if (share === "empty") {
        stopped = usedUp(plan);
        return;
      }
      const result = await runCell(cell, { ...options, share });
      budget.release(share, result.cost ?? 0);
      // What was cut off, by a person or for lack of money, is run again the next time; what it cost counts.
      const isShort = result.endedBy === "max_budget" && share !== undefined;
      if (isShort || signal.aborted) {
        if (result.cost !== undefined)
          await appendFile(resultsFile, `${JSON.stringify({ spent: result.cost })}\n`);
        if (isShort) stopped = usedUp(plan);
        return;
      }
      await appendFile(resultsFile, `${JSON.stringify(result)}\n`);
      results.set(cell.key, result);
      onResult(result, results.size, cells.length);
    }
  }

  await Promise.all(Array.from({ length: plan.concurrency }, work));
  return {
    planned: cells.length,
    results: cells.flatMap(({ key }) => results.get(key) ?? []),
    ...(stopped === undefined ? {} : { stopped }),
  };
}

function usedUp({ budgetUsd }: EvalPlan): string {
  return `The budget of $${budgetUsd} is used up.`;
}

interface EarlierResults {
  readonly results: ReadonlyMap<string, EvalResult>;
  readonly spent: number;
}

async function loadResults(file: string): Promise<EarlierResults> {
  const { values, torn } = await readLines(file).catch(() => ({ values: [], torn: false }));
  // A process that was killed while it wrote has left half a line, which the next result must not continue.
  if (torn) await appendFile(file, "\n");
  const read = values.flatMap((line) => readResult(line) ?? []);
  const wasted = values.reduce((sum, { spent }) => sum + (typeof spent === "number" ? spent : 0), 0);
  return {
    results: new Map(read.map((result) => [result.key, result])),
    spent: read.reduce((sum, { cost = 0 }) => sum + cost, wasted),
  };
}

/** What a run may cost at most is reserved before it starts, so that the budget holds with several at the same time. */
function createBudget({ budgetUsd, concurrency }: EvalPlan, spent: number) {
  let left = (budgetUsd ?? 0) - spent;
  let free = concurrency;
  return {
    reserve(): number | undefined | "empty" {
      if (budgetUsd === undefined) return undefined;
      if (left <= 0) return "empty";
      const share = left / Math.max(1, free);
      free -= 1;
      left -= share;
      return share;
    },
    release(share: number | undefined, cost: number): void {
      if (share === undefined) return;
      free += 1;
      left += share - cost;
    },
  };
}

async function runCell(
  cell: EvalCell,
  options: RunEvalOptions & { readonly share: number | undefined },
): Promise<EvalResult> {
  const { task, definition, model, repetition, key } = cell;
  const about = { key, task: task.name, definition, model: model ?? "default", repetition };
  const start = performance.now();
  await using place = await openPlace(options);
  try {
    await using runtime = options.open(place.directory);
    const result = await runtime.run(task.prompt, runOptions(cell, options)).result;
    const durationMs = Math.round(performance.now() - start);
    const own = result.tree ?? result.totals;
    const left = options.share === undefined ? undefined : Math.max(1e-6, options.share - (own.costUsd ?? 0));
    const { directory } = place;
    const { environment, signal } = options;
    const score = await scoreAnswer(result, {
      task,
      directory,
      environment,
      runtime,
      signal,
      budgetUsd: left,
    });
    const { costUsd: judged, ...scored } = score;
    return {
      ...about,
      ...scored,
      status: result.status,
      endedBy: result.reason,
      turns: own.turns,
      durationMs,
      sessionId: result.sessionId,
      ...(own.costUsd === undefined ? {} : { cost: own.costUsd + judged }),
      ...(own.costUsd === undefined && judged > 0 ? { cost: judged } : {}),
    };
  } catch (error) {
    if (!isRetinueError(error)) throw error;
    const durationMs = Math.round(performance.now() - start);
    return {
      ...about,
      passed: false,
      score: 0,
      reason: error.message,
      status: "failed",
      endedBy: error.code,
      turns: 0,
      durationMs,
    };
  }
}

function runOptions(
  { task, definition, model }: EvalCell,
  { plan, signal, share }: RunEvalOptions & { readonly share: number | undefined },
) {
  const { maxTurns, permissionMode, allowedTools } = plan;
  return {
    signal,
    ...(definition === mainDefinition ? {} : { agent: definition }),
    ...(model === undefined ? {} : { model }),
    ...(task.schema === undefined ? {} : { output: task.schema }),
    ...(share === undefined ? {} : { maxBudgetUsd: share }),
    ...(maxTurns === undefined ? {} : { maxTurns }),
    ...(permissionMode === undefined ? {} : { permissionMode }),
    ...(allowedTools === undefined ? {} : { allowedTools }),
  };
}

/** The folder of a run: a copy that no other run sees, or the one of the command. */
async function openPlace({ plan, directory }: Pick<RunEvalOptions, "plan" | "directory">) {
  if (plan.workspace === undefined) return { directory, [Symbol.asyncDispose]: async () => undefined };
  const copy = await realpath(await mkdtemp(join(tmpdir(), "retinue-eval-")));
  const remove = (): Promise<void> => rm(copy, { recursive: true, force: true });
  try {
    await cp(plan.workspace, copy, { recursive: true });
  } catch (error) {
    await remove();
    throw error;
  }
  return { directory: copy, [Symbol.asyncDispose]: remove };
}
