import { type Message, type ToolResultBlock, toolCallsOf } from "../conversation/message.ts";

/** So much of the last result stands for work that nobody wrote up. */
const maxResult = 2000;

/** What an agent leaves that ended before it wrote a word: its calls, and the end of the last result. */
export function describeUnfinished(messages: readonly Message[]): string {
  const calls = messages.flatMap((message) => (message.role === "assistant" ? toolCallsOf(message) : []));
  if (calls.length === 0) return "";
  const counts = new Map<string, number>();
  for (const { name } of calls) counts.set(name, (counts.get(name) ?? 0) + 1);
  const made = [...counts].map(([name, count]) => (count === 1 ? name : `${name} ${count} times`)).join(", ");
  const last = lastResult(messages);
  const result = last === "" ? "" : `\n\nThe last result it saw:\n${last}`;
  return `(It ended before it wrote a result. It had called ${made}.)${result}`;
}

function lastResult(messages: readonly Message[]): string {
  const blocks = messages.flatMap((message): readonly ToolResultBlock[] =>
    message.role === "user" && typeof message.content !== "string"
      ? message.content.filter((block): block is ToolResultBlock => block.type === "tool_result")
      : [],
  );
  const { content = "" } = blocks.at(-1) ?? {};
  const text =
    typeof content === "string"
      ? content
      : content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  return text.length <= maxResult ? text : `${text.slice(0, maxResult)} …`;
}
