import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { plural } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import { billRows, type WorkflowBill } from "@retinue/core/kernel/workflows/bill-workflow.ts";
import type { FoundRun } from "@retinue/core/kernel/workflows/find-runs.ts";
import type { FoundWorkflow } from "@retinue/core/kernel/workflows/session-workflows.ts";
import {
  type WorkflowInput,
  type WorkflowOptions,
  workflowsOff,
} from "@retinue/core/kernel/workflows/start-workflow.ts";
import type { WorkflowEvent } from "@retinue/core/kernel/workflows/workflow-runs.ts";
import {
  progressList,
  type WorkflowRunState,
  workflowTotals,
} from "@retinue/core/protocol/workflow-state.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { displayPath } from "../shared/display-path.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import type { RunFlags } from "../shared/flags.ts";
import { misuse } from "../shared/misuse.ts";
import { createPrintRuntime, openPrintSession } from "../shared/open-print-session.ts";
import { openProject } from "../shared/open-project.ts";
import { createPaint } from "../shared/paint.ts";
import { readPrintOptions } from "../shared/print-options.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import { groupByFile, renderDiagnostics } from "./views/render-diagnostics.ts";

interface ListOptions {
  readonly runs?: boolean;
  readonly json?: boolean;
}

/** `retinue workflow list`: the saved workflows, or with `--runs` what ran here. */
export async function workflowList(context: CommandContext, options: ListOptions): Promise<number> {
  const { stdout } = context.host;
  const project = openProject(context);
  if (options.runs === true) {
    const runs = await project.workflows.runs();
    if (options.json === true) return printJson(context, { version: 1, runs: runs.map(runAsJson) });
    if (runs.length === 0) stdout.write("No workflow has run here.\n");
    for (const run of runs) stdout.write(`${runLine(run)}\n`);
    return 0;
  }
  const { workflows, diagnostics } = await project.workflows.list();
  if (options.json === true) {
    const listed = workflows.map(({ name, scope, file, meta }) => ({
      name,
      scope,
      file: file ?? null,
      meta,
    }));
    return printJson(context, { version: 1, workflows: listed, diagnostics });
  }
  const paint = createPaint(stdout.isColourAllowed);
  for (const { name, scope, file, meta } of workflows) {
    const place = file === undefined ? scope : project.nameOf(file);
    stdout.write(`${paint.name(plain(name))}  ${paint.dim(place)}\n    ${plain(meta.description)}\n`);
  }
  if (workflows.length === 0) stdout.write("There are no workflows. They are files in .claude/workflows.\n");
  if (diagnostics.length > 0)
    stdout.write(
      `\n${renderDiagnostics(groupByFile(diagnostics), { paint, width: Math.min(stdout.columns ?? 100, 120), nameOf: project.nameOf, textOf: project.textOf })}\n`,
    );
  return 0;
}

/** `retinue workflow plan NAME`: what it says about itself and what its steps may take. Starts nothing. */
export async function workflowPlan(
  context: CommandContext,
  name: string,
  options: { readonly args?: string; readonly json?: boolean },
): Promise<number> {
  const { host } = context;
  const { found, bill } = await planOf(context, name, argsOf(options.args)).catch((error: unknown) => {
    throw refusal(error);
  });
  const { workflowStarts } = await import("@retinue/core/kernel/project/workflow-starts.ts");
  const starts = workflowStarts(found.text);
  const { meta, saved } = found;
  const file = found.file ?? saved?.file;
  const scope = saved?.scope ?? "file";
  const phases = Array.isArray(meta.phases) ? meta.phases : [];
  if (options.json === true)
    return printJson(context, {
      version: 1,
      name,
      scope,
      file: file ?? null,
      meta,
      starts,
      bill: bill === undefined ? null : billAsJson(bill),
    });
  const place = file === undefined ? scope : displayPath(file, host);
  const lines = [
    `${plain(saved?.name ?? meta.name)}: ${plain(meta.description)}`,
    `  from ${place}`,
    ...(meta.whenToUse === undefined ? [] : [`  ${plain(meta.whenToUse)}`]),
    ...phases.map(
      (phase) =>
        `  phase ${plain(phase.title)}${phase.detail === undefined ? "" : `: ${plain(phase.detail)}`}${limitsOf(phase)}`,
    ),
    ...starts.map((start) => `  ${plain(start)}`),
    ...(bill === undefined ? [] : ["", ...billRows(bill).map((row) => plain(`  ${row}`).trimEnd()), ""]),
    `  run it with: retinue workflow run ${name} --args '…'`,
  ];
  host.stdout.write(`${lines.join("\n")}\n`);
  return 0;
}

/** The workflow, and what a run with these args is expected to take. */
async function planOf(
  context: CommandContext,
  name: string,
  args: unknown,
): Promise<{ readonly found: FoundWorkflow; readonly bill: WorkflowBill | undefined }> {
  return withPlan(context, {}, async ({ workflows }) => {
    if (workflows === undefined) throw workflowsOff();
    const scriptPath = scriptFile(context, name);
    const request = scriptPath === undefined ? { name } : { scriptPath };
    const found = await workflows.find(request);
    return { found, bill: await workflows.bill({ ...request, args }, found) };
  });
}

/** A session that is planned as one with these options would be, and starts nothing. */
async function withPlan<Result>(
  context: CommandContext,
  flags: RunFlags,
  look: (session: Session) => Promise<Result>,
): Promise<Result> {
  const { session: given } = readPrintOptions(flags, {
    words: [],
    cwd: context.host.cwd,
    session: context.session,
  });
  await using runtime = createPrintRuntime(context, { ...flags, sessionPersistence: false });
  const signal = new AbortController().signal;
  await using session = await openPrintSession(runtime, { ...given, planOnly: true }, signal);
  return await look(session);
}

/** The script file that a word of the command names, if it names one. */
function scriptFile({ host }: CommandContext, word: string): string | undefined {
  const file = resolve(host.cwd, word);
  return /\.[cm]?js$/.test(word) && existsSync(file) ? file : undefined;
}

/** Each agent of a phase is in the sum; one by one they would only be long. */
function billAsJson({ phases, quote, checks, isOpen, most }: WorkflowBill): JsonRecord {
  const { agents, ...sums } = quote;
  return {
    phases,
    quote: { ...sums, agents: agents.length },
    checks: checks.map((run) => run ?? null),
    isOpen,
    most,
  };
}

export interface WorkflowRunOptions extends RunFlags {
  readonly args?: string;
  readonly fresh?: readonly string[];
  readonly script?: string;
  readonly json?: boolean;
}

/** `retinue workflow run NAME`: runs it to its end. What it returns goes to stdout, what happens to stderr. */
export async function workflowRun(
  context: CommandContext,
  name: string,
  options: WorkflowRunOptions,
): Promise<number> {
  const scriptPath = scriptFile(context, name);
  const what: WorkflowInput = scriptPath === undefined ? name : { scriptPath };
  return runIt(context, { what, args: argsOf(options.args), run: undefined }, options);
}

/** `retinue workflow resume RUN`: continues a run; finished steps are taken from its journal. */
export async function workflowResume(
  context: CommandContext,
  written: string,
  options: WorkflowRunOptions,
): Promise<number> {
  const project = openProject(context);
  const run = await project.workflows.run(written);
  if (run.status === "running")
    throw new RetinueError("workflow-running", `${run.runId} still runs.`, {
      advice: `\`retinue workflow stop ${run.runId}\` stops it.`,
    });
  const { cwd } = context.host;
  const file = options.script === undefined ? run.scriptPath : resolve(cwd, options.script);
  const isThere = file !== undefined && existsSync(file);
  if (options.script !== undefined && !isThere) throw misuse(`There is no file ${options.script}.`);
  if (!isThere && run.script === "")
    throw new RetinueError(
      "no-script",
      `The run ${run.runId} was a function of a program, and only that can continue it.`,
    );
  const what: WorkflowInput = isThere ? { scriptPath: file } : run.script;
  if (options.script === undefined) {
    const { workflows } = await project.workflows.list();
    const saved = workflows.find(({ name }) => name === run.name);
    const text = isThere ? readFileSync(file, "utf8") : run.script;
    if (saved?.file !== undefined && saved.text !== text)
      context.host.stderr.write(
        `The run continues with its own script; ${project.nameOf(saved.file)} differs from it. --script FILE continues it with another.\n`,
      );
  }
  const args = options.args === undefined ? run.args : argsOf(options.args);
  const { model, effort } = run.startedWith ?? {};
  const own = { ...options, model: options.model ?? model, effort: options.effort ?? effort };
  await refuseOtherMode(context, run, own);
  return runIt(context, { what, args, run }, own);
}

/** Rights are part of what a step is: in another mode than before every step would run again, and that must be meant. */
async function refuseOtherMode(
  context: CommandContext,
  { runId, startedWith: { permissionMode: before } = {} }: FoundRun,
  options: WorkflowRunOptions,
): Promise<void> {
  const isNamed = options.permissionMode !== undefined || options.dangerouslySkipPermissions === true;
  if (before === undefined || isNamed) return;
  const mode = await withPlan(context, options, async ({ plan }) => plan.policy.mode);
  if (mode === before) return;
  throw misuse(
    `The run ${runId} was started in the permission mode ${before}. In the mode ${mode} its finished steps would run again, and be paid again.`,
    `Add --permission-mode ${before} to continue it as it was, or --permission-mode ${mode} if you mean that.`,
  );
}

interface WhatRuns {
  readonly what: WorkflowInput;
  readonly args: unknown;
  readonly run: FoundRun | undefined;
}

async function runIt(
  context: CommandContext,
  { what, args, run }: WhatRuns,
  options: WorkflowRunOptions,
): Promise<number> {
  const { host } = context;
  const request = readPrintOptions(options, { words: [], cwd: host.cwd, session: context.session });
  const isStream = request.output === "stream-json";
  const isJson = options.json === true || request.output === "json";
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  const {
    resume: _resume,
    continue: _continue,
    forkSession: _fork,
    output: _output,
    ...session
  } = request.session;
  const own: WorkflowOptions = {
    ...session,
    resumeRun: run?.runId,
    fresh: options.fresh,
    signal: stop.signal,
  };
  try {
    await using runtime = createPrintRuntime(context, options);
    const handle = runtime.workflow(what, args, own);
    const show = isStream
      ? (event: WorkflowEvent) => host.stdout.write(`${JSON.stringify(streamed(event))}\n`)
      : progressTo(context);
    const watching = (async () => {
      for await (const event of handle.events) show(event);
    })();
    const state = await handle.ended.catch(async (error: unknown) => {
      await watching.catch(() => undefined);
      throw refusal(error);
    });
    await watching;
    if (isJson) printJson(context, stateAsJson(state));
    else if (!isStream) {
      const { status, result, error, errorLine, scriptPath, runId } = state;
      const totals = workflowTotals(state);
      if (result !== undefined) {
        const value: unknown = JSON.parse(result);
        host.stdout.write(`${typeof value === "string" ? value : JSON.stringify(value, undefined, 2)}\n`);
      }
      const place = errorLine === undefined ? "" : ` (${scriptPath ?? "script"}:${errorLine})`;
      if (error !== undefined) host.stderr.write(`retinue: ${stripControlCharacters(error)}${place}\n`);
      const taken = totals.taken === 0 ? "" : `, ${totals.taken} taken from the journal`;
      const more =
        status === "completed" ? "" : `; \`${resumeCommand(runId, state.startedWith)}\` continues it`;
      host.stderr.write(
        `${status}: ${totals.done} of ${plural(totals.agents, "agent")} done${taken}, ${totals.tokens} tokens, $${totals.costUsd.toFixed(4)}${more}.\n`,
      );
    }
    if (stop.signal.aborted) return exitCodeOf(stop.signal.reason);
    return state.status === "completed" ? 0 : 1;
  } finally {
    forget();
  }
}

/** What is wrong with the words of the command is a misuse of it. */
function refusal(error: unknown): unknown {
  const isWords =
    isRetinueError(error) && ["unknown-workflow", "workflow-broken", "bad-run-id"].includes(error.code);
  return isWords ? misuse(error.message, error.advice) : error;
}

function streamed({ runId, change, state }: WorkflowEvent): JsonRecord {
  if (change.type !== "started") return { run_id: runId, ...change };
  const { name, description, args, startedAt } = state;
  return { run_id: runId, type: "started", name, description, args, at: startedAt };
}

/** One line for each phase, each step that ended, and each line of the script. */
function progressTo({ host: { stderr } }: CommandContext): (event: WorkflowEvent) => void {
  const print = (text: string): void => stderr.write(`${stripControlCharacters(text)}\n`);
  return ({ runId, change, state }) => {
    if (change.type === "started") print(`${state.name} ${runId}`);
    if (change.type === "phase") print(`· ${change.phase.title}`);
    if (change.type === "log") print(`  ${change.text}`);
    if (change.type === "failure") print(`  ! ${change.text}`);
    if (change.type !== "step") return;
    // The state is as it is now; what became of the step is in the change.
    const { index, state: became = "waiting" } = change.step;
    const step = state.steps[index - 1];
    if (step === undefined || became === "waiting" || became === "running") return;
    const how = step.taken === true ? "taken from the journal" : step.state;
    print(
      `  ${step.state === "done" ? "✓" : "✗"} ${step.label} (${how}${step.costUsd === undefined || step.taken === true ? "" : `, $${step.costUsd.toFixed(4)}`})`,
    );
  };
}

/** With the mode that the run had, unless it is the one that there is without a word. */
function resumeCommand(runId: string, { permissionMode = "default" }: FoundRun["startedWith"] = {}): string {
  const mode = permissionMode === "default" ? "" : ` --permission-mode ${permissionMode}`;
  return `retinue workflow resume ${runId}${mode}`;
}

function stateAsJson(state: WorkflowRunState): JsonRecord {
  const { runId, sessionId, name, status, result, error, errorLine, logs, failures, scriptPath } = state;
  return {
    version: 1,
    runId,
    sessionId,
    name,
    status,
    error,
    errorLine,
    logs,
    failures,
    scriptPath,
    ...(result === undefined ? {} : { result: JSON.parse(result) }),
    totals: workflowTotals(state),
    progress: progressList(state),
  };
}

/** `retinue workflow show RUN`: each step with its state, and why it was not taken. */
export async function workflowShow(
  context: CommandContext,
  written: string,
  options: { readonly json?: boolean },
): Promise<number> {
  const { stdout } = context.host;
  const run = await openProject(context).workflows.run(written);
  if (options.json === true) return printJson(context, { version: 1, ...runAsJson(run), record: run.record });
  const { workflowProgress: progress, error, logs } = run.record;
  const lines = [runLine(run)];
  for (const entry of Array.isArray(progress) ? progress.filter(isRecord) : []) {
    if (entry["type"] === "workflow_phase") lines.push(`  ${entry["title"]}`);
    else lines.push(`    ${stepLine(entry, run.status)}`);
  }
  for (const line of Array.isArray(logs) ? logs : []) lines.push(`  | ${line}`);
  if (typeof error === "string") lines.push(`  ${error}`);
  if (run.status !== "running" && run.status !== "completed")
    lines.push(
      `  \`${resumeCommand(run.runId, run.startedWith)}\` continues it; what is done is not run again.`,
    );
  stdout.write(`${lines.map(plain).join("\n")}\n`);
  return 0;
}

const stepWords: Readonly<Record<string, string>> = { start: "running", done: "done", error: "failed" };

export function stepLine(entry: JsonRecord, run: FoundRun["status"]): string {
  const { label, state, cached, why, error, branch, tokens, costUsd } = entry;
  const word = cached === true ? "taken" : (stepWords[String(state)] ?? String(state));
  const shown = word === "running" && run !== "running" ? "cut off" : word;
  const cost =
    typeof costUsd === "number" && cached !== true ? `, ${tokens} tokens, $${costUsd.toFixed(4)}` : "";
  const more = [why, error, branch === undefined ? undefined : `branch ${branch}`].filter(
    (each) => each !== undefined,
  );
  return `${shown.padEnd(8)} ${label}${cost}${more.length === 0 ? "" : ` (${more.join("; ")})`}`;
}

/** `retinue workflow stop RUN`: ends it in whatever process it is. */
export async function workflowStop(context: CommandContext, written: string): Promise<number> {
  const { workflows } = openProject(context);
  const run = await workflows.run(written);
  const giveUp = new AbortController();
  const forget = context.host.onInterrupt((reason) => giveUp.abort(reason));
  try {
    const isStopped = await workflows.stop(run.runId, { signal: giveUp.signal });
    context.host.stdout.write(
      isStopped
        ? `${run.runId} was stopped. \`retinue workflow resume ${run.runId}\` continues it.\n`
        : `${run.runId} is not running; it is ${run.status}.\n`,
    );
  } finally {
    forget();
  }
  return 0;
}

function runLine({ runId, name, status, agents, done, costUsd, startedAt }: FoundRun): string {
  const at = new Date(startedAt).toISOString().slice(0, 16).replace("T", " ");
  return `${runId}  ${status.padEnd(11)} ${done}/${agents} agents  $${costUsd.toFixed(4)}  ${at}  ${plain(name)}`;
}

function runAsJson({ record: _record, script: _script, ...run }: FoundRun): JsonRecord {
  return run;
}

function limitsOf({
  maxAgents,
  maxBudgetUsd,
  maxTokens,
}: {
  maxAgents?: number;
  maxBudgetUsd?: number;
  maxTokens?: number;
}): string {
  const limits = [
    ...(maxAgents === undefined ? [] : [`${maxAgents} agents`]),
    ...(maxBudgetUsd === undefined ? [] : [`$${maxBudgetUsd}`]),
    ...(maxTokens === undefined ? [] : [`${maxTokens} tokens`]),
  ];
  return limits.length === 0 ? "" : ` (at most ${limits.join(", ")})`;
}

/** JSON, also from a file that is written as `@path`; what is no JSON is a text. */
export function argsOf(written: string | undefined): unknown {
  if (written === undefined) return undefined;
  const isFile = written.startsWith("@");
  let text = written;
  try {
    if (isFile) text = readFileSync(written.slice(1), "utf8");
  } catch {
    throw misuse(`The file ${written.slice(1)} of --args cannot be read.`);
  }
  try {
    return JSON.parse(text);
  } catch {
    if (isFile || /^\s*[[{]/.test(text))
      throw misuse("--args is not JSON.", "Write JSON, a plain text, or @FILE with JSON.");
    return text;
  }
}

function plain(text: string): string {
  return stripControlCharacters(text);
}

function printJson({ host }: CommandContext, value: JsonRecord): number {
  host.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
  return 0;
}
