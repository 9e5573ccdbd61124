// @io
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { runProcess } from "@retinue/base/foundation/start-process.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { mainAgentId } from "../../conversation/agent-event.ts";
import { type Act, appendAct } from "../../journal/append-act.ts";
import { findSession } from "../../journal/find-sessions.ts";
import { forkSession } from "../../journal/fork-session.ts";
import { isRunId, sessionFiles, workflowFiles } from "../../journal/session-files.ts";
import { type FoundTask, findTasks } from "../../tasks/find-tasks.ts";
import type { RemoteOp } from "../../tasks/watch-control.ts";
import { answerQuestion } from "../approvals/answer-question.ts";
import { readApprovals } from "../approvals/find-approvals.ts";
import { openInboxFiles } from "../approvals/inbox-files.ts";
import { submitElsewhere } from "../project/submit-elsewhere.ts";
import { readRun } from "../workflows/find-runs.ts";
import type { ActOutcome, ActRequest } from "./session-update.ts";

/** Who does something to a session, and where it is. */
export interface ActAuthor {
  readonly transcripts: string;
  /** The person at this computer. */
  readonly user: string;
  /** The program that they use; the studio when absent. */
  readonly through?: string;
  /** Ends what was resumed from here. */
  readonly signal: AbortSignal;
}

export interface ActContext extends ActAuthor {
  /** The program that resumes agents: Node and the file of this command. */
  readonly program: { readonly file: string; readonly arguments: readonly string[] };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** What is done; the project only says where the session is. */
type Request = Omit<ActRequest, "project">;

/**
 * Does what the page was asked to do, the way the commands do it, and writes to the session's log of acts who did it and with what
 * outcome. What a resumed agent answers is in its transcript, so nothing waits for it here.
 */
export function performAct(request: Request, context: ActContext): Promise<ActOutcome> {
  return noted(request, context, (performing) => perform({ ...performing, context }));
}

/** The same for an op, which is left for the process that runs the agent. */
export function submitAct(
  request: Omit<Request, "action"> & Pick<RemoteOp, "type">,
  context: ActAuthor,
): Promise<ActOutcome> {
  return noted({ ...request, action: request.type }, context, (performing) =>
    submit(performing, request.type),
  );
}

async function noted(
  request: Request,
  context: ActAuthor,
  work: (performing: Performing) => Promise<ActOutcome>,
): Promise<ActOutcome> {
  const { agentId, action } = request;
  const files = sessionFiles(context.transcripts, request.sessionId);
  const note = noteFor(request, context);
  const isOther = agentId === mainAgentId || isRunId(agentId);
  const task = isOther ? undefined : await findTask(request, context);
  if (task === undefined && !existsSync(files.transcript))
    throw new RetinueError("session-missing", `There is no session ${request.sessionId}.`);
  note("requested");
  try {
    const done = await work({ request, task, context, note });
    const isGoingOn = action === "resume" || (action === "fork" && hasText(request));
    if (!isGoingOn) note("done", done.outcome);
    return done;
  } catch (error) {
    note("failed", isRetinueError(error) ? error.message : String(error));
    throw error;
  }
}

type Note = (state: Act["state"], reason?: string) => void;

function noteFor(request: Request, { transcripts, user, through = "studio" }: ActAuthor): Note {
  const { agentId, action, text, message, question, sessionId } = request;
  const about = [question ?? message, text].filter((part) => part !== undefined).join(": ");
  return (state, reason) =>
    appendAct(
      sessionFiles(transcripts, sessionId),
      {
        action,
        agentId,
        ...(about === "" ? {} : { text: about }),
        state,
        reason,
        by: { user, through, pid: process.pid },
      },
      Date.now(),
    );
}

interface Performing<Context extends ActAuthor = ActAuthor> {
  readonly request: Request;
  /** Absent for the main agent. */
  readonly task: FoundTask | undefined;
  readonly context: Context;
  readonly note: Note;
}

async function perform(performing: Performing<ActContext>): Promise<ActOutcome> {
  const { request, context } = performing;
  const { action, agentId } = request;
  if (isRunId(agentId)) return performOnRun(performing);
  switch (action) {
    case "stop":
    case "background":
    case "message":
      return submit(performing, action);
    case "resume":
      return resume(performing);
    case "fork":
      return fork(performing);
    default:
      return answer(request, context);
  }
}

/** Stopping a run of many agents waits for all of them. */
const runTimeoutMs = 20_000;

async function performOnRun(performing: Performing<ActContext>): Promise<ActOutcome> {
  const { request, context } = performing;
  const { action, agentId: runId, sessionId } = request;
  const run = await readRun(context.transcripts, sessionId, runId);
  if (run === undefined)
    throw new RetinueError("unknown-run", `There is no workflow run ${runId} in this session.`);
  const isRunning = run.status === "running";
  if (action === "stop") {
    if (!isRunning) throw new RetinueError("not-running", `${runId} is not running; it is ${run.status}.`);
    const { journal } = workflowFiles(context.transcripts, sessionId, runId);
    const options = { ...context, timeoutMs: runTimeoutMs };
    await submitElsewhere({ type: "stop", agent: runId }, { sessionId, transcript: journal }, options);
    return { outcome: `${run.name} was stopped. Finished steps are kept; resume it to run the rest.` };
  }
  if (action !== "resume") throw new RetinueError("misuse", "A workflow run can only be stopped or resumed.");
  if (isRunning) throw new RetinueError("still-running", `${runId} is still running.`);
  await startCommand(["workflow", "resume", runId], performing);
  return { outcome: `${run.name} was resumed; finished steps are not run again.` };
}

/** Submits an op to the process that runs the agent. */
async function submit({ request, task, context }: Performing, type: RemoteOp["type"]): Promise<ActOutcome> {
  const { sessionId, text = "" } = request;
  if (type === "background" && task === undefined)
    throw new RetinueError("misuse", "The main agent cannot be moved to the background.");
  if (type === "message" && text.trim() === "") throw new RetinueError("misuse", "A message needs a text.");
  const { transcript } = sessionFiles(context.transcripts, sessionId);
  const isOpen = task === undefined && hasLiveOwner(transcript);
  const { id: agent, ...place } = task ?? {
    id: mainAgentId,
    transcript,
    state: isOpen ? "running" : "ended",
  };
  if (place.state !== "running")
    throw new RetinueError(
      "not-running",
      `${task === undefined ? "The main agent" : agent} is not running; it is ${place.state}.`,
      { advice: "Resume it with a prompt instead." },
    );
  const op: RemoteOp = type === "message" ? { type, agent, text, resume: false } : { type, agent };
  await submitElsewhere(op, { sessionId, transcript: place.transcript }, context);
  const stopped = task === undefined ? "was asked to stop" : "was stopped";
  const done = {
    stop: stopped,
    background: "was moved to the background",
    message: "reads the message between its turns",
  };
  return { outcome: `${agent} ${done[type]}.` };
}

async function findTask({ sessionId, agentId }: Request, { transcripts }: ActAuthor): Promise<FoundTask> {
  const found = await findTasks(transcripts, { idPrefix: agentId, sessionId });
  const task = found.find(({ id }) => id === agentId);
  if (task !== undefined) return task;
  throw new RetinueError("unknown-task", `There is no agent ${agentId} in this session.`);
}

async function resume(performing: Performing<ActContext>): Promise<ActOutcome> {
  const { request, task, context } = performing;
  const { sessionId, text = "" } = request;
  if (hasLiveOwner(task?.transcript ?? sessionFiles(context.transcripts, sessionId).transcript))
    throw new RetinueError("still-running", `${task?.id ?? "This session"} is still running.`, {
      advice: "Send it a message instead.",
    });
  if (task === undefined && !hasText(request))
    throw new RetinueError("misuse", "Resuming a session needs a prompt.");
  const words =
    task === undefined
      ? ["-p", "--resume", sessionId, "--", text]
      : ["resume", task.id, "--", ...(hasText(request) ? [text] : [])];
  await startCommand(words, performing);
  return { outcome: `${task?.id ?? "The session"} was resumed.` };
}

/** Runs this command in the session's folder, and writes down how it ended. */
async function startCommand(
  words: readonly string[],
  { request, context, note }: Performing<ActContext>,
): Promise<void> {
  const found = await findSession(context.transcripts, request.sessionId);
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
}

/** A new session with the conversation up to a message; with a text, it continues with that as its prompt. */
async function fork(performing: Performing<ActContext>): Promise<ActOutcome> {
  const { request, context, task } = performing;
  const { message, sessionId: from, text = "" } = request;
  if (task !== undefined)
    throw new RetinueError("misuse", "Only the conversation of the main agent can be forked.", {
      advice: "Resume the agent with another prompt.",
    });
  const { sessionId } = await forkSession({
    transcripts: context.transcripts,
    from,
    ids: { uuid: randomUUID },
    at: message,
  });
  noteFor({ ...request, sessionId }, context)("done", `Forked from ${from}.`);
  if (hasText(request)) await startCommand(["-p", "--resume", sessionId, "--", text], performing);
  return { outcome: `The conversation was forked into ${sessionId}.`, sessionId };
}

function hasText({ text = "" }: Request): boolean {
  return text.trim() !== "";
}

/** Answers a question of the approval inbox, or takes a grant back. */
function answer(request: Request, { transcripts, user }: ActAuthor): ActOutcome {
  const { action, question: id, digest, grant, text, sessionId } = request;
  const { approvals } = sessionFiles(transcripts, sessionId);
  if (id === undefined) throw new RetinueError("misuse", "An answer needs the id of its question.");
  const known = readApprovals(approvals, { now: Date.now }).find(({ question }) => question.id === id);
  if (known === undefined) throw new RetinueError("unknown-approval", `There is no question ${id}.`);
  const files = openInboxFiles(approvals);
  if (action === "revoke") {
    if (known.answer?.type !== "allow")
      throw new RetinueError(
        "nothing-granted",
        `The question ${id} is ${known.state}, so there is nothing to revoke.`,
      );
    files.revoke(id, user, Date.now());
    return { outcome: `${id} is revoked; calls that it already allowed are not undone.` };
  }
  if (digest === undefined) throw new RetinueError("misuse", "An answer needs the digest of the call.");
  const given =
    action === "deny"
      ? ({ type: "deny", message: text } as const)
      : ({ type: "allow", ...(grant ?? { scope: "call" }) } as const);
  answerQuestion(files, id, { given, by: user, via: "studio", now: Date.now(), digest });
  return { outcome: `${known.question.tool} is ${action === "deny" ? "denied" : "allowed"}.` };
}
