import type { RunEnding } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import type { ChildPlan } from "../planning/agent-plan.ts";
import { interruptedReason, type TaskState } from "../protocol/agent-state.ts";
import type { SpawnOutcome } from "./create-agent-tool.ts";
import { type ChildResult, childResult } from "./result-text.ts";
import type { KeptWorktree } from "./run-agent.ts";
import type { TaskStarted } from "./task-manager.ts";

function resultOf(
  { id: agentId, description }: TaskState,
  ending: RunEnding,
  file: string | undefined,
  worktree?: KeptWorktree,
): ChildResult {
  return childResult({
    agentId,
    description,
    ending,
    file,
    worktree,
  });
}

/** The result of a child that has ended, as its parent reads it. */
export function textOfEnd(state: TaskState, file: string | undefined, worktree?: KeptWorktree): string {
  return state.ending === undefined ? "" : resultOf(state, state.ending, file, worktree).text;
}

/** A child that works on without the caller. */
export function launchedOutcome(plan: ChildPlan, outputFile: string | undefined): SpawnOutcome {
  return { type: "launched", text: launchedText(plan, outputFile), data: launchedData(plan, outputFile) };
}

/** A child that has ended while its caller waited. */
export function endedOutcome(
  plan: ChildPlan,
  state: TaskState,
  {
    outputFile,
    worktree,
  }: { readonly outputFile: string | undefined; readonly worktree: KeptWorktree | undefined },
): SpawnOutcome {
  const ending: RunEnding | undefined = state.ending;
  if (ending === undefined) return { type: "refused", reason: "The agent ended without saying how." };
  const notes = plan.notes.length === 0 ? "" : `${plan.notes.join("\n")}\n\n`;
  const result = resultOf(state, ending, outputFile, worktree);
  return {
    type: "ended",
    text: `${notes}${result.text}`,
    isError: ending.status === "failed" || ending.status === "stopped",
    data: {
      ...completedData(plan, ending, result),
      ...(worktree === undefined ? {} : { worktreePath: worktree.path, worktreeBranch: worktree.branch }),
    },
  };
}

/** What the call that waited for a child is answered with when both were stopped. */
export function interruptedOutcome({ agent, task }: ChildPlan): SpawnOutcome {
  return {
    type: "ended",
    text: interruptedText(agent.id, task.agentType),
    isError: true,
    data: { status: interruptedStatus, agentId: agent.id, agentType: task.agentType, prompt: task.prompt },
  };
}

/** Marks results that do not show how a child ended. */
export const interruptedStatus = "interrupted";

/** The child of a call that was cut off, and how to resume it. */
export function interruptedText(agentId: string, agentType: string): string {
  return `Interrupted: the session ended while the agent ${agentId} (${agentType}) was running. It is stopped, and what it did is kept. Continue with it: call Agent with resume: ${JSON.stringify(agentId)}; do not start another for the same task.`;
}

/** The ending of a child that was planned and found no place; one that came too late for its session can be resumed. */
export function notStarted({ reason: error, isOver }: Extract<TaskStarted, { type: "refused" }>): RunEnding {
  const totals = { usage: noUsage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0 };
  const reason = isOver === true ? interruptedReason : "not-started";
  return { status: "stopped", reason, text: "", error, denials: [], totals };
}

/** What programs and transcripts keep of a child that ended while its parent waited. */
function completedData(plan: ChildPlan, ending: RunEnding, { said, tokens }: ChildResult) {
  const { usage } = ending.totals;
  return {
    // A child that has its parent's conversation was entered rather than asked.
    status: plan.task.forksContext ? "sub_agent_entered" : "completed",
    agentId: plan.agent.id,
    agentType: plan.task.agentType,
    content: [{ type: "text", text: said }],
    endStatus: ending.status,
    stopReason: ending.reason,
    resolvedModel: plan.model.value,
    totalToolUseCount: ending.totals.toolUses,
    totalDurationMs: Math.round(ending.totals.durationMs),
    totalTokens: tokens,
    usage: {
      input_tokens: usage.inputTokens,
      output_tokens: usage.outputTokens,
      cache_creation_input_tokens: usage.cacheWriteTokens,
      cache_read_input_tokens: usage.cacheReadTokens,
    },
    totalCostUsd: ending.totals.costUsd,
    receipt: ending.receipt,
    quote: ending.quote,
    description: plan.task.description,
    prompt: plan.task.prompt,
  };
}

function launchedData(plan: ChildPlan, outputFile: string | undefined) {
  const { team } = plan.task;
  return {
    status: team === undefined ? "async_launched" : "teammate_spawned",
    ...(team === undefined
      ? {}
      : { teammate_id: `${team.member}@${team.team}`, name: team.member, team_name: team.team }),
    isAsync: true,
    agentId: plan.agent.id,
    description: plan.task.description,
    resolvedModel: plan.model.value,
    prompt: plan.task.prompt,
    outputFile,
  };
}

function launchedText({ agent, task }: ChildPlan, outputFile: string | undefined): string {
  const followed = outputFile === undefined ? undefined : `What it does can be followed in ${outputFile}`;
  if (task.team !== undefined)
    return [
      `The teammate ${JSON.stringify(task.team.member)} of the team ${JSON.stringify(task.team.team)} works now; its id is ${agent.id}.`,
      "It reports by message and is idle when it is done; SendMessage to its name gives it more work.",
      ...(followed === undefined ? [] : [`${followed}.`]),
    ].join("\n");
  return [
    `The agent ${JSON.stringify(task.description)} works in the background; agentId: ${agent.id}.`,
    "You are notified when it has ended, with its result; continue with other work meanwhile.",
    `${followed === undefined ? "" : `${followed}; `}TaskOutput with its id shows how it is doing, TaskStop ends it.`,
  ].join("\n");
}
