// @io

import { randomUUID } from "node:crypto";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { planWithin } from "@retinue/core/kernel/plan-within.ts";
import { type AgentHandle, stoppedEnding } from "@retinue/core/kernel/run-handle.ts";
import type { AgentPlan, ChildPlan } from "@retinue/core/planning/agent-plan.ts";
import { treeLimitsOf } from "@retinue/core/planning/plan-limits.ts";
import {
  type AcceptedRight,
  acceptableRights,
  narrowDefinition,
} from "@retinue/core/planning/within-own-rights.ts";
import type { Executor } from "@retinue/core/tasks/run-agent.ts";
import { resultText } from "@retinue/core/tasks/spawn-outcome.ts";
import type { ApprovalAnswer } from "@retinue/gate/approver.ts";
import type { PermissionMode } from "@retinue/gate/permission-policy.ts";
import type { AgentContext, AgentProgram, ProgramOutcome } from "../agent-program.ts";
import type { Message } from "../agent-records.ts";
import type { JsonValue } from "../store.ts";
import { openWorkspace, refuseWorkspace } from "../workspace/open-workspace.ts";
import { type WorkspacePlan, workspaceNeeds } from "../workspace/workspace-plan.ts";
import { planNeeds } from "./plan-needs.ts";
import { failedWorkflow, runStoreWorkflow } from "./run-store-workflow.ts";
import {
  type PlannedChild,
  readPlanAgents,
  readTravellingPlan,
  type SessionPlan,
  type TravellingOptions,
  type TravellingWorkflow,
} from "./session-plan.ts";
import {
  type Question,
  readSessionMessage,
  readSessionProgress,
  type SessionProgress,
} from "./session-progress.ts";
import {
  endingOf,
  type Prompt,
  parkedFor,
  parkedForChildren,
  publishOpened,
  runEndingOf,
  runInRuntime,
  type SessionProgramOptions,
  type SessionWork,
} from "./session-work.ts";
import { inWorkspace, withinWorker } from "./within-worker.ts";

/** Runs sessions and plans of children as agents of a store. Only this file and `session-work.ts` know the runtime. */
export function createSessionProgram(options: SessionProgramOptions): AgentProgram {
  return async (context) => {
    const plan = readTravellingPlan(context.plan);
    await context.receive();
    if (plan.type === "session" && plan.workflow !== undefined)
      return runWorkflow({ plan, workflow: plan.workflow, options, context });
    const progress = readSessionProgress(await context.readHistory(), plan.type);
    const prompt = nextPrompt(firstPrompt(plan), progress);
    if (prompt === undefined) return restingOutcome(progress);
    await refuseWorkspace(plan.workspace, options.folders ?? []);
    const workspace = await openWorkspace({
      plan: plan.workspace,
      agent: context.agent,
      saved: progress.workspace,
      root: options.workspaces,
      environment: options.runtime.env ?? process.env,
      signal: context.signal,
      confirm: context.confirm,
    });
    const accepts = acceptedOf(options, context.agent);
    const work: SessionWork = { options, context, progress, workspace, prompt, accepts };
    try {
      return await (plan.type === "session" ? runSession(plan, work) : runChild(plan, work));
    } finally {
      await workspace.close();
    }
  };
}

/** The script of a workflow, in a session that plans its steps and starts nothing itself. */
async function runWorkflow({
  plan,
  workflow,
  options,
  context,
}: Pick<SessionWork, "options" | "context"> & {
  readonly plan: SessionPlan;
  readonly workflow: TravellingWorkflow;
}): Promise<ProgramOutcome> {
  if (plan.workspace.type === "git")
    return failedWorkflow(
      "A workflow cannot use a git workspace, because a branch can have only one writer.",
    );
  await refuseWorkspace(plan.workspace, options.folders ?? []);
  const { directory } = plan.workspace;
  const accepts = acceptedOf(options, context.agent);
  const { agents, ...session } = sessionOf(plan, { options, context, accepts, directory });
  await using runtime = createRuntime({
    ...options.runtime,
    cwd: directory,
    transcripts: false,
    wrapPlan: session.wrapPlan,
    ...(agents === undefined ? {} : { agents }),
  });
  const { sessionId } = plan;
  await using opened = await runtime.open({ ...session.options, sessionId, childrenOnly: true, takeOver });
  return await runStoreWorkflow({
    workflow,
    workspace: plan.workspace,
    session: opened,
    store: options.store,
    context,
  });
}

function runSession(plan: SessionPlan, work: SessionWork): Promise<ProgramOutcome> {
  const { sessionId, remoteChildren, partialMessages, approvals, workspace } = plan;
  const { options, wrapPlan, agents } = sessionOf(plan, { ...work, directory: work.workspace.directory });
  return runInRuntime(work, {
    sessionId,
    wrapPlan,
    ...(partialMessages === true ? { partialMessages } : {}),
    ...(approvals === "refuse" ? { refusesToAsk: true } : {}),
    ...(remoteChildren === true ? { wrapExecutor: createStoreExecutor(work.context, workspace) } : {}),
    maxBudgetUsd: options.maxBudgetUsd,
    agents,
    async start(runtime, signal) {
      const own = work.progress.hasTranscript ? { resume: sessionId } : { sessionId };
      const session = await runtime.open({ ...options, ...own, takeOver });
      publishOpened(work.context, session);
      return session.stream(work.prompt.text, signal);
    },
  });
}

/** What a worker makes of the plan of a session: its options, its own plan within that, and the agents that came with it. */
function sessionOf(
  plan: SessionPlan,
  work: Pick<SessionWork, "options" | "context" | "accepts"> & { readonly directory: string },
) {
  const { agents, workspace } = plan;
  const { accepts, directory } = work;
  const decided = plan.plan === undefined ? undefined : inWorkspace(plan.plan, workspace, { directory });
  const { options, ...accepted } = withinAccepted(plan.options, decided, accepts);
  const definitions = agents === undefined ? [] : readPlanAgents(agents);
  const narrowed = definitions.map((definition) => narrowDefinition(definition, undefined, accepts));
  const cut = [...accepted.cut, ...narrowed.flatMap((one) => one.cut)];
  return {
    options,
    wrapPlan(own: AgentPlan): AgentPlan {
      const wanted = decided ?? { ...own, policy: { ...own.policy, mode: accepted.mode ?? own.policy.mode } };
      const made = withinWorker(wanted, own, accepts);
      const all = { ...made, notes: [...new Set([...made.notes, ...cut])] };
      reportNotes(
        work,
        all.notes.filter((note) => !wanted.notes.includes(note) && !own.notes.includes(note)),
      );
      return all;
    },
    agents: agents === undefined ? undefined : narrowed.map(({ value }) => value),
  };
}

/**
 * Makes children agents of the store, which any worker can carry out. Their parent does not wait for them in its process: it is notified that
 * they work elsewhere, ends its turn and parks, and their results wake it.
 */
function createStoreExecutor(
  context: Pick<AgentContext, "agent" | "startChild">,
  workspace: WorkspacePlan,
): (local: Executor) => Executor {
  async function* startElsewhere(plan: ChildPlan): AsyncGenerator<RunEvent> {
    const planned: PlannedChild = { type: "plan", sessionId: randomUUID(), plan, workspace };
    await context.startChild({
      agent: `${context.agent}/${plan.agent.id}`,
      // A plan is made of plain data.
      plan: JSON.parse(JSON.stringify(planned)) as JsonValue,
      needs: [...planNeeds(plan), ...workspaceNeeds(workspace)],
    });
    const text = `This agent works on another worker now. Its result reaches you as a message after you have ended your turn: if you need it, end your turn and say that you wait for ${plan.agent.id}.`;
    yield { type: "run-ended", ending: { ...stoppedEnding("elsewhere"), status: "completed", text } };
  }
  return (local) => ({
    execute(execution, control, signal) {
      const { task } = execution.plan;
      // A child that begins with its parent's conversation, continues one of its own or has a working tree needs files of this worker, and
      // a branch has one writer.
      const isPortable =
        !task.forksContext && !task.resumed && task.isolation === undefined && workspace.type !== "git";
      return isPortable ? startElsewhere(execution.plan) : local.execute(execution, control, signal);
    },
  });
}

/** The options of a session without those that give rights, but for what this worker accepts; they are requests of a plan too. */
function withinAccepted(
  given: TravellingOptions,
  decided: AgentPlan | undefined,
  accepts: readonly AcceptedRight[],
): { readonly options: TravellingOptions; readonly mode?: PermissionMode; readonly cut: readonly string[] } {
  const { permissionMode, skipPermissions, allowedTools = [], ...rest } = given;
  // The mode was decided with the plan; whether it is allowed here is decided here.
  const mode = decided?.policy.mode ?? (skipPermissions === true ? "bypassPermissions" : permissionMode);
  const takesMode = mode !== undefined && accepts.includes(mode === "bypassPermissions" ? "bypass" : "mode");
  const takesRules = accepts.includes("rules");
  return {
    options: {
      ...rest,
      ...(takesMode ? { permissionMode: mode } : {}),
      ...(takesRules && allowedTools.length > 0 ? { allowedTools } : {}),
    },
    mode,
    // With a plan they are among its rules, and said there.
    cut:
      takesRules || decided !== undefined || allowedTools.length === 0
        ? []
        : [`Allow rules of the plan are not applied here: ${allowedTools.join(", ")}.`],
  };
}

/** What was asked for and does not hold on this worker is reported to its operator as well. */
function reportNotes(
  { options, context }: Pick<SessionWork, "options" | "context">,
  notes: readonly string[],
): void {
  if (notes.length === 0) return;
  const advice = "`--accept-rights` says what a worker accepts of plans.";
  options.runtime.onWarning?.(`${context.agent}: ${notes.join(" ")} ${advice}`);
}

/** The plan of a child, decided elsewhere, as `retinue run-plan` carries it out. */
function runChild(
  { sessionId, plan, output, workspace }: PlannedChild,
  work: SessionWork,
): Promise<ProgramOutcome> {
  const tree = treeLimitsOf(plan);
  return runInRuntime(work, {
    sessionId,
    maxBudgetUsd: tree.usd,
    async start(runtime, signal) {
      const session = await runtime.open({ sessionId, childrenOnly: true, limits: { tree }, takeOver });
      const placed = inWorkspace(plan, workspace, work.workspace);
      const narrowed = await planWithin(withPrompt(placed, work), session, work.accepts);
      reportNotes(
        work,
        narrowed.notes.filter((note) => !placed.notes.includes(note)),
      );
      const handle = session.runPlan({ ...narrowed, sessionId }, { output });
      // Unlike a stop of the agent itself: another worker continues it.
      const close = (): void => void session.close().catch(() => undefined);
      if (signal.aborted) close();
      else signal.addEventListener("abort", close, { once: true });
      return plan.task.workflow === undefined ? handle.events : stepEvents(handle);
    },
  });
}

/** A script reads the last block of text of its step, and the value that was handed in. */
async function* stepEvents({ events, result }: AgentHandle): AsyncGenerator<RunEvent> {
  let text: string | undefined;
  for await (const event of events) {
    if (event.type === "assistant-answered") {
      const last = event.message.content.findLast((block) => block.type === "text");
      text = last?.type === "text" ? last.text : "";
    }
    if (event.type !== "run-ended") yield event;
    else {
      const { output } = await result;
      const { ending } = event;
      const own = ending.status === "completed" && text !== undefined ? { text } : {};
      yield { ...event, ending: { ...ending, ...own, ...(output === undefined ? {} : { output }) } };
    }
  }
}

/** Who runs an agent is decided by its log, so files that another worker of this machine holds, frozen perhaps, are taken. */
const takeOver = true;

function withPrompt(plan: ChildPlan, { progress, prompt }: SessionWork): ChildPlan {
  if (!progress.hasTranscript) return plan;
  return { ...plan, task: { ...plan.task, resumed: true, prompt: prompt.text } };
}

/**
 * A worker that is kept to folders serves other people, so it accepts nothing wider unless its operator says so. One that works in
 * every folder a plan names serves the users who share its store, and takes their plans as they are.
 */
function acceptedOf(
  { accepts, folders = [] }: SessionProgramOptions,
  agent: string,
): readonly AcceptedRight[] {
  if (accepts === undefined) return folders.length === 0 ? acceptableRights : [];
  return typeof accepts === "function" ? accepts(agent) : accepts;
}

function firstPrompt(plan: SessionPlan | PlannedChild): string {
  return plan.type === "session" ? plan.prompt : plan.plan.task.prompt;
}

/** The next prompt of the agent; undefined when it has to wait. */
function nextPrompt(first: string, progress: SessionProgress): Prompt | undefined {
  const { hasStarted, hasTranscript, isRunning, openQuestion, answers, waiting, results, children } =
    progress;
  if (!hasStarted || (isRunning && !hasTranscript)) return { text: first, entry: { type: "prompted" } };
  if (isRunning) {
    const answer = openQuestion === undefined ? undefined : answers.get(openQuestion.id);
    if (openQuestion !== undefined && answer === undefined) return undefined;
    return { text: openQuestion === undefined ? continueText : answeredText(openQuestion, answer) };
  }
  const [message] = waiting;
  if (message === undefined && results.length > 0 && children.length === 0) return resultsPrompt(results);
  const parsed = message === undefined ? undefined : readSessionMessage(message.body);
  if (message === undefined || parsed?.type !== "prompt") return undefined;
  return { text: parsed.prompt, entry: { type: "prompted", message: message.id } };
}

/** What the children have handed in, as data, each with one line of facts. */
function resultsPrompt(results: readonly Message[]): Prompt {
  const texts = results.flatMap(({ body }) => {
    const parsed = readSessionMessage(body);
    if (parsed?.type !== "child-ended") return [];
    const agentId = parsed.agent.slice(parsed.agent.lastIndexOf("/") + 1);
    const text = resultText({ agentId, description: agentId, ending: runEndingOf(parsed) });
    return [`The agent ${agentId} that ran on another worker has ended:\n\n${text}`];
  });
  return {
    text: texts.join("\n\n"),
    entry: { type: "prompted", results: results.map(({ id }) => id) },
  };
}

const continueText =
  "The process that ran you has ended and another one has taken over. Calls that were under way are reported as interrupted; files may be back at the state of your last finished turn. Check what was done where it matters, then continue.";

function answeredText({ tool }: Question, answer: ApprovalAnswer | undefined): string {
  if (answer?.type === "allow")
    return `You waited for a person to decide about your call of ${tool}. It was allowed: make the same call again now, then continue.`;
  const note = answer?.message === undefined ? "" : ` The person says: ${JSON.stringify(answer.message)}.`;
  return `You waited for a person to decide about your call of ${tool}. It was refused.${note} Continue without it.`;
}

function restingOutcome({ isRunning, openQuestion, lastEnding, children }: SessionProgress): ProgramOutcome {
  if (isRunning && openQuestion !== undefined) return parkedFor(openQuestion);
  if (children.length > 0) return parkedForChildren(children);
  return { type: "ended", ending: endingOf(lastEnding) };
}
