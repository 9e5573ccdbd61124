import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { type Repeats, repetitions } from "../conversation/interrupted-agent.ts";
import {
  type AssistantBlock,
  type AssistantMessage,
  type Message,
  type ToolResultBlock,
  type ToolUseBlock,
  toolCallsOf,
  type UserBlock,
  type UserMessage,
} from "../conversation/message.ts";
import { undoesPrompt } from "../conversation/without-undone.ts";
import { readAssistantBlocks, readUserBlocks } from "./read-assistant-blocks.ts";
import { type ChainLine, type ChainOptions, selectChain } from "./select-chain.ts";

export interface RebuiltConversation extends Omit<SettledConversation, "answers" | "inFlight"> {
  /** The calls of the last answer whose outcome is unknown, and what repeating them would do. */
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
  const chain = selectChain(records, options);
  const { tree, leaf } = chain;
  const undone = findUndone(tree);
  const lines = undone.size === 0 ? chain.lines : chain.lines.filter(({ uuid }) => !undone.has(uuid));
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

/** The prompts that no model could take: their runs say so, and no answer is between. */
function findUndone(tree: readonly ChainLine[]): ReadonlySet<string> {
  const undone = new Set<string>();
  let open: ChainLine[] = [];
  for (const line of tree) {
    if (line.type === "user") open.push(line);
    else if (line.type === "assistant" && wasSent(line)) open = [];
    const ending = line.record.runEnding;
    if (!isRecord(ending)) continue;
    for (const one of open)
      if (undoesPrompt(ending, { role: "user", content: readUserBlocks(contentOf(one)) }))
        undone.add(one.uuid);
  }
  return undone;
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
        id: line.messageId,
      });
  }
  // An answer that the provider paused continues in the next one, so a server's call and its result meet again.
  return turns.reduce<Turn[]>((done, turn) => {
    const last = done.at(-1);
    const isPaused = last?.role === "assistant" && !last.blocks.some(({ type }) => type === "tool_use");
    if (isPaused && turn.role === "assistant")
      done[done.length - 1] = { ...turn, line: last.line, blocks: [...last.blocks, ...turn.blocks] };
    else done.push(turn);
    return done;
  }, []);
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
    // Read as the same result in a conversation would be.
    const { isError, content } = record;
    const block = {
      type: "tool_result",
      tool_use_id: record.id,
      content,
      ...(isError === true ? { is_error: true } : {}),
    };
    const [read] = readUserBlocks([block]);
    const outcome = read?.type === "tool_result" ? read : undefined;
    if (outcome !== undefined) outcomes.set(outcome.tool_use_id, outcome);
  }
  return { repeats, outcomes };
}

function readIntent(call: unknown): readonly (readonly [string, Repeats])[] {
  if (!isRecord(call) || typeof call.id !== "string") return [];
  const kind = repetitions.find((known) => known === call.repeats);
  return kind === undefined ? [] : [[call.id, kind]];
}

/** The answer to a call whose own result was never written down; what is not known counts as unsafe. */
export function interruptedResult(callId: string, repeats: Repeats = "unsafe"): ToolResultBlock {
  return {
    type: "tool_result",
    tool_use_id: callId,
    content: `Interrupted: the session ended before a result of this call was recorded. ${advice[repeats]}`,
    is_error: true,
  };
}

const advice: Readonly<Record<Repeats, string>> = {
  pure: "It only reads; call it again if you need it.",
  idempotent: "It may have had its effect or not, and repeating it does no harm.",
  unsafe:
    "The call may have run fully, partly or not at all, and it was not run again; a command that still ran was ended. Check what is there before you repeat it.",
};

/** Answers for those calls at the end of a conversation that have none. */
export function interruptedResults(messages: readonly Message[]): readonly ToolResultBlock[] {
  const at = messages.findLastIndex(({ role }) => role === "assistant");
  const last = messages[at];
  if (last?.role !== "assistant") return [];
  const answered = new Set(messages.slice(at + 1).flatMap(answeredCalls));
  return callIdsOf(last)
    .filter((id) => !answered.has(id))
    .map((id) => interruptedResult(id));
}

function callIdsOf(message: AssistantMessage): readonly string[] {
  return toolCallsOf(message).map(({ id }) => id);
}

function answeredCalls({ role, content }: Message): readonly string[] {
  if (role !== "user" || typeof content === "string") return [];
  return content.flatMap((block) => (block.type === "tool_result" ? [block.tool_use_id] : []));
}

/** A message in the making; results are kept apart until it is known which call they answer. */
type Turn =
  | {
      readonly role: "user";
      readonly blocks: readonly UserBlock[];
      /** Set when the message is one plain text. */
      readonly text?: string;
    }
  | {
      readonly role: "assistant";
      readonly id?: string;
      readonly blocks: readonly AssistantBlock[];
      /** The id of its first line. */
      readonly line: string;
    };

interface SettledConversation {
  readonly messages: readonly Message[];
  /** Results of calls of the last answer that are in no line of the conversation yet. */
  readonly unrecorded: readonly ToolResultBlock[];
  /** The calls of the last answer whose outcome is unknown. */
  readonly inFlight: readonly ToolUseBlock[];
  /** The first line of each answer among the messages. */
  readonly answers: readonly string[];
}

/** Where the results of calls come from, the surest first. */
interface ResultSources {
  /** By lines of the conversation. */
  readonly recorded: ReadonlyMap<string, ToolResultBlock>;
  /** Known from elsewhere. */
  readonly known: ReadonlyMap<string, ToolResultBlock>;
  /** What a call without any result is answered with. */
  readonly interrupted: (callId: string) => ToolResultBlock;
}

/**
 * Makes a conversation that a provider accepts of whatever a file holds: it begins with a user, the roles alternate,
 * every call is answered in the next message and nothing else is.
 */
function settleTurns(turns: readonly Turn[], results: ResultSources): SettledConversation {
  const first = turns.findIndex(({ role, blocks }) => role === "user" && blocks.length > 0);
  const called = new Set<string>();
  const messages: Message[] = [];
  const answers: string[] = [];
  const resultOf = (id: string): ToolResultBlock =>
    results.recorded.get(id) ?? results.known.get(id) ?? results.interrupted(id);
  let open: readonly ToolUseBlock[] = [];
  for (const turn of first === -1 ? [] : turns.slice(first)) {
    if (turn.role === "user") {
      addMessage(messages, userMessage(turn));
      continue;
    }
    const content = cleanAnswer(turn.blocks, called);
    if (content.length === 0) continue;
    if (messages.at(-1)?.role !== "assistant") answers.push(turn.line);
    addMessage(messages, { role: "assistant", content });
    const calls = toolCallsOf({ role: "assistant", content });
    addMessage(messages, { role: "user", content: calls.map(({ id }) => resultOf(id)) });
    open = calls.filter(({ id }) => !results.recorded.has(id));
  }
  return {
    messages,
    unrecorded: open.map(({ id }) => resultOf(id)),
    inFlight: open.filter(({ id }) => !results.known.has(id)),
    answers,
  };
}

/** The conversation with one more message of the user, joined to the last where that is the user's too. */
export function appendUserMessage(messages: readonly Message[], message: UserMessage): readonly Message[] {
  const joined = [...messages];
  addMessage(joined, message);
  return joined;
}

function addMessage(messages: Message[], message: Message): void {
  if (message.content.length === 0) return;
  const last = messages.at(-1);
  if (last?.role === "user" && message.role === "user") {
    messages[messages.length - 1] = {
      role: "user",
      content: resultsFirst([...blocksOf(last), ...blocksOf(message)]),
    };
  } else if (last?.role === "assistant" && message.role === "assistant") {
    messages[messages.length - 1] = { role: "assistant", content: [...last.content, ...message.content] };
  } else messages.push(message);
}

/** A provider refuses a message in which anything is before a result. */
function resultsFirst(blocks: readonly UserBlock[]): readonly UserBlock[] {
  const isResult = ({ type }: UserBlock) => type === "tool_result";
  return [...blocks.filter(isResult), ...blocks.filter((block) => !isResult(block))];
}

function blocksOf({ content }: UserMessage): readonly UserBlock[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function userMessage({ blocks, text }: Extract<Turn, { role: "user" }>): UserMessage {
  return { role: "user", content: text ?? blocks };
}

/** Leaves out what makes a provider refuse the answer: calls named twice, server tools cut in half, thinking at the end. */
function cleanAnswer(blocks: readonly AssistantBlock[], called: Set<string>): readonly AssistantBlock[] {
  const started = new Set(blocks.flatMap((block) => serverCall(block) ?? []));
  const ended = new Set(blocks.flatMap((block) => serverResult(block) ?? []));
  const kept = blocks.filter((block) => {
    if (block.type === "tool_use") {
      if (called.has(block.id)) return false;
      called.add(block.id);
      return true;
    }
    const [call, result] = [serverCall(block), serverResult(block)];
    return (call === undefined || ended.has(call)) && (result === undefined || started.has(result));
  });
  const end = kept.findLastIndex(({ type }) => type !== "thinking" && type !== "redacted_thinking");
  return kept.slice(0, end + 1);
}

/** Providers name their own calls `…_tool_use` and the results of these `…_tool_result`. */
function serverCall(block: AssistantBlock): string | undefined {
  return block.type.endsWith("_tool_use") ? textField(block, "id") : undefined;
}

function serverResult(block: AssistantBlock): string | undefined {
  return block.type.endsWith("_tool_result") ? textField(block, "tool_use_id") : undefined;
}

function textField(block: AssistantBlock, name: string): string | undefined {
  const value: unknown = Reflect.get(block, name);
  return typeof value === "string" ? value : undefined;
}
