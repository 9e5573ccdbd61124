import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { InterruptedAgent } from "../conversation/interrupted-agent.ts";
import type { ToolResultBlock, ToolUseBlock, UserMessage } from "../conversation/message.ts";
import type { RunEnding } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import { loadSession } from "../journal/session-choices.ts";
import { sessionFiles } from "../journal/session-files.ts";
import { foldChildRun } from "./child-run.ts";
import { endNotice } from "./end-notice.ts";
import { type FoundTask, findTasks } from "./find-tasks.ts";
import { interruptedStatus, interruptedText, resultText } from "./spawn-outcome.ts";

/** What was reported to a conversation about its children. */
export interface ReportedAgents {
  /** When it was last reported how a child is, in milliseconds since 1970. */
  readonly reportedAt: ReadonlyMap<string, number>;
  /** Those that it was asked to continue without, and by the result of which call. */
  readonly launched: ReadonlyMap<string, string>;
}

/** The same, with the calls that were cut off and are now answered with what their child handed in. */
export interface KnownReports extends ReportedAgents {
  readonly answered: ReadonlySet<string>;
}

/** Within a notice the opening tag is defused, so what a child writes about another is no notice. */
const noticePattern = /<task-notification>\s*<task-id>([A-Za-z0-9_-]{1,64})<\/task-id>/g;

/** Total: any lines will do. */
export function readReportedAgents(records: readonly JsonRecord[]): ReportedAgents {
  const reportedAt = new Map<string, number>();
  const launched = new Map<string, string>();
  for (const record of records) {
    if (record.type !== "user") continue;
    const { toolUseResult: result, timestamp } = record;
    const at = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
    if (Number.isNaN(at)) continue;
    if (isRecord(result) && typeof result.agentId === "string") {
      // Any other result of such a call is what the child handed in; one that was cut off is informed of when it is found again.
      if (result.status === "async_launched") launched.set(result.agentId, answeredCall(record));
      else if (result.status !== interruptedStatus) reportedAt.set(result.agentId, at);
    }
    for (const [, id = ""] of textIn(record).matchAll(noticePattern)) reportedAt.set(id, at);
  }
  return { reportedAt, launched };
}

/** What a parent should have been shown about children that ended, and was not because its process died. */
export async function findLostNotices(
  tasks: readonly FoundTask[],
  { reportedAt, launched, answered }: KnownReports,
  outputFile: (agentId: string) => string,
): Promise<readonly UserMessage[]> {
  const lost = tasks.filter(({ id, callId = "", state, background, lastSignAt }) => {
    if (state === "running" || state === "interrupted" || answered.has(callId)) return false;
    return (background || launched.has(id)) && (reportedAt.get(id) ?? 0) < lastSignAt;
  });
  return Promise.all(
    lost.map(async (task) => {
      const { id, agentType, description, lastSignAt, toolUses, startedAt = lastSignAt } = task;
      const { ending, text } = await resultOf(task, outputFile(id));
      const state = {
        id,
        agentType,
        description,
        status: ending.status,
        background: true,
        parentId: "main",
        startedAt,
        endedAt: lastSignAt,
        lastSignAt,
        activity: "",
        usage: ending.totals.usage,
        turns: 0,
        toolUses,
        lastText: ending.text,
        ending,
      };
      return endNotice(state, { outputFile: outputFile(id), text });
    }),
  );
}

/**
 * What can be answered to calls that were cut off and had started a child: its result where the child got that far, else which
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
    const { id, callId, agentType, state } = task;
    if (callId === undefined || !wanted.has(callId)) continue;
    const answer = { type: "tool_result", tool_use_id: callId } as const;
    if (state === "interrupted" || state === "running") {
      answers.set(callId, { ...answer, content: interruptedText(id, agentType), is_error: true });
      continue;
    }
    const { text } = await resultOf(task, files.agent(id).output);
    const isError = state === "failed" || state === "stopped";
    const content = `The session was interrupted after the agent ${id} (${agentType}) had ended; this is what it handed in.\n\n${text}`;
    answers.set(callId, { ...answer, content, ...(isError ? { is_error: true } : {}) });
  }
  return answers;
}

/** The result of a child that ended by itself, as its files show it. */
async function resultOf(
  task: FoundTask,
  file: string,
): Promise<{ readonly ending: RunEnding; readonly text: string }> {
  const { id: agentId, description, tokens, toolUses, lastSignAt, startedAt = lastSignAt } = task;
  const { records } = await loadSession(task.transcript, { sidechain: true });
  // It neither runs nor was cut off, as the callers have checked.
  const status = task.state as RunEnding["status"];
  const ending: RunEnding = {
    status,
    reason: task.reason ?? status,
    text: foldChildRun(records).lastText,
    denials: [],
    totals: {
      usage: { ...noUsage, inputTokens: tokens },
      turns: 0,
      toolUses,
      durationMs: lastSignAt - startedAt,
      modelMs: 0,
    },
  };
  return { ending, text: resultText({ agentId, description, ending, file }) };
}

/** A child that was cut off, as its parent and the person are informed of it. */
export function interruptedAgent(
  { id, agentType, description, inFlight = [] }: FoundTask,
  { background, standing }: Pick<InterruptedAgent, "background" | "standing">,
): InterruptedAgent {
  return { id, agentType, description, background, inFlight, standing };
}

function answeredCall({ message }: JsonRecord): string {
  const [block] = isRecord(message) && Array.isArray(message.content) ? message.content : [];
  return isRecord(block) && typeof block.tool_use_id === "string" ? block.tool_use_id : "";
}

/** Only messages to the agent; results of calls are others' words. */
function textIn({ message }: JsonRecord): string {
  const content = isRecord(message) ? message.content : undefined;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .flatMap((block: unknown) =>
      isRecord(block) && block.type === "text" && typeof block.text === "string" ? [block.text] : [],
    )
    .join("\n");
}
