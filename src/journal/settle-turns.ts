import {
  type AssistantBlock,
  type Message,
  type ToolResultBlock,
  type ToolUseBlock,
  toolCallsOf,
  type UserBlock,
  type UserMessage,
} from "../conversation/message.ts";

/** A message in the making; results are kept apart until it is known which call they answer. */
export type Turn =
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

export interface SettledConversation {
  readonly messages: readonly Message[];
  /** Results of calls of the last answer that are in no line of the conversation yet. */
  readonly unrecorded: readonly ToolResultBlock[];
  /** The calls of the last answer of which no one knows what became of them. */
  readonly inFlight: readonly ToolUseBlock[];
  /** The first line of each answer among the messages. */
  readonly answers: readonly string[];
}

/** Where the results of calls come from, the surest first. */
export interface ResultSources {
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
export function settleTurns(turns: readonly Turn[], results: ResultSources): SettledConversation {
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
  const begun = new Set(blocks.flatMap((block) => serverCall(block) ?? []));
  const ended = new Set(blocks.flatMap((block) => serverResult(block) ?? []));
  const kept = blocks.filter((block) => {
    if (block.type === "tool_use") {
      if (called.has(block.id)) return false;
      called.add(block.id);
      return true;
    }
    const [call, result] = [serverCall(block), serverResult(block)];
    return (call === undefined || ended.has(call)) && (result === undefined || begun.has(result));
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
