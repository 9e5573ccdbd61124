import type { UserMessage } from "../conversation/message.ts";
import type { RunEnding } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import { loadSession } from "../journal/session-choices.ts";
import { foldChildRun } from "./child-run.ts";
import { endNotice } from "./end-notice.ts";
import type { FoundTask } from "./find-tasks.ts";
import type { HeardAgents } from "./reported-agents.ts";
import { resultText } from "./result-text.ts";

/** What the main agent should have been shown about children that ended, and was not because its process died. */
export async function findLostNotices(
  tasks: readonly FoundTask[],
  reported: HeardAgents,
  outputFile: (agentId: string) => string,
): Promise<readonly UserMessage[]> {
  const lost = tasks.filter((task) => isLost(task, reported));
  return Promise.all(lost.map((task) => noticeOf(task, outputFile(task.id))));
}

function isLost(
  { id, callId = "", state, background, lastSignAt }: FoundTask,
  { reportedAt, launched, answered }: HeardAgents,
): boolean {
  if (state === "running" || state === "interrupted" || answered.has(callId)) return false;
  return (background || launched.has(id)) && (reportedAt.get(id) ?? 0) < lastSignAt;
}

async function noticeOf(task: FoundTask, outputFile: string): Promise<UserMessage> {
  const { records } = await loadSession(task.transcript, { sidechain: true });
  const { id, agentType, description, tokens, toolUses, lastSignAt, startedAt = lastSignAt } = task;
  const usage = { ...noUsage, inputTokens: tokens };
  // Only those that ended by themselves come here, as just checked.
  const status = task.state as RunEnding["status"];
  const ending: RunEnding = {
    status,
    reason: task.reason ?? status,
    text: foldChildRun(records).lastText,
    denials: [],
    totals: { usage, turns: 0, toolUses, durationMs: lastSignAt - startedAt, modelMs: 0 },
  };
  const state = {
    id,
    agentType,
    description,
    status,
    background: true,
    parentId: "main",
    startedAt,
    endedAt: lastSignAt,
    lastSignAt,
    activity: "",
    usage,
    turns: 0,
    toolUses,
    lastText: ending.text,
    ending,
  };
  const text = resultText({ agentId: id, description, ending, file: outputFile });
  return endNotice(state, { outputFile, text });
}
