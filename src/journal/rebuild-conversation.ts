import { type Repeats, repetitions } from "../conversation/call-intent.ts";
import type { ToolResultBlock, ToolUseBlock, UserBlock } from "../conversation/message.ts";
import { isRecord, type JsonRecord } from "../foundation/json-record.ts";
import { interruptedResult } from "./interrupted-result.ts";
import { readAssistantBlocks, readUserBlocks } from "./read-assistant-blocks.ts";
import { type ChainLine, type ChainOptions, selectChain } from "./select-chain.ts";
import { type SettledConversation, settleTurns, type Turn } from "./settle-turns.ts";

export interface RebuiltConversation extends Omit<SettledConversation, "answers" | "inFlight"> {
  /** The calls of the last answer of which no one knows what became of them, and what repeating them would do. */
  readonly inFlight: readonly { readonly call: ToolUseBlock; readonly repeats: Repeats }[];
  /** The line that the next one hangs on; absent when the file holds no conversation. */
  readonly leaf?: string;
  /** The lines that the conversation was made of, and the first line of each of its answers. */
  readonly sources: ConversationSources;
}

export interface ConversationSources {
  readonly lines: readonly string[];
  readonly answers: readonly string[];
}

export interface RebuildOptions extends ChainOptions {
  /** Results of calls that are known from elsewhere than the transcript. */
  readonly known?: ReadonlyMap<string, ToolResultBlock>;
}

/** Makes the conversation again as the model is to see it, from the lines of a transcript. Total: any lines will do. */
export function rebuildConversation(
  records: readonly JsonRecord[],
  options: RebuildOptions = {},
): RebuiltConversation {
  const { lines, tree, leaf } = selectChain(records, options);
  const recorded = new Map<string, ToolResultBlock>();
  for (const line of [...lines, ...tree]) {
    if (line.type !== "user") continue;
    for (const block of readUserBlocks(contentOf(line)))
      if (block.type === "tool_result" && !recorded.has(block.tool_use_id))
        recorded.set(block.tool_use_id, block);
  }
  const { repeats, outcomes } = readCallRecords(records);
  const { answers, inFlight, ...settled } = settleTurns(arrangeTurns(lines), {
    recorded,
    known: new Map([...(options.known ?? []), ...outcomes]),
    interrupted: (id) => interruptedResult(id, repeats.get(id)),
  });
  const sources = { lines: lines.filter(wasSent).map(({ uuid }) => uuid), answers };
  return {
    ...settled,
    inFlight: inFlight.map((call) => ({ call, repeats: repeats.get(call.id) ?? "unsafe" })),
    sources,
    ...(leaf === undefined ? {} : { leaf }),
  };
}

/** Lines of one answer become one turn, even where results were written between them. */
function arrangeTurns(lines: readonly ChainLine[]): readonly Turn[] {
  const turns: Turn[] = [];
  for (const line of lines.filter(wasSent)) {
    const content = contentOf(line);
    if (line.type === "user") {
      addToUser(turns, content);
      continue;
    }
    const blocks = readAssistantBlocks(content);
    const at = line.messageId === undefined ? -1 : turns.findLastIndex(({ role }) => role === "assistant");
    const open = turns[at];
    if (open?.role === "assistant" && open.id === line.messageId)
      turns[at] = { ...open, blocks: [...open.blocks, ...blocks] };
    else
      turns.push({
        role: "assistant",
        blocks,
        line: line.uuid,
        ...(line.messageId === undefined ? {} : { id: line.messageId }),
      });
  }
  return joinPausedAnswers(turns);
}

function addToUser(turns: Turn[], content: unknown): void {
  const blocks = readUserBlocks(content).filter(({ type }) => type !== "tool_result");
  const last = turns.at(-1);
  if (last?.role !== "user") {
    const isText = typeof content === "string" && blocks.length > 0;
    turns.push({ role: "user", blocks, ...(isText ? { text: content } : {}) });
  } else if (blocks.length > 0) {
    turns[turns.length - 1] = joined(last.blocks, blocks, content);
  }
}

function joined(before: readonly UserBlock[], added: readonly UserBlock[], content: unknown): Turn {
  if (before.length === 0 && typeof content === "string")
    return { role: "user", blocks: added, text: content };
  return { role: "user", blocks: [...before, ...added] };
}

/** An answer that the provider paused continues in the next one, so a server's call and its result meet again. */
function joinPausedAnswers(turns: readonly Turn[]): readonly Turn[] {
  return turns.reduce<Turn[]>((done, turn) => {
    const last = done.at(-1);
    const isPaused = last?.role === "assistant" && !last.blocks.some(({ type }) => type === "tool_use");
    if (isPaused && turn.role === "assistant")
      done[done.length - 1] = { ...turn, line: last.line, blocks: [...last.blocks, ...turn.blocks] };
    else done.push(turn);
    return done;
  }, []);
}

/** Errors shown as answers never reached a model; the summary of a compaction did, whatever viewers do with it. */
function wasSent({ type, record }: ChainLine): boolean {
  if (type === "other" || record.isApiErrorMessage === true) return false;
  return record.isVisibleInTranscriptOnly !== true || record.isCompactSummary === true;
}

function contentOf({ record }: ChainLine): unknown {
  return isRecord(record.message) ? record.message.content : undefined;
}

/** What was written down about calls beside the conversation, by the calls' ids. */
interface CallRecords {
  readonly repeats: ReadonlyMap<string, Repeats>;
  /** Results of calls that ended while others of the same answer still ran. */
  readonly outcomes: ReadonlyMap<string, ToolResultBlock>;
}

/** Total: what cannot be read is left out, so that such a call counts as unsafe and without a result. */
function readCallRecords(records: readonly JsonRecord[]): CallRecords {
  const repeats = new Map<string, Repeats>();
  const outcomes = new Map<string, ToolResultBlock>();
  for (const record of records) {
    if (record.type === "retinue-intents" && Array.isArray(record.calls))
      for (const [id, kind] of record.calls.flatMap(readIntent)) repeats.set(id, kind);
    if (record.type !== "retinue-outcome") continue;
    const outcome = readOutcome(record);
    if (outcome !== undefined) outcomes.set(outcome.tool_use_id, outcome);
  }
  return { repeats, outcomes };
}

function readIntent(call: unknown): readonly (readonly [string, Repeats])[] {
  if (!isRecord(call) || typeof call.id !== "string") return [];
  const kind = repetitions.find((known) => known === call.repeats);
  return kind === undefined ? [] : [[call.id, kind]];
}

/** Read as the same result in a conversation would be. */
function readOutcome({ id, isError, content }: JsonRecord): ToolResultBlock | undefined {
  const block = {
    type: "tool_result",
    tool_use_id: id,
    content,
    ...(isError === true ? { is_error: true } : {}),
  };
  const [read] = readUserBlocks([block]);
  return read?.type === "tool_result" ? read : undefined;
}
