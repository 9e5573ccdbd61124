import type { RunEnding } from "../conversation/run-event.ts";
import { contextTokens } from "../conversation/usage.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import { escapeControlTags } from "./result-text.ts";
import type { TaskState } from "./task-state.ts";

/** What programs and transcripts keep of a child that ended while its parent waited. */
export function completedData(plan: ChildPlan, state: TaskState, ending: RunEnding) {
  const { usage } = ending.totals;
  return {
    // A child that has its parent's conversation was entered rather than asked.
    status: plan.task.forksContext ? "sub_agent_entered" : "completed",
    agentId: plan.agent.id,
    agentType: plan.task.agentType,
    content: [{ type: "text", text: escapeControlTags(ending.text) }],
    endStatus: ending.status,
    stopReason: ending.reason,
    resolvedModel: plan.model.value,
    totalToolUseCount: ending.totals.toolUses,
    totalDurationMs: Math.round(ending.totals.durationMs),
    totalTokens: contextTokens(usage) + usage.outputTokens,
    usage: {
      input_tokens: usage.inputTokens,
      output_tokens: usage.outputTokens,
      cache_creation_input_tokens: usage.cacheWriteTokens,
      cache_read_input_tokens: usage.cacheReadTokens,
    },
    ...(ending.totals.cost === undefined ? {} : { totalCostUsd: ending.totals.cost }),
    description: state.description,
    prompt: plan.task.prompt,
  };
}

export function launchedData(plan: ChildPlan, outputFile: string) {
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

export function launchedText({ agent, task }: ChildPlan, outputFile: string): string {
  if (task.team !== undefined)
    return [
      `The teammate ${JSON.stringify(task.team.member)} of the team ${JSON.stringify(task.team.team)} works now; its id is ${agent.id}.`,
      "It reports by message and is idle when it is done; SendMessage to its name gives it more work.",
      `What it does can be followed in ${outputFile}.`,
    ].join("\n");
  return [
    `The agent ${JSON.stringify(task.description)} works in the background; its id is ${agent.id}.`,
    "You are told when it has ended, with its result; go on with other work meanwhile.",
    `What it does can be followed in ${outputFile}; TaskOutput with its id tells how it stands, TaskStop ends it.`,
  ].join("\n");
}
