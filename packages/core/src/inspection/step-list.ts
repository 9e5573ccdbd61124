import { defined } from "@retinue/base/foundation/defined.ts";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { readAssistantBlocks, readUserBlocks } from "../journal/read-assistant-blocks.ts";
import { lineKey } from "../journal/transcript-usage.ts";
import type { CallStep, Step, TurnStep } from "./inspection.ts";
import {
  bounded,
  boundedLine,
  numberField,
  readAnswer,
  recordField,
  textField,
  timeOf,
} from "./read-answer.ts";
import { type OpenCall, readCall, settleCall } from "./read-call.ts";

/** Makes steps of lines, in their order. */
export interface StepList {
  /** `before` is the time of the line before. */
  addAnswer(record: JsonRecord, before: number | undefined): void;
  /** Answers with the text that the line holds besides results. */
  addUser(record: JsonRecord): string;
  /** The result of a call while others of its answer still run; the result in the conversation counts before it. */
  addOutcome(record: JsonRecord): void;
  add(step: Step): void;
  /** Whether calls of the last answer wait for their results. */
  hasOpenCalls(): boolean;
  /** The text of the last answer that had one. */
  lastText(): string;
  /** `last` is what becomes of calls of the last answer that have no result. */
  steps(last: CallStep["outcome"]): readonly Step[];
  /** Calls of the last answer of which no outcome is known. */
  openCalls(): readonly OpenCall[];
}

const maxStepText = 400;
const maxResult = 4000;

type Entry =
  | { readonly type: "step"; readonly step: Step }
  | { readonly type: "turn"; readonly key: string }
  | { readonly type: "call"; readonly id: string };

interface OpenEntry {
  readonly call: OpenCall;
  readonly turn: string;
}

/** What the lines read so far have shown. */
interface ListState {
  readonly entries: Entry[];
  readonly turns: Map<string, TurnStep>;
  readonly open: Map<string, OpenEntry>;
  readonly settled: Map<string, CallStep>;
  /** Outcomes that were written before the conversation had them. */
  readonly early: Map<string, CallStep>;
  lastTurn: string;
  lastAnswer: { readonly turn: string; readonly text: string };
}

export function createStepList(): StepList {
  const state: ListState = {
    entries: [],
    turns: new Map(),
    open: new Map(),
    settled: new Map(),
    early: new Map(),
    lastTurn: "",
    lastAnswer: { turn: "", text: "" },
  };
  const { entries, open, early } = state;
  const lastOpen = () => [...open].filter(([, { turn }]) => turn === state.lastTurn);
  return {
    addAnswer: (record, before) => addAnswer(state, record, before),
    addUser: (record) => addUser(state, record),
    addOutcome: (record) => addOutcome(state, record),
    add: (step) => void entries.push({ type: "step", step }),
    hasOpenCalls: () => lastOpen().length > 0,
    openCalls: () => lastOpen().flatMap(([id, { call }]) => (early.has(id) ? [] : [call])),
    lastText: () => state.lastAnswer.text,
    steps(last) {
      const steps: Step[] = [];
      for (const entry of entries) {
        const step = stepOf(state, entry, last);
        if (step !== undefined) steps.push(step);
      }
      return steps;
    },
  };
}

function addAnswer(state: ListState, record: JsonRecord, before: number | undefined): void {
  const { entries, turns, open, settled } = state;
  const message = recordField(record, "message");
  if (message === undefined) return;
  const at = timeOf(record);
  const blocks = readAssistantBlocks(message.content);
  const text = blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  if (record.isApiErrorMessage === true) {
    const step = defined({ type: "error" as const, at, text: boundedLine(text, maxStepText) });
    entries.push({ type: "step", step });
    return;
  }
  const key = textField(message, "id") ?? lineKey(record);
  const known = turns.get(key);
  if (known === undefined) entries.push({ type: "turn", key });
  turns.set(key, turnOf(record, message, { known, before, text }));
  state.lastTurn = key;
  if (text !== "") {
    const before = state.lastAnswer.turn === key ? `${state.lastAnswer.text}\n` : "";
    state.lastAnswer = { turn: key, text: bounded(`${before}${text}`, maxResult) };
  }
  for (const block of blocks) {
    if (block.type !== "tool_use" || open.has(block.id) || settled.has(block.id)) continue;
    entries.push({ type: "call", id: block.id });
    open.set(block.id, { call: readCall(block, at), turn: key });
  }
}

function addUser({ open, settled, early }: ListState, record: JsonRecord): string {
  const blocks = readUserBlocks(recordField(record, "message")?.content);
  const results = blocks.filter((block) => block.type === "tool_result");
  for (const block of results) {
    const call = open.get(block.tool_use_id)?.call;
    if (call === undefined) continue;
    open.delete(block.tool_use_id);
    const line = { record, at: timeOf(record), isAlone: results.length === 1 };
    const done = settleCall(call, block, line);
    const first = early.get(block.tool_use_id)?.durationMs;
    // The line in the conversation may have been written by a later process.
    const isTimed = first === undefined || record.toolCall !== undefined;
    settled.set(block.tool_use_id, isTimed ? done : { ...done, durationMs: first });
  }
  const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  return texts.filter((text) => !text.startsWith("<system-reminder>")).join("\n");
}

function addOutcome({ open, early }: ListState, record: JsonRecord): void {
  const { id, content, isError } = record;
  const [block] = readUserBlocks([
    { type: "tool_result", tool_use_id: id, content, is_error: isError === true },
  ]);
  const call = block?.type === "tool_result" ? open.get(block.tool_use_id)?.call : undefined;
  if (call === undefined || block?.type !== "tool_result") return;
  early.set(block.tool_use_id, settleCall(call, block, { record, at: timeOf(record), isAlone: false }));
}

function stepOf(
  { turns, open, settled, early, lastTurn }: ListState,
  entry: Entry,
  last: Parameters<StepList["steps"]>[0],
): Step | undefined {
  if (entry.type === "step") return entry.step;
  if (entry.type === "turn") return turns.get(entry.key);
  const done = settled.get(entry.id) ?? early.get(entry.id);
  if (done !== undefined) return done;
  const waiting = open.get(entry.id);
  if (waiting === undefined) return undefined;
  return { ...waiting.call, outcome: waiting.turn === lastTurn ? last : "unanswered" };
}

function turnOf(
  record: JsonRecord,
  message: JsonRecord,
  {
    known,
    before,
    text,
  }: { readonly known: TurnStep | undefined; readonly before: number | undefined; readonly text: string },
): TurnStep {
  const end = timeOf(record);
  const recorded = numberField(record, "durationMs");
  const between = known?.at ?? before ?? end;
  const at = recorded === undefined || end === undefined ? between : end - recorded;
  const measured = at === undefined || end === undefined ? undefined : Math.max(0, end - at);
  return defined({
    type: "turn" as const,
    at,
    durationMs: recorded ?? measured,
    ...readAnswer(record, message),
    stopReason: textField(message, "stop_reason") ?? known?.stopReason,
    text: boundedLine([known?.text ?? "", text].join(" "), maxStepText),
  });
}
