import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { addUsage, contextTokens, noUsage, type Usage } from "../conversation/usage.ts";

type TaskStatus = "queued" | "running" | RunEnding["status"];

/** One child agent, as all hosts see it: made from its events and nothing else. */
export interface TaskState {
  readonly id: string;
  readonly agentType: string;
  readonly description: string;
  readonly name?: string;
  readonly status: TaskStatus;
  readonly background: boolean;
  readonly parentId: string;
  /** Its level below the main agent, from 2; absent for a child of the main agent. */
  readonly depth?: number;
  /** The call that asked for it, when a model did. */
  readonly callId?: string;
  readonly startedAt: number;
  readonly endedAt?: number;
  /** The last time it did anything. */
  readonly lastSignAt: number;
  /** What it does now, as a few words. */
  readonly activity: string;
  readonly usage: Usage;
  readonly turns: number;
  readonly toolUses: number;
  readonly costUsd?: number;
  readonly lastText: string;
  /** Set for a teammate: its name in the team, and whether it waits for mail. */
  readonly team?: { readonly member: string; readonly isIdle: boolean };
  /** The run of the workflow that it is a step of. */
  readonly workflow?: string;
  /** While it waits for a place: 1 is next. */
  readonly queuePosition?: number;
  /** Set while it is silent: for how many milliseconds, when that was noticed. */
  readonly silentMs?: number;
  /** Set while it waits for a new quota of a provider; `until` in milliseconds since 1970. */
  readonly waitingForQuota?: { readonly provider: string; readonly until: number };
  readonly ending?: RunEnding;
}

/** The state of any agent of a tree; for the main agent, of its run or the last one. */
export type AgentState = TaskState;

/** How many tokens of its window the conversation fills after an event; undefined where the event does not change that. */
export function contextAfter(event: RunEvent): number | undefined {
  if (event.type === "context-compacted") return event.postTokens;
  if (event.type !== "assistant-answered") return undefined;
  return contextTokens(event.usage) + event.usage.outputTokens;
}

export interface TaskStart {
  readonly id: string;
  readonly agentType: string;
  readonly description: string;
  readonly name?: string;
  readonly background: boolean;
  readonly parentId: string;
  readonly depth?: number;
  readonly callId?: string;
  /** Its name in a team. */
  readonly member?: string;
  /** The run of the workflow that it is a step of. */
  readonly workflow?: string;
  readonly at: number;
}

export function startedTask({ at, member, ...start }: TaskStart): TaskState {
  return {
    ...start,
    ...(member === undefined ? {} : { team: { member, isIdle: false } }),
    status: "running",
    startedAt: at,
    lastSignAt: at,
    activity: "starting",
    usage: noUsage,
    turns: 0,
    toolUses: 0,
    costUsd: 0,
    lastText: "",
  };
}

/** The state after an event. Any prefix of a run's events gives a valid state. */
export function foldTask(state: TaskState, event: RunEvent, at: number): TaskState {
  if (event.type === "run-stalled") {
    const seconds = Math.round(event.silentMs / 1000);
    return { ...state, silentMs: event.silentMs, activity: `silent for ${seconds} s` };
  }
  // By far the most events are pieces of answers: they are only a sign of life.
  const isWaiting = state.waitingForQuota !== undefined && event.type !== "quota-waiting";
  const alive = state.silentMs === undefined && !isWaiting ? { ...state, lastSignAt: at } : awake(state, at);
  if (state.team !== undefined) alive.team = { ...state.team, isIdle: event.type === "run-idled" };
  switch (event.type) {
    case "turn-started":
      return { ...alive, activity: "thinking" };
    case "assistant-answered": {
      const { costUsd: before, ...rest } = alive;
      const cost =
        before === undefined || event.costUsd === undefined ? {} : { costUsd: before + event.costUsd };
      const text = event.message.content
        .flatMap((block) => (block.type === "text" ? [block.text] : []))
        .join("\n");
      return {
        ...rest,
        ...cost,
        usage: addUsage(state.usage, event.usage),
        turns: state.turns + 1,
        lastText: text.trim() === "" ? state.lastText : text,
      };
    }
    case "call-started":
      return { ...alive, activity: event.call.name };
    case "call-finished":
      return { ...alive, toolUses: state.toolUses + 1, activity: "thinking" };
    case "compaction-started":
      return { ...alive, activity: "compacting" };
    case "answer-lost":
    case "context-compacted": {
      const { costUsd: before, ...rest } = alive;
      const cost =
        before === undefined || event.costUsd === undefined ? {} : { costUsd: before + event.costUsd };
      return { ...rest, ...cost, usage: addUsage(state.usage, event.usage), activity: "thinking" };
    }
    case "model-retried":
      return { ...alive, activity: `waiting for the model (${event.code})` };
    case "model-fell-back":
      return { ...alive, activity: `thinking (${event.to})` };
    case "quota-waiting": {
      const { provider, until } = event;
      return { ...alive, activity: "waiting-for-quota", waitingForQuota: { provider, until } };
    }
    case "quota-renewed":
      return { ...alive, activity: "thinking" };
    case "run-idled":
      return { ...alive, activity: "idle" };
    case "run-ended":
      return { ...alive, status: event.ending.status, endedAt: at, activity: "", ending: event.ending };
    default:
      return alive;
  }
}

function awake({ silentMs: _silent, waitingForQuota: _waiting, ...received }: TaskState, at: number) {
  return { ...received, lastSignAt: at };
}

/** The reason of an ending that came because the session ended: by a signal, by its program, or because its process died. */
export const interruptedReason = "interrupted";

/** It was stopped with its session, in the middle of its work, and can be resumed. */
export function wasCutOff({ ending }: Pick<TaskState, "ending">): boolean {
  return ending?.status === "stopped" && ending.reason === interruptedReason;
}

export function hasEnded({ status }: Pick<TaskState, "status">): boolean {
  return status !== "running" && status !== "queued";
}
