import type { ToolResultBlock, ToolUseBlock } from "../../conversation/message.ts";
import { noUsage } from "../../conversation/usage.ts";
import { loadSession } from "../../journal/load-session.ts";
import { type SessionFiles, sessionFiles } from "../../journal/session-files.ts";
import { agentOutputFile } from "../agent-output-file.ts";
import { resultText } from "../result-text.ts";
import { foldChildRun } from "./child-run.ts";
import { type FoundTask, findTasks } from "./find-tasks.ts";
import { interruptedText } from "./interrupted-outcome.ts";

/**
 * What can be said to calls that were cut off and had started a child: its result where the child got that far, else which
 * child it is and how to resume it.
 */
export async function findChildAnswers(
  calls: readonly Pick<ToolUseBlock, "id">[],
  { transcripts, sessionId }: { readonly transcripts: string; readonly sessionId: string },
): Promise<ReadonlyMap<string, ToolResultBlock>> {
  const answers = new Map<string, ToolResultBlock>();
  if (calls.length === 0) return answers;
  const wanted = new Set(calls.map(({ id }) => id));
  const files = sessionFiles(transcripts, sessionId);
  for (const task of await findTasks(transcripts, { sessionId })) {
    if (task.callId === undefined || !wanted.has(task.callId)) continue;
    answers.set(task.callId, {
      type: "tool_result",
      tool_use_id: task.callId,
      ...(await answerOf(task, files)),
    });
  }
  return answers;
}

async function answerOf(
  task: FoundTask,
  files: SessionFiles,
): Promise<Pick<ToolResultBlock, "content" | "is_error">> {
  const who = `agent ${task.id} (${task.agentType})`;
  if (task.state === "interrupted" || task.state === "running") {
    return { content: interruptedText(task.id, task.agentType), is_error: true };
  }
  const text = await lastTextOf(task);
  const ending = {
    status: task.state,
    reason: task.reason ?? task.state,
    text,
    denials: [],
    totals: {
      usage: { ...noUsage, inputTokens: task.tokens },
      turns: 0,
      toolUses: task.toolUses,
      durationMs: task.lastSignAt - (task.startedAt ?? task.lastSignAt),
      modelMs: 0,
    },
  };
  const result = resultText({
    agentId: task.id,
    description: task.description,
    ending,
    file: agentOutputFile(files, task.id),
  });
  const isError = task.state === "failed" || task.state === "stopped";
  return {
    content: `The session was interrupted after the ${who} had ended; this is what it handed in.\n\n${result}`,
    ...(isError ? { is_error: true } : {}),
  };
}

async function lastTextOf({ transcript }: FoundTask): Promise<string> {
  const { records } = await loadSession(transcript, { sidechain: true });
  return foldChildRun(records).lastText;
}
