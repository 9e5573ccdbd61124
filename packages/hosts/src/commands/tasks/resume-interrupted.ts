import { continuePrompt, type FoundTask } from "@retinue/core/kernel/project/project-tasks.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import { answerText } from "../../print/printer.ts";
import type { CliHost } from "../../shared/cli-host.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { exitCodeOf } from "../../shared/end-signal.ts";
import type { RunFlags } from "../../shared/flags.ts";
import { misuse } from "../../shared/misuse.ts";
import { createPrintRuntime, openPrintSession } from "../../shared/open-print-session.ts";
import { openTasks } from "../../shared/open-project.ts";
import { readPrintOptions } from "../../shared/print-options.ts";
import { reportInterruption } from "../../shared/report-interruption.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";

/** How many continue at the same time. */
const concurrency = 4;

interface Outcome {
  readonly id: string;
  readonly agentType: string;
  readonly description: string;
  readonly status: string;
  readonly reason: string;
  readonly text: string;
}

/** `retinue resume --interrupted`: resumes every interrupted child of the newest session that has one. */
export async function resumeInterrupted(
  context: CommandContext,
  options: RunFlags & { readonly json?: boolean },
): Promise<number> {
  refuseTakeOver(options);
  const agents = await findNewest(context.host);
  if (agents.length > 0) return resumeChildren(agents, { context, options, command: "--interrupted" });
  context.host.stderr.write("No agent of this folder's sessions was interrupted.\n");
  return 0;
}

/** `retinue resume --waiting`: continues what waited for a new quota when its process ended, one session after another. */
export async function resumeWaiting(
  context: CommandContext,
  options: RunFlags & { readonly json?: boolean },
): Promise<number> {
  refuseTakeOver(options);
  const { stderr } = context.host;
  const { agents, sessions } = await openTasks(context.host).interrupted();
  const waiting = agents.filter(({ waitingForQuota }) => waitingForQuota !== undefined);
  const ids = [
    ...sessions.flatMap(({ id, waitingForQuota }) => (waitingForQuota === undefined ? [] : [id])),
    ...waiting.map(({ sessionId }) => sessionId),
  ];
  if (ids.length === 0) stderr.write("Nothing in this folder waits for a quota without a process.\n");
  const codes: number[] = [];
  for (const id of new Set(ids)) {
    // A main agent that was cut off with its children learns of them, and has them continue.
    if (sessions.some((session) => session.id === id)) {
      stderr.write(`session ${id}: continuing\n`);
      const { runPrint } = await import("../../print/run-print.ts");
      const output = options.json === true ? { outputFormat: "json" } : {};
      codes.push(await runPrint(context, [continuePrompt], { ...options, ...output, resume: id }));
    } else {
      const own = waiting.filter((agent) => agent.sessionId === id && isResumable(agent));
      if (own.length > 0) codes.push(await resumeChildren(own, { context, options, command: "--waiting" }));
    }
    if ((codes.at(-1) ?? 0) > 128) break;
  }
  return Math.max(0, ...codes);
}

function refuseTakeOver({ takeOver }: RunFlags): void {
  if (takeOver === true)
    throw misuse("--take-over needs the id of one agent.", "Write its id, which `retinue tasks` lists.");
}

/** Children of one session. */
async function resumeChildren(
  agents: readonly FoundTask[],
  {
    context,
    options,
    command,
  }: {
    readonly context: CommandContext;
    readonly options: RunFlags & { readonly json?: boolean };
    readonly command: string;
  },
): Promise<number> {
  const { host } = context;
  const request = readPrintOptions(options, { words: [], cwd: host.cwd, session: context.session });
  const { sessionId = "", transcript = "" } = agents[0] ?? {};
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  try {
    await using runtime = createPrintRuntime(context, options);
    const own = { ...request.session, sessionId, childrenOnly: true };
    await using session = await openPrintSession(runtime, own, stop.signal);
    const outcomes = await resumeAll(agents, { session, host, signal: stop.signal });
    show(outcomes, { host, sessionId, asJson: options.json === true || request.output !== "text" });
    if (stop.signal.aborted) {
      const left = { reason: stop.signal.reason, tasks: session.tasks.list(), transcript };
      reportInterruption({ ...left, command: `retinue resume ${command}` }, host.stderr);
      return exitCodeOf(stop.signal.reason);
    }
    return outcomes.every(({ status }) => status === "completed") ? 0 : 1;
  } finally {
    forget();
  }
}

async function findNewest(host: CliHost): Promise<readonly FoundTask[]> {
  const { agents } = await openTasks(host).interrupted();
  const resumable = agents.filter(isResumable);
  return resumable.filter(({ sessionId }) => sessionId === resumable[0]?.sessionId);
}

/** One that a subagent has started is resumed by that one. */
function isResumable({ canResume, parentId }: FoundTask): boolean {
  return canResume === true && parentId === undefined;
}

interface Resuming {
  readonly session: Session;
  readonly host: CliHost;
  readonly signal: AbortSignal;
}

async function resumeAll(agents: readonly FoundTask[], resuming: Resuming): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  const waiting = agents.entries();
  const work = async (): Promise<void> => {
    for (const [index, agent] of waiting) {
      if (resuming.signal.aborted) return;
      outcomes[index] = await resumeOne(agent, resuming);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, agents.length) }, work));
  return outcomes.filter((outcome) => outcome !== undefined);
}

async function resumeOne(agent: FoundTask, { session, host, signal }: Resuming): Promise<Outcome> {
  const { id, agentType, description } = agent;
  const print = (text: string): void =>
    host.stderr.write(`${stripControlCharacters(`${id} (${agentType}) ${text}`)}\n`);
  print(`resuming: ${description}`);
  const handle = session.spawn(agentType, continuePrompt, { resume: id, description });
  const end = (): void => void session.close().catch(() => undefined);
  signal.addEventListener("abort", end, { once: true });
  try {
    const { status, reason, text } = await handle.result;
    print(status);
    return { id, agentType, description, status, reason, text };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    print(why);
    return { id, agentType, description, status: "failed", reason: "not-started", text: why };
  } finally {
    signal.removeEventListener("abort", end);
  }
}

function show(
  outcomes: readonly Outcome[],
  {
    host,
    sessionId,
    asJson,
  }: { readonly host: CliHost; readonly sessionId: string; readonly asJson: boolean },
): void {
  if (asJson) {
    host.stdout.write(`${JSON.stringify({ version: 1, sessionId, agents: outcomes }, undefined, 2)}\n`);
    return;
  }
  for (const { id, agentType, status, text } of outcomes)
    host.stdout.write(
      `${id}  ${stripControlCharacters(agentType)}  ${status}\n${answerText(text.trimEnd(), host.stdout)}\n\n`,
    );
}
