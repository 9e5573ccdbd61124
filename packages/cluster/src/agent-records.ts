import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { JsonValue, LogEntry } from "./store.ts";

/**
 * What is written in the log of an agent. The log is the agent's whole state: any worker, also one with newer code, can
 * continue from it. Records of kinds that are unknown to a worker are kept and passed over.
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
  | { readonly type: "ended"; readonly ending: Ending }
  /** The claim is released. Without `fault` the worker only shuts down. */
  | {
      readonly type: "released";
      /** The worker whose claim it was. */
      readonly worker: string;
      /** `crash`: the worker died with it, as its successor found. */
      readonly fault?: ReleaseCause;
      readonly error?: string;
    }
  /** No worker takes it any more until it is revived. */
  | { readonly type: "dead-letter"; readonly claims: number; readonly error: string }
  | { readonly type: "revived"; readonly by?: string };

/** What ended a claim; a failure of the host is not a failure of the agent. */
export type ReleaseCause = "host" | "unknown" | "crash";

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
  readonly attempts: Attempts;
  readonly deadLetter: DeadLetter | undefined;
}

/** How often claims of an agent failed. */
export interface Attempts {
  /** Claims that failed or whose worker died, since the agent last finished a turn. */
  readonly failed: number;
  /** The same since it last rested, with those that got further. */
  readonly total: number;
  /** Workers that died while they ran it, since it last rested. */
  readonly crashes: number;
  /** The workers that gave it back because of an error, since it last rested. */
  readonly failedOn: readonly string[];
  /** The worker of the claim that was not given back: it works, or has died. */
  readonly open: string | undefined;
  /** Why the last one was given back. */
  readonly error: string | undefined;
}

export interface DeadLetter {
  readonly claims: number;
  readonly error: string;
}

export type AgentStatus = "unknown" | "working" | "waiting" | "dead-letter" | Ending["status"];

/** By the log alone; whether a worker has the agent right now is known to the engine. */
export function statusOf({ plan, ending, waitingFor, deadLetter }: AgentState): AgentStatus {
  if (plan === undefined) return "unknown";
  if (ending !== undefined) return ending.status;
  if (deadLetter !== undefined) return "dead-letter";
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
      case "claimed": {
        const { failed, total, open, ...others } = state.attempts;
        // Counted before the work: a claim that is followed by another one without a word has ended with its worker.
        const crashes = others.crashes + (open === undefined ? 0 : 1);
        const attempts = { ...others, failed: failed + 1, total: total + 1, crashes, open: record.worker };
        state = { ...state, ending: undefined, waitingFor: undefined, deadLetter: undefined, attempts };
        break;
      }
      case "released":
        state = { ...state, attempts: afterRelease(state.attempts, record) };
        break;
      case "dead-letter":
        state = { ...state, deadLetter: { claims: record.claims, error: record.error } };
        break;
      case "revived":
        state = { ...state, deadLetter: undefined, attempts: noAttempts };
        break;
      case "entry":
        if (isStep(record)) state = { ...state, attempts: { ...state.attempts, failed: 0 } };
        break;
      case "received":
        state = { ...state, inboxSeq: record.inbox };
        received.add(record.message.id);
        break;
      case "called":
        calls.set(seq, { seq, name: record.name, input: record.input });
        break;
      case "returned":
        calls.delete(record.call);
        state = { ...state, attempts: { ...state.attempts, failed: 0 } };
        break;
      case "interrupted":
        calls.delete(record.call);
        break;
      case "spawned":
        children.push(record.agent);
        break;
      case "parked":
        state = { ...state, waitingFor: record.waitingFor, attempts: noAttempts };
        break;
      case "ended":
        state = { ...state, ending: { ...record.ending, seq }, deadLetter: undefined, attempts: noAttempts };
        break;
    }
  }
  return { ...state, received, openCalls: [...calls.values()], children };
}

/** A claim that ended in an orderly way, or by a failure of the machine, is none of the agent's failures. */
function afterRelease(
  { failed, total, crashes, failedOn }: Attempts,
  { fault, error, worker }: Extract<AgentRecord, { readonly type: "released" }>,
): Attempts {
  const isOwn = fault === "unknown" || fault === "crash";
  return {
    failed: isOwn ? Math.max(1, failed) : Math.max(0, failed - 1),
    total: isOwn ? total : Math.max(0, total - 1),
    crashes: fault === "crash" ? crashes + 1 : crashes,
    failedOn: fault === "unknown" ? [...failedOn, worker] : failedOn,
    open: undefined,
    error,
  };
}

/** What a session writes on its way through a turn; everything else that an agent writes is a step done. */
const unfinishedEntries: ReadonlySet<unknown> = new Set(["file", "prompted", "asked", "used", "call"]);

/** Whether the agent has got further with this record. */
export function isStep(record: AgentRecord): boolean {
  if (record.type !== "entry") return record.type === "returned";
  return !isRecord(record.entry) || !unfinishedEntries.has(record.entry["type"]);
}

const noAttempts: Attempts = {
  failed: 0,
  total: 0,
  crashes: 0,
  failedOn: [],
  open: undefined,
  error: undefined,
};

const noState: Omit<AgentState, "openCalls" | "children" | "received"> = {
  lastSeq: 0,
  plan: undefined,
  needs: [],
  tree: "",
  parent: undefined,
  inboxSeq: 0,
  waitingFor: undefined,
  ending: undefined,
  attempts: noAttempts,
  deadLetter: undefined,
};

/** Undefined for a kind that is unknown to this version. */
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
  "released",
  "dead-letter",
  "revived",
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

/** Where the events of an agent are published. */
export function liveTopic(agent: string): string {
  return `live/${agent}`;
}

/** Tools and services that know this key can distinguish a repeated call from a new one. */
export function idempotencyKey(agent: string, seq: number): string {
  return `${agent}/${seq}`;
}
