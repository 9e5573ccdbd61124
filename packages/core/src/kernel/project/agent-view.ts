import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { textOf } from "../../conversation/message.ts";
import { noTotals, type RunEnding } from "../../conversation/run-event.ts";
import { contextTokens, noUsage } from "../../conversation/usage.ts";
import { hasEnded, type TaskState } from "../../protocol/agent-state.ts";
import type { FoundTask } from "../../tasks/find-tasks.ts";
import { maxResult, resultText } from "../../tasks/spawn-outcome.ts";
import { messageIn } from "./project-tasks.ts";

/** The state of an agent, wherever it ran. */
export interface AgentView {
  readonly agentId: string;
  readonly agentType: string;
  readonly description: string;
  readonly name?: string;
  readonly state: TaskState["status"] | "interrupted";
  /** What it does now. */
  readonly activity?: string;
  readonly stopReason?: string;
  readonly error?: string;
  /** The result when it has ended, else what it said last; bounded, and followed by one line of facts. */
  readonly text: string;
  readonly turns?: number;
  readonly totalToolUseCount: number;
  readonly totalTokens: number;
  readonly totalCostUsd?: number;
  readonly denials?: readonly DeniedCall[];
}

/** A text within the limit for what a parent reads of an agent. */
export function boundedResult(text: string): string {
  return text.slice(0, maxResult).toWellFormed();
}

export interface DeniedCall {
  readonly tool: string;
  readonly reason: string;
}

const maxDenials = 20;

export function deniedCalls(ending: RunEnding | undefined): readonly DeniedCall[] {
  return (ending?.denials ?? [])
    .slice(0, maxDenials)
    .map(({ call, reason }) => ({ tool: call.name, reason }));
}

/** `partial` is the part of its current answer that has arrived. */
export function viewOfState(state: TaskState, partial: string): AgentView {
  const { ending, usage } = state;
  const denials = deniedCalls(ending);
  const unfinished = { ...emptyEnding, text: partial === "" ? state.lastText : partial };
  return {
    agentId: state.id,
    agentType: state.agentType,
    description: state.description,
    name: state.name,
    state: state.status,
    ...(hasEnded(state) ? {} : { activity: state.activity }),
    stopReason: ending?.reason,
    error: ending?.error,
    text: resultText({
      agentId: state.id,
      description: state.description,
      ending: ending ?? {
        ...unfinished,
        totals: { ...emptyEnding.totals, usage, turns: state.turns, toolUses: state.toolUses },
      },
    }),
    turns: state.turns,
    totalToolUseCount: state.toolUses,
    totalTokens: contextTokens(usage) + usage.outputTokens,
    totalCostUsd: state.costUsd,
    ...(denials.length === 0 ? {} : { denials }),
  };
}

/** From the transcript of an agent that does not run here. */
export function viewOfTranscript(task: FoundTask, records: readonly JsonRecord[]): AgentView {
  const { state, tokens, toolUses, costUsd: cost, reason } = task;
  const durationMs = Math.max(0, task.lastSignAt - (task.startedAt ?? task.lastSignAt));
  const ending: RunEnding = {
    ...emptyEnding,
    status: endingStatus(state),
    reason: reason ?? state,
    text: lastText(records),
    totals: {
      ...emptyEnding.totals,
      usage: { ...noUsage, inputTokens: tokens },
      toolUses,
      durationMs,
      ...(cost === undefined ? {} : { costUsd: cost }),
    },
  };
  return {
    agentId: task.id,
    agentType: task.agentType,
    description: task.description,
    name: task.name,
    state,
    stopReason: reason,
    text: resultText({ agentId: task.id, description: task.description, ending, file: task.transcript }),
    totalToolUseCount: toolUses,
    totalTokens: tokens,
    totalCostUsd: cost,
  };
}

const emptyEnding: RunEnding = {
  status: "completed",
  reason: "",
  text: "",
  denials: [],
  totals: noTotals,
};

/** One that still runs, or waits for its place, is reported without the headline of an ending. */
function endingStatus(state: string): RunEnding["status"] {
  switch (state) {
    case "completed":
    case "partial":
    case "failed":
    case "stopped":
      return state;
    case "interrupted":
      return "stopped";
    default:
      return "completed";
  }
}

function lastText(records: readonly JsonRecord[]): string {
  for (const record of records.toReversed()) {
    const message = record.type === "assistant" ? messageIn(record) : undefined;
    const text = message === undefined ? "" : textOf(message);
    if (text !== "") return text;
  }
  return "";
}
