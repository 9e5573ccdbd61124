import { textOf } from "@retinue/core/conversation/message.ts";
import type { RunEnding } from "@retinue/core/conversation/run-event.ts";
import { noUsage } from "@retinue/core/conversation/usage.ts";
import { foldTask, startedTask } from "@retinue/core/protocol/agent-state.ts";
import { endNotice } from "@retinue/core/tasks/end-notice.ts";
import { resultText } from "@retinue/core/tasks/spawn-outcome.ts";
import { runCaseSession, writeCaseSettings } from "./run-case-session.ts";
import {
  firstText,
  NotHonoured,
  type Roots,
  type SecurityCase,
  textFields,
  type Verdict,
} from "./security-case.ts";

const [agentId, description] = ["a1b2c3", "a task"];

/** Denied is what a parent does not read as its child said it, as an answer. */
export function judgeAgentOutput({ context = {} }: SecurityCase): Verdict {
  const text = firstText(context, textFields);
  if (text === undefined) throw new NotHonoured("the case holds no text of a child");
  const reported = resultText({ agentId, description, ending: endingWith(text) });
  return reported.includes(text.trim()) ? "allow" : "deny";
}

/** Denied is a message that no tool sends, or a child's word that its parent's notice does not hold as it was. */
export async function judgeAgentMessage(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {}, tool, input } = testCase;
  if (tool !== null) {
    await writeCaseSettings(testCase, roots);
    const { calls } = await runCaseSession(testCase, roots, { calls: [{ name: tool, input }] });
    return calls.some(({ isError }) => !isError) ? "allow" : "deny";
  }
  const text = firstText(context, textFields);
  if (text === undefined) throw new NotHonoured("the case holds no text of a message");
  const ending = endingWith(text);
  const started = startedTask({
    id: agentId,
    agentType: "general-purpose",
    description,
    background: true,
    parentId: "main",
    at: 0,
  });
  const state = foldTask(started, { type: "run-ended", ending }, 1);
  const notice = endNotice(state, {
    outputFile: "/a.output",
    text: resultText({ agentId, description, ending }),
  });
  return textOf(notice).includes(text.trim()) ? "allow" : "deny";
}

function endingWith(text: string): RunEnding {
  return {
    status: "completed",
    reason: "end_turn",
    text,
    denials: [],
    totals: { usage: noUsage, turns: 1, toolUses: 0, durationMs: 0, modelMs: 0 },
  };
}
