import { isRecord } from "../foundation/json-record.ts";
import type { JsonValue, LogEntry } from "./store.ts";

/**
 * What is written in the log of an agent. The log is the agent's whole state: any worker, also one with newer code, can go
 * on from it. Records of kinds that a worker does not recognize are kept and passed over.
 */
export type AgentRecord =
  /** Always the first one. */
  | {
      readonly type: "planned";
      readonly plan: JsonValue;
      readonly needs: readonly string[];
      /** The agent at the root of the tree; the tree's money is counted under its name. */
      readonly tree: string;
      readonly parent?: string;
    }
  | { readonly type: "claimed"; readonly worker: string; readonly version: string }
  | { readonly type: "received"; readonly inbox: number; readonly message: Message }
  /** The agent's own lines, such as messages of its conversation. */
  | { readonly type: "entry"; readonly entry: JsonValue }
  /** Something with effects outside is about to happen; its number is part of the key that makes it recognizable. */
  | { readonly type: "called"; readonly name: string; readonly input: JsonValue }
  | { readonly type: "returned"; readonly call: number; readonly result: JsonValue }
  /** The worker died during the call: whether it took effect is unknown. */
  | { readonly type: "interrupted"; readonly call: number }
  | { readonly type: "spawned"; readonly agent: string }
  | { readonly type: "parked"; readonly waitingFor: JsonValue }
  | { readonly type: "ended"; readonly ending: Ending };

/** A message in the inbox of an agent. The same id arrives once. */
export interface Message {
  readonly id: string;
  readonly from?: string;
  readonly body: JsonValue;
}

export interface Ending {
  readonly status: "completed" | "failed" | "stopped";
  readonly result: JsonValue;
}

export interface OpenCall {
  readonly seq: number;
  readonly name: string;
  readonly input: JsonValue;
}

/** What follows from the records. */
export interface AgentState {
  readonly lastSeq: number;
  readonly plan: JsonValue | undefined;
  readonly needs: readonly string[];
  readonly tree: string;
  readonly parent: string | undefined;
  /** How far the inbox was read, and the ids that were in it. */
  readonly inboxSeq: number;
  readonly received: ReadonlySet<string>;
  /** Calls that have neither returned nor been reported as interrupted. */
  readonly openCalls: readonly OpenCall[];
  readonly children: readonly string[];
  readonly waitingFor: JsonValue | undefined;
  /** The last ending, unless something came after it. */
  readonly ending: (Ending & { readonly seq: number }) | undefined;
}

export type AgentStatus = "unknown" | "working" | "waiting" | Ending["status"];

/** By the log alone; whether a worker has the agent right now is known to the engine. */
export function statusOf({ plan, ending, waitingFor }: AgentState): AgentStatus {
  if (plan === undefined) return "unknown";
  if (ending !== undefined) return ending.status;
  return waitingFor === undefined ? "working" : "waiting";
}

export function readAgentState(entries: readonly LogEntry[]): AgentState {
  const calls = new Map<number, OpenCall>();
  const received = new Set<string>();
  const children: string[] = [];
  let state: Omit<AgentState, "openCalls" | "children" | "received"> = noState;
  for (const { seq, record: value } of entries) {
    state = { ...state, lastSeq: seq };
    const record = toAgentRecord(value);
    switch (record?.type) {
      case "planned":
        state = {
          ...state,
          plan: record.plan,
          needs: record.needs,
          tree: record.tree,
          parent: record.parent,
        };
        break;
      case "claimed":
        state = { ...state, ending: undefined, waitingFor: undefined };
        break;
      case "received":
        state = { ...state, inboxSeq: record.inbox };
        received.add(record.message.id);
        break;
      case "called":
        calls.set(seq, { seq, name: record.name, input: record.input });
        break;
      case "returned":
      case "interrupted":
        calls.delete(record.call);
        break;
      case "spawned":
        children.push(record.agent);
        break;
      case "parked":
        state = { ...state, waitingFor: record.waitingFor };
        break;
      case "ended":
        state = { ...state, ending: { ...record.ending, seq } };
        break;
    }
  }
  return { ...state, received, openCalls: [...calls.values()], children };
}

const noState: Omit<AgentState, "openCalls" | "children" | "received"> = {
  lastSeq: 0,
  plan: undefined,
  needs: [],
  tree: "",
  parent: undefined,
  inboxSeq: 0,
  waitingFor: undefined,
  ending: undefined,
};

/** Undefined for a kind that this version does not recognize. */
export function toAgentRecord(value: JsonValue): AgentRecord | undefined {
  if (!isRecord(value) || typeof value["type"] !== "string" || !knownTypes.has(value["type"]))
    return undefined;
  // Written by this module; a newer version may add fields but not change these.
  return value as unknown as AgentRecord;
}

const knownTypes: ReadonlySet<string> = new Set<AgentRecord["type"]>([
  "planned",
  "claimed",
  "received",
  "entry",
  "called",
  "returned",
  "interrupted",
  "spawned",
  "parked",
  "ended",
]);

/** A record is plain data; only its readonly lists keep the compiler from seeing that it is JSON. */
export function toJson(record: AgentRecord | Message): JsonValue {
  return record as unknown as JsonValue;
}

export function agentLog(agent: string): string {
  return `run/${agent}`;
}

export function inboxLog(agent: string): string {
  return `in/${agent}`;
}

/** Where the one that watches an agent hears of it. */
export function liveTopic(agent: string): string {
  return `live/${agent}`;
}

/** Tools and services that know this key can distinguish a repeated call from a new one. */
export function idempotencyKey(agent: string, seq: number): string {
  return `${agent}/${seq}`;
}
