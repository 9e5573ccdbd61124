import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { waitForFile } from "@retinue/core/kernel/open-transcript.ts";
import type { SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { continuePrompt, type FoundTask } from "@retinue/core/kernel/project/project-tasks.ts";
import type { AgentHandle } from "@retinue/core/kernel/run-handle.ts";
import { createPrinter, printFailure } from "../../print/create-printer.ts";
import type { Printer } from "../../print/printer.ts";
import { readPrompt } from "../../print/run-print.ts";
import type { CliHost } from "../../shared/cli-host.ts";
import { codeOfEnding } from "../../shared/code-of-ending.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { exitCodeOf } from "../../shared/end-signal.ts";
import { findNamedTask } from "../../shared/find-named-task.ts";
import type { RunFlags } from "../../shared/flags.ts";
import { misuse } from "../../shared/misuse.ts";
import { createPrintRuntime, openPrintSession } from "../../shared/open-print-session.ts";
import { type PrintRequest, readPrintOptions } from "../../shared/print-options.ts";
import { reportInterruption } from "../../shared/report-interruption.ts";

export interface ResumeOptions extends RunFlags {
  readonly interrupted?: boolean;
  readonly waiting?: boolean;
  readonly json?: boolean;
}

/** `retinue resume ID "prompt"`: resumes a child agent that has ended, and prints its answer as `-p` does. */
export async function resume(
  context: CommandContext,
  written: string | undefined,
  { words, options }: { readonly words: readonly string[]; readonly options: ResumeOptions },
): Promise<number> {
  const { host } = context;
  const many = options.interrupted === true ? "--interrupted" : "--waiting";
  if (options.interrupted === true || options.waiting === true) {
    if (written !== undefined) throw misuse(`${many} takes no id and no prompt.`, "Write one or the other.");
    const { resumeInterrupted, resumeWaiting } = await import("./resume-interrupted.ts");
    return many === "--interrupted" ? resumeInterrupted(context, options) : resumeWaiting(context, options);
  }
  if (written === undefined)
    throw misuse("Which agent?", "Write its id, which `retinue tasks` lists, or --interrupted.");
  const request = readPrintOptions(options, { words, cwd: host.cwd, session: context.session });
  if (request.input !== "text")
    throw misuse("An agent is resumed with one prompt.", "Leave out --input-format.");
  const task = await findFreeTask(host, written, options);
  const usual = task.state === "interrupted" ? continuePrompt : "Continue your task where you stopped.";
  const prompt = await readPrompt(words, host.stdin, usual);
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  const { closed } = host.stdout;
  const signal = closed === undefined ? stop.signal : AbortSignal.any([stop.signal, closed]);
  try {
    const own = { ...request.session, sessionId: task.sessionId, childrenOnly: true };
    const code = await runTask(task, prompt, { context, options, request, own, signal });
    if (!stop.signal.aborted) return code;
    const { transcript } = task;
    const command = `retinue resume ${task.id}`;
    reportInterruption({ reason: stop.signal.reason, tasks: [], command, transcript }, host.stderr);
    return exitCodeOf(stop.signal.reason);
  } finally {
    forget();
  }
}

interface TaskRun {
  readonly context: CommandContext;
  readonly options: ResumeOptions;
  readonly request: PrintRequest;
  readonly own: SessionOptions;
  readonly signal: AbortSignal;
}

async function runTask(
  task: FoundTask,
  prompt: string,
  { context, options, request, own, signal }: TaskRun,
): Promise<number> {
  await using runtime = createPrintRuntime(context, options);
  await using session = await openPrintSession(runtime, own, signal).catch((error: unknown) => {
    if (!signal.aborted) printFailure(context.host, { ...request, session: own }, error);
    throw error;
  });
  const handle = session.spawn(task.agentType, prompt, {
    resume: task.id,
    description: task.description,
    model: options.model,
  });
  // Not as if the agent itself had been stopped: it can be resumed like one whose process died.
  const end = (): void => void session.close().catch(() => undefined);
  signal.addEventListener("abort", end, { once: true });
  const printer = createPrinter(context.host, request, session);
  return await follow(handle, printer).catch((error: unknown) => {
    if (!signal.aborted) printer.fail(error);
    throw error;
  });
}

async function follow(handle: AgentHandle, printer: Printer): Promise<number> {
  printer.begin();
  for await (const event of handle.events) if (event.type !== "run-ended") printer.show(event);
  const ending = await handle.result;
  printer.end(ending);
  return codeOfEnding(ending);
}

/** One whose process cannot be seen from here is free when that has given no sign of life for long enough. */
async function findFreeTask(
  host: CliHost,
  written: string,
  { takeOver }: Pick<ResumeOptions, "takeOver">,
): Promise<FoundTask> {
  const task = await findNamedTask(host, written);
  if (task.state !== "running" || takeOver === true) return task;
  await waitForFile(task.transcript, {
    signal: AbortSignal.timeout(waitLimitMs),
    notice: (text) => host.stderr.write(`retinue: ${text}\n`),
  });
  const { id, state } = await findNamedTask(host, task.id);
  if (state !== "running") return task;
  throw new RetinueError("still-running", `${id} is still running.`, {
    advice: `\`retinue logs ${id} -f\` follows it, \`retinue stop ${id}\` ends it, --take-over takes it from its process.`,
  });
}

const waitLimitMs = 60_000;
