import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { ToolResultBlock, ToolUseBlock } from "../conversation/message.ts";
import { readAssistantBlocks, readUserBlocks } from "../journal/read-assistant-blocks.ts";
import type { CallStep, Step, TurnStep } from "./inspection.ts";
import {
  bounded,
  numberField,
  readAnswer,
  readSystemLine,
  recordField,
  textField,
  timeOf,
} from "./read-answer.ts";
import { readCall, settleCall } from "./read-call.ts";

/** One message or action in an agent's conversation, with its text in full up to a generous limit. */
export type ConversationEntry =
  | {
      readonly type: "prompt";
      readonly at?: number;
      /** The line's id, by which a conversation can be forked. */
      readonly id?: string;
      readonly text: string;
      /** Written by the runtime, not by a person or a parent. */
      readonly isMeta: boolean;
    }
  | {
      readonly type: "text" | "thinking";
      readonly at?: number;
      /** The line's id, by which a conversation can be forked. */
      readonly id?: string;
      readonly text: string;
    }
  /** Begins an answer of the model, with what it took; what it says and calls follows. */
  | Omit<TurnStep, "text" | "stopReason">
  | (CallStep & {
      /** The arguments as indented JSON. */
      readonly input: string;
      readonly edits?: readonly FileEdit[];
      /** What it changed in the file, with lines around it; absent where it changed nothing, or more than is kept. */
      readonly hunks?: readonly PatchHunk[];
      readonly result?: string;
      /** How many lines the whole result has, where only its beginning is here. */
      readonly resultLines?: number;
    })
  | { readonly type: "note"; readonly step: Step };

/** A change of a file as transcripts have it. */
export interface PatchHunk {
  readonly oldStart: number;
  readonly newStart: number;
  /** Each line with ` `, `-` or `+` before it. */
  readonly lines: readonly string[];
}

export interface FileEdit {
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

/** Folds the lines of one agent into its conversation. Total: any lines will do. */
export interface ConversationFold {
  add(record: JsonRecord): void;
  /** How many entries there are, those that were forgotten too. */
  readonly count: number;
  /** The entry at a position; undefined where it was forgotten. */
  entry(position: number): ConversationEntry | undefined;
  /** Lets go of the entries before a position, but not of calls that still run. */
  forget(before: number): void;
  /** The newest plan, as it was journaled. */
  readonly plan: JsonRecord | undefined;
  /** The positions of entries that were added or have changed since the last call. */
  takeChanged(): readonly number[];
}

const maxText = 100_000;

interface FoldState {
  readonly entries: Map<number, ConversationEntry>;
  count: number;
  readonly positions: Map<string, number>;
  readonly seen: Set<string>;
  changed: Set<number>;
  /** The answer that lines were added for last. */
  turn?: { readonly key: string; readonly position: number };
  plan?: JsonRecord;
}

/** `isMain`: lines of children that other programs keep in the same file are left out. */
export function createConversationFold({ isMain }: { readonly isMain: boolean }): ConversationFold {
  const state: FoldState = {
    entries: new Map(),
    count: 0,
    positions: new Map(),
    seen: new Set(),
    changed: new Set(),
  };
  return {
    get count() {
      return state.count;
    },
    entry: (position) => state.entries.get(position),
    forget(before) {
      for (const [position, entry] of state.entries) {
        if (position >= before) break;
        if (entry.type === "call" && entry.outcome === "running") continue;
        state.entries.delete(position);
        state.changed.delete(position);
        if (entry.type === "call") state.positions.delete(entry.callId);
      }
    },
    get plan() {
      return state.plan;
    },
    add(record) {
      if (isMain && record.isSidechain === true) return;
      const uuid = textField(record, "uuid");
      if (uuid !== undefined && state.seen.has(uuid)) return;
      if (uuid !== undefined) state.seen.add(uuid);
      if (record.type === "assistant") addAnswer(state, record, uuid);
      else if (record.type === "user") addUser(state, record, uuid);
      else if (record.type === "retinue-plan" && isRecord(record.plan)) state.plan = record.plan;
      else if (record.type === "retinue-outcome") {
        const { id, content, isError } = record;
        const block = { type: "tool_result", tool_use_id: id, content, is_error: isError === true };
        for (const read of readUserBlocks([block]))
          if (read.type === "tool_result") settle(state, read, { record, isAlone: false });
      } else if (record.type === "system") {
        const step = readSystemLine(record);
        if (step !== undefined) push(state, { type: "note", step });
      }
    },
    takeChanged() {
      const taken = [...state.changed].sort((a, b) => a - b);
      state.changed = new Set();
      return taken;
    },
  };
}

function push(state: FoldState, entry: ConversationEntry): number {
  const position = state.count;
  state.count += 1;
  state.entries.set(position, entry);
  state.changed.add(position);
  return position;
}

function addAnswer(state: FoldState, record: JsonRecord, id: string | undefined): void {
  const at = timeOf(record);
  const message = isRecord(record.message) ? record.message : {};
  if (record.isApiErrorMessage !== true) addTurn(state, record, message);
  for (const block of readAssistantBlocks(message.content)) {
    if (block.type === "text") push(state, defined({ type: "text" as const, at, id, text: cut(block.text) }));
    else if (block.type === "thinking")
      push(state, defined({ type: "thinking" as const, at, id, text: cut(block.thinking) }));
    else if (block.type === "tool_use" && !state.positions.has(block.id))
      state.positions.set(block.id, push(state, openEntry(block, at)));
  }
}

/** An answer may have several lines; the last one has what the whole took. */
function addTurn(state: FoldState, record: JsonRecord, message: JsonRecord): void {
  const key = textField(message, "id") ?? textField(record, "uuid") ?? "";
  const entry = defined({
    type: "turn" as const,
    at: timeOf(record),
    durationMs: numberField(record, "durationMs"),
    ...readAnswer(record, message),
  });
  if (state.turn?.key !== key) state.turn = { key, position: push(state, entry) };
  else if (state.entries.has(state.turn.position)) {
    state.entries.set(state.turn.position, entry);
    state.changed.add(state.turn.position);
  }
}

function openEntry(block: ToolUseBlock, at: number | undefined): ConversationEntry {
  return defined({
    ...readCall(block, at),
    outcome: "running" as const,
    input: cut(JSON.stringify(block.input, undefined, 2)),
    edits: editsOf(block),
  });
}

function addUser(state: FoldState, record: JsonRecord, uuid: string | undefined): void {
  const message = isRecord(record.message) ? record.message : {};
  const blocks = readUserBlocks(message.content);
  const results = blocks.filter((block) => block.type === "tool_result");
  for (const block of results) settle(state, block, { record, isAlone: results.length === 1 });
  const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const text = texts.filter((part) => !part.startsWith("<system-reminder>")).join("\n");
  if (text === "") return;
  const isMeta = record.isMeta === true || record.isCompactSummary === true;
  push(state, defined({ type: "prompt" as const, at: timeOf(record), id: uuid, text: cut(text), isMeta }));
}

function settle(
  state: FoldState,
  block: ToolResultBlock,
  { record, isAlone }: { readonly record: JsonRecord; readonly isAlone: boolean },
): void {
  const position = state.positions.get(block.tool_use_id);
  const entry = position === undefined ? undefined : state.entries.get(position);
  if (position === undefined || entry?.type !== "call") return;
  const { outcome: _outcome, input, edits, ...call } = entry;
  const settled = settleCall(call, block, { record, at: timeOf(record), isAlone });
  const result = cut(textOf(block));
  const hunks = isAlone ? hunksOf(recordField(record, "toolUseResult")?.["structuredPatch"]) : undefined;
  state.entries.set(position, defined({ ...settled, input, edits, hunks, result }));
  state.changed.add(position);
}

const maxPatchLines = 2000;

function hunksOf(patch: unknown): readonly PatchHunk[] | undefined {
  if (!Array.isArray(patch) || patch.length === 0) return undefined;
  let count = 0;
  const hunks: PatchHunk[] = [];
  for (const hunk of patch) {
    if (!isRecord(hunk) || !Array.isArray(hunk.lines)) return undefined;
    const [oldStart, newStart] = [numberField(hunk, "oldStart"), numberField(hunk, "newStart")];
    if (oldStart === undefined || newStart === undefined) return undefined;
    count += hunk.lines.length;
    if (count > maxPatchLines) return undefined;
    hunks.push({ oldStart, newStart, lines: hunk.lines.map((line) => cut(String(line))) });
  }
  return hunks;
}

function textOf({ content }: ToolResultBlock): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
}

/** What a call would change in a file, for tools that say it in their arguments. */
function editsOf({ name, input }: ToolUseBlock): readonly FileEdit[] | undefined {
  if (!isRecord(input)) return undefined;
  const file = textField(input, "file_path");
  if (file === undefined) return undefined;
  if (name === "Write") return [{ file, before: "", after: cut(textField(input, "content") ?? "") }];
  const parts: readonly unknown[] = Array.isArray(input.edits) ? input.edits : [input];
  const edits = parts.flatMap((part) => {
    const [before, after] = isRecord(part)
      ? [textField(part, "old_string"), textField(part, "new_string")]
      : [];
    return before === undefined || after === undefined
      ? []
      : [{ file, before: cut(before), after: cut(after) }];
  });
  return edits.length === 0 ? undefined : edits;
}

function cut(text: string): string {
  return bounded(text, maxText);
}
