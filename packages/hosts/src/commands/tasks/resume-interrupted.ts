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
  const { host } = context;
  if (options.takeOver === true)
    throw misuse("--take-over needs one agent that is meant.", "Write its id, which `retinue tasks` lists.");
  const request = readPrintOptions(options, { words: [], cwd: host.cwd, session: context.session });
  const agents = await findNewest(host);
  const [first] = agents;
  if (first === undefined) {
    host.stderr.write("No agent of this folder's sessions was interrupted.\n");
    return 0;
  }
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  try {
    await using runtime = createPrintRuntime(context, options);
    const own = { ...request.session, sessionId: first.sessionId, childrenOnly: true };
    await using session = await openPrintSession(runtime, own, stop.signal);
    const outcomes = await resumeAll(agents, { session, host, signal: stop.signal });
    show(outcomes, {
      host,
      sessionId: first.sessionId,
      asJson: options.json === true || request.output !== "text",
    });
    if (stop.signal.aborted) {
      const { transcript } = first;
      const left = { reason: stop.signal.reason, tasks: session.tasks.list(), transcript };
      reportInterruption({ ...left, command: "retinue resume --interrupted" }, host.stderr);
      return exitCodeOf(stop.signal.reason);
    }
    return outcomes.every(({ status }) => status === "completed") ? 0 : 1;
  } finally {
    forget();
  }
}

async function findNewest(host: CliHost): Promise<readonly FoundTask[]> {
  const { agents } = await openTasks(host).interrupted();
  const resumable = agents.filter(({ canResume }) => canResume === true);
  return resumable.filter(({ sessionId }) => sessionId === resumable[0]?.sessionId);
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
  const say = (text: string): void =>
    host.stderr.write(`${stripControlCharacters(`${id} (${agentType}) ${text}`)}\n`);
  say(`resuming: ${description}`);
  const handle = session.spawn(agentType, continuePrompt, { resume: id, description });
  const end = (): void => void session.close().catch(() => undefined);
  signal.addEventListener("abort", end, { once: true });
  try {
    const { status, reason, text } = await handle.result;
    say(status);
    return { id, agentType, description, status, reason, text };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    say(why);
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
