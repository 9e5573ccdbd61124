import { appendFile, cp, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileError } from "@retinue/base/foundation/file-error.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import type { Runtime } from "@retinue/core/kernel/create-runtime.ts";
import type { SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import { type EvalResult, failedBeforeAnswer, readResult } from "../../shared/eval-results.ts";
import { cellsOf, type EvalCell, type EvalPlan, mainDefinition } from "./read-eval-file.ts";
import { scoreAnswer } from "./score-answer.ts";

export interface RunEvalOptions {
  readonly plan: EvalPlan;
  /** The file that each result is appended to, and from which an earlier evaluation continues. */
  readonly resultsFile: string;
  readonly directory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly open: (directory: string, options: { readonly sessionPersistence: boolean }) => Runtime;
  readonly signal: AbortSignal;
  readonly onResult: (result: EvalResult, done: number, planned: number) => void;
  /** Called with a run that failed before an answer: it is not kept, and is run again the next time. */
  readonly onNoResult?: (attempt: EvalResult) => void;
  /** Throws where the model of a session cannot answer, such as without a key. */
  readonly checkModel?: (session: Session, model: string | undefined) => void;
}

export interface EvalOutcome {
  readonly planned: number;
  readonly results: readonly EvalResult[];
  readonly stopped?: string;
}

/**
 * Runs what of the table has no result yet, within one budget. Each result is on disk before the next run begins. Throws
 * before the first run where an agent or model cannot be used.
 */
export async function runEval(options: RunEvalOptions): Promise<EvalOutcome> {
  const { plan, signal, resultsFile, onResult } = options;
  const cells = cellsOf(plan);
  const { results: known, spent } = await loadResults(resultsFile);
  const results = new Map(
    cells.flatMap(({ key }) => (known.has(key) ? [[key, known.get(key) as EvalResult]] : [])),
  );
  const open = cells.filter(({ key }) => !results.has(key));
  await checkSetup(open, options);
  const waiting = open.values();
  const budget = createBudget(plan, spent);
  // The runs of this start that failed before an answer.
  const excluded = new Set<string | undefined>();
  let count = 0;
  let first: string | undefined;
  const failures = {
    add({ model }: EvalCell, { endedBy, reason }: EvalResult): void {
      if (lasting.has(endedBy)) excluded.add(model);
      count += 1;
      first ??= reason;
    },
    excludes({ model }: EvalCell): boolean {
      const isExcluded = excluded.has(model);
      if (isExcluded) count += 1;
      return isExcluded;
    },
    describe(): string | undefined {
      if (count === 0) return undefined;
      const runs = count === 1 ? "1 run has" : `${count} runs have`;
      return `${runs} no result, and the same command runs them again: ${first ?? "no answer."}`;
    },
  };
  let stopped: string | undefined;

  async function work(): Promise<void> {
    for (const cell of waiting) {
      if (signal.aborted) return;
      if (failures.excludes(cell)) continue;
      const share = budget.reserve();
      if (share === "empty") {
        stopped = usedUp(plan);
        return;
      }
      const { result, isScored } = await runCell(cell, { ...options, share });
      budget.release(share, result.costUsd ?? 0);
      // What was cut off, by a person or because money ran out, is run again the next time; what it cost counts.
      const isShort = result.endedBy === "max_budget" && share !== undefined;
      if (isShort || signal.aborted || !isScored) {
        if (result.costUsd !== undefined) await append(resultsFile, { spentUsd: result.costUsd });
        if (isShort) stopped = usedUp(plan);
        if (isShort || signal.aborted) return;
        failures.add(cell, result);
        options.onNoResult?.(result);
        continue;
      }
      await append(resultsFile, result);
      results.set(cell.key, result);
      onResult(result, results.size, cells.length);
    }
  }

  await Promise.all(Array.from({ length: plan.concurrency }, work));
  stopped ??= failures.describe();
  return {
    planned: cells.length,
    results: cells.flatMap(({ key }) => results.get(key) ?? []),
    stopped,
  };
}

async function append(file: string, line: object): Promise<void> {
  await appendFile(file, `${JSON.stringify(line)}\n`).catch((error: unknown) => {
    throw fileError("write", file, error);
  });
}

/** Opens each agent and model once, also those of judges, before anything is paid for. */
async function checkSetup(cells: readonly EvalCell[], options: RunEvalOptions): Promise<void> {
  if (cells.length === 0) return;
  const { permissionMode, allowedTools } = options.plan;
  const given = {
    permissionMode,
    allowedTools,
  };
  const used = cells.flatMap(({ definition, model, task: { judge } }): readonly SessionOptions[] => [
    { ...given, ...agentOptions(definition === mainDefinition ? undefined : definition, model) },
    ...(judge === undefined ? [] : [{ tools: [], ...agentOptions(judge.agent, judge.model) }]),
  ]);
  const unique = new Map(used.map((one) => [JSON.stringify(one), one]));
  await using place = await openPlace(options);
  // No session of it is left behind.
  await using runtime = options.open(place.directory, { sessionPersistence: false });
  for (const one of unique.values()) {
    if (options.signal.aborted) return;
    const session = await runtime.open({ ...one, planOnly: true });
    try {
      options.checkModel?.(session, typeof one.model === "string" ? one.model : undefined);
    } finally {
      await session.close();
    }
  }
}

function agentOptions(agent: string | undefined, model: string | undefined) {
  return { agent, model };
}

/** After one of these no other run with the same model can get an answer. */
const lasting: ReadonlySet<string> = new Set([
  "unauthorized",
  "not-found",
  "no-credentials",
  "unknown-model",
]);

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
  const amount = (value: unknown): number => (typeof value === "number" ? value : 0);
  return {
    results: new Map(read.map((result) => [result.key, result])),
    // Also of runs that have no result.
    spent: values.reduce((sum, { spentUsd, costUsd }) => sum + amount(spentUsd) + amount(costUsd), 0),
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
): Promise<{ readonly result: EvalResult; readonly isScored: boolean }> {
  const { task, definition, model, repetition, key } = cell;
  const about = { key, task: task.name, definition, model: model ?? "default", repetition };
  const start = performance.now();
  await using place = await openPlace(options);
  try {
    await using runtime = options.open(place.directory, { sessionPersistence: true });
    const result = await runtime.run(task.prompt, runOptions(cell, options)).result;
    const durationMs = Math.round(performance.now() - start);
    const own = result.totals;
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
    const { costUsd: judged, isUnscored = false, ...scored } = score;
    const attempt: EvalResult = {
      ...about,
      ...scored,
      status: result.status,
      endedBy: result.reason,
      turns: own.turns,
      durationMs,
      sessionId: result.sessionId,
      ...(own.costUsd === undefined ? {} : { costUsd: own.costUsd + judged }),
      ...(own.costUsd === undefined && judged > 0 ? { costUsd: judged } : {}),
    };
    return { result: attempt, isScored: !isUnscored && !failedBeforeAnswer(attempt) };
  } catch (error) {
    if (!isRetinueError(error)) throw error;
    const durationMs = Math.round(performance.now() - start);
    const failed = { passed: false, score: 0, reason: error.message, status: "failed", endedBy: error.code };
    return { result: { ...about, ...failed, turns: 0, durationMs }, isScored: false };
  }
}

function runOptions(
  { task, definition, model }: EvalCell,
  { plan, signal, share }: RunEvalOptions & { readonly share: number | undefined },
) {
  const { maxTurns, permissionMode, allowedTools } = plan;
  return {
    signal,
    ...agentOptions(definition === mainDefinition ? undefined : definition, model),
    output: task.schema,
    maxBudgetUsd: share,
    maxTurns,
    permissionMode,
    allowedTools,
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
