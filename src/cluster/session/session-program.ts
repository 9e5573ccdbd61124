// @io
import type { AgentDefinition } from "../../definitions/agent-definition.ts";
import { readSessionAgents } from "../../definitions/read-definition-object.ts";
import { parseJsonDocument } from "../../foundation/json-document.ts";
import { RetinueError } from "../../foundation/retinue-error.ts";
import type { ApprovalAnswer } from "../../permissions/approver.ts";
import { inWorktree } from "../../planning/in-worktree.ts";
import { treeLimitsOf } from "../../planning/limit-plan.ts";
import type { ChildPlan } from "../../planning/plan-run.ts";
import type { AgentProgram, ProgramOutcome } from "../agent-program.ts";
import type { JsonValue } from "../store.ts";
import { openWorkspace, type Workspace } from "../workspace/open-workspace.ts";
import { type PlannedChild, readTravellingPlan, type SessionPlan } from "./session-plan.ts";
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
  runInRuntime,
  type SessionProgramOptions,
  type SessionWork,
} from "./session-work.ts";

/** Runs sessions and plans of children as agents of a store. Only this file and `session-work.ts` know the runtime. */
export function createSessionProgram(options: SessionProgramOptions): AgentProgram {
  return async (context) => {
    const plan = readTravellingPlan(context.plan);
    await context.receive();
    const progress = readSessionProgress(await context.readHistory(), plan.type);
    const prompt = nextPrompt(firstPrompt(plan), progress);
    if (prompt === undefined) return restingOutcome(progress);
    const workspace = await openWorkspace({
      plan: plan.workspace,
      agent: context.agent,
      saved: progress.workspace,
      root: options.workspaces,
      environment: options.runtime.env ?? process.env,
      signal: context.signal,
      confirm: context.confirm,
    });
    const work: SessionWork = { options, context, progress, workspace, prompt };
    try {
      return await (plan.type === "session" ? runSession(plan, work) : runChild(plan, work));
    } finally {
      await workspace.close();
    }
  };
}

function runSession(plan: SessionPlan, work: SessionWork): Promise<ProgramOutcome> {
  const { sessionId, options, agents } = plan;
  return runInRuntime(work, {
    sessionId,
    maxBudgetUsd: options.maxBudgetUsd,
    ...(agents === undefined ? {} : { agents: readAgents(agents) }),
    async start(runtime, signal) {
      const own = work.progress.hasTranscript ? { resume: sessionId } : { sessionId };
      const session = await runtime.open({ ...options, ...own });
      return session.stream(work.prompt.text, signal);
    },
  });
}

/** The plan of a child, decided elsewhere, as `retinue run-plan` carries it out. */
function runChild({ sessionId, plan, workspace }: PlannedChild, work: SessionWork): Promise<ProgramOutcome> {
  const tree = treeLimitsOf(plan);
  return runInRuntime(work, {
    sessionId,
    maxBudgetUsd: tree.usd,
    async start(runtime, signal) {
      const session = await runtime.open({ sessionId, childrenOnly: true, limits: { tree } });
      const isGit = workspace.type === "git";
      const placed = isGit ? inClone(plan, work.workspace) : inFolder(plan, work.workspace);
      const handle = session.runPlan({ ...withPrompt(placed, work), sessionId });
      // Not as if somebody had stopped the agent itself: another worker continues it.
      const close = (): void => void session.close().catch(() => undefined);
      if (signal.aborted) close();
      else signal.addEventListener("abort", close, { once: true });
      return handle.events;
    },
  });
}

function withPrompt(plan: ChildPlan, { progress, prompt }: SessionWork): ChildPlan {
  if (!progress.hasTranscript) return plan;
  return { ...plan, task: { ...plan.task, resumed: true, prompt: prompt.text } };
}

function inFolder(plan: ChildPlan, { directory }: Workspace): ChildPlan {
  if (plan.sessionDirectory === directory) return plan;
  throw new RetinueError(
    "unreadable-plan",
    `The plan was made for ${plan.sessionDirectory}, but the workspace is ${directory}.`,
    { advice: "Plan it again in the folder of the workspace." },
  );
}

/** The same plan in a copy of its repository, by the rule for working trees. */
function inClone(plan: ChildPlan, { directory, root = directory }: Workspace): ChildPlan {
  const below = directory.slice(root.length);
  const { sessionDirectory } = plan;
  const origin = sessionDirectory.endsWith(below)
    ? sessionDirectory.slice(0, sessionDirectory.length - below.length)
    : sessionDirectory;
  return { ...inWorktree(plan, { path: root, directory, root: origin }), sessionDirectory: directory };
}

function firstPrompt(plan: SessionPlan | PlannedChild): string {
  return plan.type === "session" ? plan.prompt : plan.plan.task.prompt;
}

/** What the agent is to be shown now; nothing when it has to wait. */
function nextPrompt(first: string, progress: SessionProgress): Prompt | undefined {
  const { hasBegun, hasTranscript, isRunning, openQuestion, answers, waiting } = progress;
  if (!hasBegun || (isRunning && !hasTranscript)) return { text: first, entry: { type: "prompted" } };
  if (isRunning) {
    const answer = openQuestion === undefined ? undefined : answers.get(openQuestion.id);
    if (openQuestion !== undefined && answer === undefined) return undefined;
    return { text: openQuestion === undefined ? continueText : answeredText(openQuestion, answer) };
  }
  const [message] = waiting;
  const said = message === undefined ? undefined : readSessionMessage(message.body);
  if (message === undefined || said?.type !== "prompt") return undefined;
  return { text: said.prompt, entry: { type: "prompted", message: message.id } };
}

const continueText =
  "The process that ran you has ended and another one has taken over. Calls that were under way are reported as interrupted; files may be back at the state of your last finished turn. Check what was done where it matters, then continue.";

function answeredText({ tool }: Question, answer: ApprovalAnswer | undefined): string {
  if (answer?.type === "allow")
    return `You waited for a person to decide about your call of ${tool}. It was allowed: make the same call again now, then continue.`;
  const said = answer?.message === undefined ? "" : ` The person says: ${answer.message}`;
  return `You waited for a person to decide about your call of ${tool}. It was refused.${said} Continue without it.`;
}

function restingOutcome({ isRunning, openQuestion, lastEnding }: SessionProgress): ProgramOutcome {
  if (isRunning && openQuestion !== undefined) return parkedFor(openQuestion);
  return { type: "ended", ending: endingOf(lastEnding) };
}

function readAgents(value: JsonValue): readonly AgentDefinition[] {
  const { locate } = parseJsonDocument(JSON.stringify(value), "the plan");
  const { definitions, diagnostics } = readSessionAgents(value, locate, "the plan");
  const broken = diagnostics.find(({ severity }) => severity === "error");
  if (broken !== undefined)
    throw new RetinueError("unreadable-plan", `An agent in the plan cannot be used: ${broken.message}`);
  return definitions;
}
