import type { Message, UserBlock, UserMessage } from "../conversation/message.ts";

export interface CutOptions {
  /** About so many of the newest tokens stay word for word; the last turn does in any case. */
  readonly keepTokens: number;
  readonly tokensOf: (message: Message) => number;
}

/**
 * The place from which a conversation stays word for word. What stays begins with an answer, so that no call is parted
 * from its result and the roles alternate behind a summary. 0 when there is no such place.
 */
export function chooseCut(messages: readonly Message[], { keepTokens, tokensOf }: CutOptions): number {
  let chosen = 0;
  let tokens = 0;
  for (let at = messages.length - 1; at > 0; at -= 1) {
    const message = messages[at];
    if (message === undefined) break;
    tokens += tokensOf(message);
    if (chosen > 0 && tokens > keepTokens) break;
    if (beginsTurn(messages, at)) chosen = at;
  }
  return chosen;
}

/** An answer that the provider paused continues in the next one, and its own tools' results may appear there. */
function beginsTurn(messages: readonly Message[], at: number): boolean {
  return messages[at]?.role === "assistant" && messages[at - 1]?.role === "user";
}

/** How the block begins that takes the place of an older conversation. */
export const summaryStart = "<conversation-summary>";
export const summaryEnd = "</conversation-summary>";

export interface Opening {
  /** The prompt that the conversation began with, word for word. */
  readonly task: readonly UserBlock[];
  /** The summary of an earlier compaction. */
  readonly summary?: string;
}

/** What the first message of a conversation holds; a summary never is first in it, so a prompt cannot pose as one. */
export function readOpening(messages: readonly Message[]): Opening {
  const [first] = messages;
  if (first?.role !== "user") return { task: [] };
  const blocks = blocksOf(first);
  const at = blocks.findIndex((block, index) => index > 0 && isSummary(block));
  const found = blocks[at];
  if (found?.type !== "text") return { task: blocks };
  return { task: blocks.slice(0, at), summary: found.text };
}

/** Whether the old part holds anything that a summary could take the place of. */
export function holdsMoreThanTask(messages: readonly Message[], cut: number): boolean {
  return cut > 1 || readOpening(messages).summary !== undefined;
}

export function blocksOf({ content }: UserMessage): readonly UserBlock[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function isSummary(block: UserBlock): boolean {
  return block.type === "text" && block.text.startsWith(summaryStart);
}

/** The texts of the newest messages that no model has answered, without the results of tools. */
export function unansweredTexts(messages: readonly Message[]): readonly string[] {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  if (last === -1) return [];
  return messages.slice(last + 1).flatMap((message) => (message.role === "user" ? ownTexts(message) : []));
}

/** What a user's message says besides the results of tools. */
export function ownTexts(message: UserMessage): readonly string[] {
  return blocksOf(message).flatMap((block) =>
    block.type === "text" && !isSummary(block) ? [block.text] : [],
  );
}
