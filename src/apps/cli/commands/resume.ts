import { RetinueError } from "../../../foundation/retinue-error.ts";
import { continuePrompt } from "../../../planning/earlier-run.ts";
import type { SessionOptions } from "../../../runtime/runtime-options.ts";
import type { AgentHandle } from "../../../tasks/agent-handle.ts";
import type { FoundTask } from "../../../tasks/find-tasks.ts";
import { checkSessionOptions } from "../check-session-options.ts";
import { exitCodeOf } from "../interruption.ts";
import { createPrintRuntime, openPrintSession } from "../print/open-print-session.ts";
import { type PrintOptions, type PrintRequest, readPrintOptions } from "../print/print-options.ts";
import { createPrinter, type Printer } from "../print/printer.ts";
import { readPrompt } from "../print/read-input.ts";
import { type CommandContext, misuse } from "../session-options.ts";
import { reportInterruption } from "../views/interruption-view.ts";
import { findNamedTask } from "./find-named-task.ts";

export interface ResumeOptions extends PrintOptions {
  readonly interrupted?: boolean;
  readonly json?: boolean;
}

/** `retinue resume ID "prompt"`: goes on with a child agent that has ended, and prints its answer as `-p` does. */
export async function resume(
  context: CommandContext,
  written: string | undefined,
  { words, options }: { readonly words: readonly string[]; readonly options: ResumeOptions },
): Promise<number> {
  const { host } = context;
  if (options.interrupted === true) {
    if (written !== undefined)
      throw misuse("--interrupted takes no id and no prompt.", "Write one or the other.");
    return (await import("./resume-interrupted.ts")).resumeInterrupted(context, options);
  }
  if (written === undefined)
    throw misuse("Which agent?", "Write its id, which `retinue tasks` lists, or --interrupted.");
  checkSessionOptions(context.session, host.cwd);
  const request = readPrintOptions(options, { words, cwd: host.cwd, session: context.session });
  if (request.input !== "text")
    throw misuse("An agent is resumed with one prompt.", "Leave out --input-format.");
  const task = await findNamedTask(host, written);
  refuseRunning(task);
  const usual = task.state === "interrupted" ? continuePrompt : "Go on with your task where you stopped.";
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
  await using session = await openPrintSession(runtime, own, signal);
  const handle = session.spawn(task.agentType, prompt, {
    resume: task.id,
    description: task.description,
    ...(options.model === undefined ? {} : { model: options.model }),
  });
  // Not as if somebody had stopped the agent itself: it can be resumed like one whose process died.
  const end = (): void =>
    void handle.id.then((id) => session.tasks.stop(id, "session")).catch(() => undefined);
  signal.addEventListener("abort", end, { once: true });
  return await follow(handle, createPrinter(context.host, request, session));
}

async function follow(handle: AgentHandle, printer: Printer): Promise<number> {
  printer.begin();
  for await (const event of handle) if (event.type !== "run-ended") printer.show(event);
  const ending = await handle.result;
  printer.end(ending);
  return ending.status === "completed" ? 0 : 1;
}

function refuseRunning({ id, state }: FoundTask): void {
  if (state !== "running") return;
  throw new RetinueError("still-running", `${id} is still running.`, {
    advice: `\`retinue logs ${id} -f\` follows it, \`retinue stop ${id}\` ends it.`,
  });
}
