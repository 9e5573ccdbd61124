import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { ApprovalAnswer } from "@retinue/gate/approver.ts";
import { type Ending, type Message, toAgentRecord } from "../agent-records.ts";
import type { JsonValue, LogEntry } from "../store.ts";

/** The lines of a session in its agent's log, besides the pieces of its files. */
export type SessionEntry =
  /** A prompt was put to the session. `message` is the one of the inbox that held it; absent for the first. */
  | { readonly type: "prompted"; readonly message?: string; readonly results?: readonly string[] }
  /** Where the files of the workspace were saved. */
  | { readonly type: "saved"; readonly workspace: string }
  | { readonly type: "asked"; readonly question: Question }
  /** An answer for one call was used up. */
  | { readonly type: "used"; readonly question: string }
  /** A call is about to be made; its place in the log is its idempotency key. */
  | { readonly type: "call"; readonly id: string; readonly tool: string }
  /** The outcomes of all calls of an answer are in the transcript. */
  | { readonly type: "turn" }
  | { readonly type: "run-ended"; readonly ending: JsonValue };

/** A call that a person has to decide about. */
export interface Question {
  /** The same for the same call with the same input. */
  readonly id: string;
  readonly tool: string;
  readonly input: JsonValue;
  readonly reason: string;
  /** From the main agent to the agent that asks. */
  readonly path: readonly string[];
  /** Rules that together would have allowed the call; absent in logs of earlier versions. */
  readonly suggestedRules?: readonly string[];
}

/** What a message to a session says. */
export type SessionMessage =
  /** Sent by the store when a child has ended. */
  | {
      readonly type: "child-ended";
      readonly agent: string;
      readonly status: Ending["status"];
      readonly result: JsonValue;
    }
  | { readonly type: "prompt"; readonly prompt: string }
  | { readonly type: "answer"; readonly question: string; readonly answer: ApprovalAnswer };

/** The progress of a session, from its agent's log alone. */
export interface SessionProgress {
  /** The agent's own lines, pieces of files among them. */
  readonly entries: readonly JsonValue[];
  readonly workspace: string | undefined;
  readonly hasStarted: boolean;
  /** There is something to resume; a worker may die before the first line. */
  readonly hasTranscript: boolean;
  /** A prompt was put to the session and its run has not ended. */
  readonly isRunning: boolean;
  readonly lastEnding: JsonValue | undefined;
  /** Messages that were taken from the inbox and not put to the session yet. */
  readonly waiting: readonly Message[];
  /** Ends of children that were not put to the session yet. */
  readonly results: readonly Message[];
  /** Children of which no end has arrived. */
  readonly children: readonly string[];
  /** Answers that can still be used, by question. */
  readonly answers: ReadonlyMap<string, ApprovalAnswer>;
  readonly openQuestion: Question | undefined;
}

export function readSessionProgress(history: readonly LogEntry[], type: "session" | "plan"): SessionProgress {
  const entries: JsonValue[] = [];
  const waiting = new Map<string, Message>();
  const answers = new Map<string, ApprovalAnswer>();
  const results = new Map<string, Message>();
  const children = new Set<string>();
  let [workspace, lastEnding, openQuestion]: [string?, JsonValue?, Question?] = [];
  let [hasStarted, isRunning] = [false, false];
  for (const { record: value } of history) {
    const record = toAgentRecord(value);
    if (record?.type === "received") {
      const message = readSessionMessage(record.message.body);
      if (message?.type === "answer") answers.set(message.question, message.answer);
      else if (message?.type === "child-ended") {
        children.delete(message.agent);
        results.set(record.message.id, record.message);
      } else if (message !== undefined) waiting.set(record.message.id, record.message);
    }
    if (record?.type === "spawned") children.add(record.agent);
    if (record?.type !== "entry") continue;
    entries.push(record.entry);
    const entry = readSessionEntry(record.entry);
    switch (entry?.type) {
      case "prompted":
        [hasStarted, isRunning] = [true, true];
        if (entry.message !== undefined) waiting.delete(entry.message);
        for (const id of entry.results ?? []) results.delete(id);
        break;
      case "saved":
        workspace = entry.workspace;
        break;
      case "asked":
        openQuestion = entry.question;
        break;
      case "used":
        if (isForOneCall(answers.get(entry.question))) answers.delete(entry.question);
        if (openQuestion?.id === entry.question) openQuestion = undefined;
        break;
      case "run-ended":
        [isRunning, lastEnding, openQuestion] = [false, entry.ending, undefined];
        break;
    }
  }
  const left = [...waiting.values()];
  const hasTranscript = entries.some((entry) => isTranscriptPiece(entry, type));
  return {
    entries,
    workspace,
    hasStarted,
    hasTranscript,
    isRunning,
    lastEnding,
    waiting: left,
    results: [...results.values()],
    children: [...children],
    answers,
    openQuestion,
  };
}

/** The transcript of a main agent is directly in the folder, those of its children below it. */
function isTranscriptPiece(entry: JsonValue, type: "session" | "plan"): boolean {
  const form = type === "session" ? /^[^/]+\.jsonl$/ : /\.jsonl$/;
  return isRecord(entry) && entry["type"] === "file" && form.test(String(entry["path"]));
}

/** An answer for an agent or a session holds again when the same is asked after a hand-over. */
export function isForOneCall(answer: ApprovalAnswer | undefined): boolean {
  return answer === undefined || answer.type !== "allow" || answer.for === "call";
}

/** Anything that is not an answer is a prompt; so a plain text can be sent. */
export function readSessionMessage(body: JsonValue): SessionMessage | undefined {
  if (typeof body === "string") return { type: "prompt", prompt: body };
  if (!isRecord(body)) return undefined;
  const { type, prompt, question, answer, agent, status, result } = body;
  if (type === "child-ended" && typeof agent === "string" && isStatus(status))
    return { type, agent, status, result: (result ?? null) as JsonValue };
  if (type === "prompt" && typeof prompt === "string") return { type, prompt };
  if (type !== "answer" || typeof question !== "string" || !isRecord(answer)) return undefined;
  const read = readAnswer(answer);
  return read === undefined ? undefined : { type, question, answer: read };
}

function isStatus(value: unknown): value is Ending["status"] {
  return value === "completed" || value === "failed" || value === "stopped";
}

/** Only what is known to allow is taken for an allowance. */
function readAnswer(answer: Readonly<Record<string, unknown>>): ApprovalAnswer | undefined {
  const { type, for: scope, message, rules } = answer;
  const withMessage = typeof message === "string" ? { message } : {};
  if (type === "deny" || type === "deny-and-stop") return { type, ...withMessage };
  if (type !== "allow") return undefined;
  if (scope === "call") return { type, for: scope };
  if (scope !== "agent" && scope !== "session") return undefined;
  const texts = Array.isArray(rules) ? { rules: rules.filter((rule) => typeof rule === "string") } : {};
  return { type, for: scope, ...texts };
}

export function readSessionEntry(entry: JsonValue): SessionEntry | undefined {
  if (!isRecord(entry)) return undefined;
  // Written by this module's users; kinds of newer versions are passed over.
  return entry as unknown as SessionEntry;
}
