import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { sleep } from "../../foundation/abortable.ts";
import { isRetinueError, RetinueError } from "../../foundation/retinue-error.ts";
import { runProcess } from "../../foundation/run-process.ts";
import { type Act, appendAct } from "../../journal/act-log.ts";
import { findSession } from "../../journal/find-sessions.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { stopElsewhere } from "../../runtime/project/stop-elsewhere.ts";
import { hasLiveOwner } from "../../storage/owner-lock.ts";
import { controlFiles } from "../../tasks/control-files.ts";
import { type FoundTask, findTasks } from "../../tasks/recovery/find-tasks.ts";
import { writeMessageRequest } from "../../tasks/write-stop-request.ts";
import type { ActRequest } from "./studio-messages.ts";

export interface ActContext {
  readonly transcripts: string;
  /** The person at this computer. */
  readonly user: string;
  /** The program that resumes agents: Node and the file of this command. */
  readonly program: { readonly file: string; readonly arguments: readonly string[] };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Ends what was resumed from here. */
  readonly signal: AbortSignal;
}

const patienceMs = 10_000;
const lookMs = 50;

/**
 * Does what the page was asked to do, the way the commands `stop` and `resume` do it, and writes to the session's log of acts who
 * did it and what came of it. What a resumed agent answers is in its transcript, so nothing waits for it here.
 */
export async function performAct(request: ActRequest, context: ActContext): Promise<string> {
  const { agentId, action, text } = request;
  const files = sessionFiles(context.transcripts, request.sessionId);
  const by = { user: context.user, through: "studio", pid: process.pid };
  const note = (state: Act["state"], reason?: string): void =>
    appendAct(
      files,
      {
        action,
        agentId,
        ...(text === undefined ? {} : { text }),
        state,
        ...(reason === undefined ? {} : { reason }),
        by,
      },
      Date.now(),
    );
  const task = agentId === "main" ? undefined : await findTask(request, context);
  if (task === undefined && !existsSync(files.transcript))
    throw new RetinueError("session-missing", `There is no session ${request.sessionId}.`);
  note("requested");
  try {
    const outcome = await perform({ request, task, context, note });
    if (action !== "resume") note("done", outcome);
    return outcome;
  } catch (error) {
    note("failed", isRetinueError(error) ? error.message : String(error));
    throw error;
  }
}

interface Performing {
  readonly request: ActRequest;
  readonly task: FoundTask | undefined;
  readonly context: ActContext;
  readonly note: (state: Act["state"], reason?: string) => void;
}

async function perform({ request, task, context, note }: Performing): Promise<string> {
  const { action, text = "" } = request;
  switch (action) {
    case "stop": {
      const running = runningTask(task, "stopped");
      await stopElsewhere(running, { transcripts: context.transcripts, signal: context.signal });
      return `${running.id} was stopped.`;
    }
    case "message":
      return sendElsewhere(runningTask(task, "sent a message"), text, context);
    case "resume":
      return resume({ request, task, context, note });
  }
}

async function findTask({ sessionId, agentId }: ActRequest, { transcripts }: ActContext): Promise<FoundTask> {
  const found = await findTasks(transcripts, { idPrefix: agentId, sessionId });
  const task = found.find(({ id }) => id === agentId);
  if (task !== undefined) return task;
  throw new RetinueError("unknown-task", `There is no agent ${agentId} in this session.`);
}

function runningTask(task: FoundTask | undefined, what: string): FoundTask {
  if (task === undefined)
    throw new RetinueError(
      "not-reachable",
      `The main agent of another process cannot be ${what} from here.`,
      {
        advice: "Use the terminal or program in which it runs.",
      },
    );
  if (task.state === "running") return task;
  throw new RetinueError("not-running", `${task.id} is not running; it is ${task.state}.`, {
    advice: "Resume it with a prompt instead.",
  });
}

/** Resolves when the process that runs the agent has taken the message; the agent reads it between its turns. */
async function sendElsewhere(
  { id, sessionId, transcript }: FoundTask,
  text: string,
  { transcripts, signal }: ActContext,
): Promise<string> {
  if (text.trim() === "") throw new RetinueError("misuse", "A message needs a text.");
  const files = controlFiles(sessionFiles(transcripts, sessionId));
  const written = writeMessageRequest(files, { agentId: id, id: randomUUID(), text });
  try {
    for (let waited = 0; waited < patienceMs && hasLiveOwner(transcript); waited += lookMs) {
      if (!existsSync(written.file)) return `${id} reads the message between its turns.`;
      await sleep(lookMs, signal);
    }
    if (!existsSync(written.file)) return `${id} reads the message between its turns.`;
  } finally {
    written.takeBack();
  }
  throw new RetinueError("not-sent", `The process that runs ${id} did not take the message.`, {
    advice: "If the agent has ended, resume it with the message.",
  });
}

async function resume({ request, task, context, note }: Performing): Promise<string> {
  const { sessionId, text = "" } = request;
  const isRunning = hasLiveOwner(task?.transcript ?? sessionFiles(context.transcripts, sessionId).transcript);
  if (isRunning)
    throw new RetinueError("still-running", `${task?.id ?? "This session"} is still running.`, {
      advice: task === undefined ? "Use the program in which it runs." : "Send it a message instead.",
    });
  if (task === undefined && text.trim() === "")
    throw new RetinueError("misuse", "Resuming a session needs a prompt.");
  const words =
    task === undefined
      ? ["-p", "--resume", sessionId, "--", text]
      : ["resume", task.id, "--", ...(text.trim() === "" ? [] : [text])];
  const found = await findSession(context.transcripts, sessionId);
  const directory = (found.type === "found" ? found.session.cwd : undefined) ?? context.cwd;
  void runProcess({
    file: context.program.file,
    arguments: [...context.program.arguments, ...words],
    directory,
    environment: Object.fromEntries(
      Object.entries(context.environment).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]],
      ),
    ),
    signal: context.signal,
    maxBytes: 16_384,
  }).then(({ exitCode, notStarted, aborted, stderr }) => {
    if (exitCode === 0) note("done");
    else note("failed", notStarted ?? (aborted ? "the studio was closed" : stderr.trim().slice(-2000)));
  });
  return `${task?.id ?? "The session"} was resumed.`;
}
