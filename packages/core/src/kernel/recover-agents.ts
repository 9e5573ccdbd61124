import { hasLockFile, waitForOwner } from "@retinue/base/storage/owner-lock.ts";
import type { InterruptedAgent } from "../conversation/interrupted-agent.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { sessionFiles } from "../journal/session-files.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import { continuePrompt } from "../planning/agent-request.ts";
import { recoverProjectWorktrees } from "../tasks/cleanup.ts";
import { interruptedLine, interruptedNote } from "../tasks/end-notice.ts";
import { isInterrupted } from "../tasks/find-interrupted.ts";
import { type FoundTask, findTasks } from "../tasks/find-tasks.ts";
import { findLostNotices, interruptedAgent, type KnownReports } from "../tasks/reported-agents.ts";
import type { Children } from "./agent/open-children.ts";
import { settleChild } from "./agent/settle-child.ts";
import type { FolderContext, RuntimeContext } from "./runtime-context.ts";
import type { SessionCommands } from "./session-commands.ts";

interface RecoveryParts {
  readonly runtime: RuntimeContext;
  readonly plan: AgentPlan;
  /** What was reported to the conversation about its children. */
  readonly received: KnownReports;
  readonly children: Pick<Children, "session" | "notify" | "spawner" | "team">;
  readonly commands: Pick<SessionCommands, "pendingMessages">;
  /** Children that another process still has are taken from it. */
  readonly takeOver: boolean;
  readonly signal: AbortSignal;
}

/**
 * When a session is taken up again: children whose process died are settled, they continue if settings allow it, and the main
 * agent and the person are informed of them, and of those whose end was not reported.
 */
export async function recoverAgents(parts: RecoveryParts): Promise<readonly InterruptedAgent[]> {
  const { runtime, plan, received, children } = parts;
  const { transcripts, projectRoot } = runtime.discovered.paths;
  const { environment, trusted } = runtime;
  await recoverProjectWorktrees({ projectRoot, environment, trusted, signal: parts.signal });
  const look = () =>
    findTasks(transcripts, {
      sessionId: plan.sessionId,
      takeOver: parts.takeOver,
      isSettled: ({ id, lastSignAt }) => (received.reportedAt.get(id) ?? 0) >= lastSignAt,
    });
  const found = await whenSeen(await look(), look, parts.signal);
  await settle(found.filter(isUnsettled), parts);
  // The team takes its own members up, and a subagent is notified of those it has started when it is resumed.
  const tasks = found.filter(
    ({ id, parentId }) => parentId === undefined && children.team?.isMember(id) !== true,
  );
  const files = sessionFiles(transcripts, plan.sessionId);
  const lost = await findLostNotices(tasks, received, (id) => files.agent(id).output);
  const left = parts.commands.pendingMessages(plan.agent.id, (id) => received.reportedAt.has(id));
  for (const notice of [...lost, ...left]) children.notify(notice);
  const interrupted = tasks.filter(isInterrupted).flatMap((task) => interruptedChildOf(task, parts));
  const waiting = interrupted.map(({ agent }) => agent).filter(({ standing }) => standing !== "resumed");
  if (waiting.length > 0) children.notify(interruptedNote(waiting));
  const reported: InterruptedAgent[] = [];
  for (const one of interrupted) reported.push(...(await resumeOrReport(one, parts)));
  for (const agent of reported) runtime.notice?.(interruptedLine(agent));
  await children.team?.recover(parts.signal);
  return reported;
}

/** Children of a process that cannot be seen from here count as running until it has been silent long enough. */
async function whenSeen(
  tasks: readonly FoundTask[],
  look: () => Promise<readonly FoundTask[]>,
  signal: AbortSignal,
): Promise<readonly FoundTask[]> {
  const unseen = tasks.filter(({ runsOn }) => runsOn !== undefined);
  if (unseen.length === 0) return tasks;
  await Promise.all(unseen.map(({ transcript }) => waitForOwner(transcript, { signal })));
  return look();
}

/** How many stops are settled at the same time: each may run hooks. */
const concurrency = 8;

async function settle(
  unsettled: readonly FoundTask[],
  { runtime, children, signal }: RecoveryParts,
): Promise<void> {
  const waiting = unsettled.values();
  const work = async (): Promise<void> => {
    for (const { id } of waiting) {
      if (signal.aborted) return;
      await settleChild(id, children.session, { signal }).catch((error: unknown) =>
        report(id, error, runtime),
      );
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, unsettled.length) }, work));
}

interface InterruptedChild {
  readonly agent: InterruptedAgent;
  /** The main agent knows already that it was cut off. */
  readonly wasReported: boolean;
}

/** One that is left as it was is reported once. */
function interruptedChildOf(
  task: FoundTask,
  { runtime, received }: RecoveryParts,
): readonly InterruptedChild[] {
  const { id, lastSignAt } = task;
  const background = task.background || wasDetached(task, received);
  const standing = standingOf({ ...task, background }, runtime);
  const wasReported = (received.reportedAt.get(id) ?? 0) >= lastSignAt;
  if (standing !== "resumed" && wasReported) return [];
  return [{ agent: interruptedAgent(task, { background, standing }), wasReported }];
}

/** The call that started it has the answer that its agent works in the background. */
function wasDetached({ id, callId }: FoundTask, { launched }: KnownReports): boolean {
  return callId !== undefined && launched.get(id) === callId;
}

/** Those in the foreground are taken up by the agent that waited for them. */
function standingOf(
  { canResume, background }: FoundTask,
  runtime: RuntimeContext,
): InterruptedAgent["standing"] {
  if (canResume !== true) return "lost";
  return background && resumesByItself(runtime) ? "resumed" : "waiting";
}

/** One that had ended may still be locked by the process that died; settling it releases the lock. */
function isUnsettled(task: FoundTask): boolean {
  if (isInterrupted(task) || task.isStopOwed === true) return true;
  return task.state !== "running" && task.hasPlan && hasLockFile(task.transcript);
}

/** The main agent is notified that one continues when it does, and before it can have ended. */
async function resumeOrReport(
  { agent, wasReported }: InterruptedChild,
  { runtime, children, signal }: RecoveryParts,
): Promise<readonly InterruptedAgent[]> {
  if (agent.standing !== "resumed") return [agent];
  const waiting: InterruptedAgent = { ...agent, standing: "waiting" };
  if (signal.aborted) return [waiting];
  const { id, agentType, description } = agent;
  try {
    const started = await children.spawner.start({
      resume: id,
      agentType,
      description,
      prompt: continuePrompt,
      background: true,
      origin: "program",
    });
    if (started.type === "started") {
      children.notify(interruptedNote([agent]));
      return [agent];
    }
    report(id, started.reason, runtime);
  } catch (error) {
    report(id, error, runtime);
  }
  if (wasReported) return [];
  children.notify(interruptedNote([waiting]));
  return [waiting];
}

function resumesByItself({ variables, discovered }: FolderContext): boolean {
  const isAllowed = variables.backgroundTasksDisabled !== true;
  return isAllowed && discovered.settings.settings.plain.resumeInterruptedAgents === true;
}

function report(id: string, error: unknown, { notice }: RuntimeContext): void {
  const why = error instanceof Error ? error.message : String(error);
  notice?.(`The agent ${id}, which was cut off, could not be resumed: ${why}`);
}

/** What a session reports of children that a crash had cut off. */
export interface SessionRecovery {
  /** Before the first prompt: resumes them and reports them. Later it does nothing. */
  begin(signal: AbortSignal): AsyncGenerator<RunEvent, void>;
  /** The first result after that says how many there were. */
  count(ending: RunEnding): RunEnding;
}

export function createSessionRecovery(
  recover: ((signal: AbortSignal) => Promise<readonly InterruptedAgent[]>) | undefined,
): SessionRecovery {
  let waiting = recover;
  let found = 0;
  return {
    async *begin(signal) {
      const work = waiting;
      waiting = undefined;
      const agents = (await work?.(signal)) ?? [];
      found += agents.length;
      if (agents.length > 0) yield { type: "agents-interrupted", agents };
    },
    count(ending) {
      const interruptedAgents = found;
      found = 0;
      return interruptedAgents === 0 ? ending : { ...ending, interruptedAgents };
    },
  };
}
