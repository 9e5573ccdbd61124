import { textOf, type UserMessage } from "../conversation/message.ts";

/** What a prompt that is exactly `/compact` or `/compact …` asks of the summary; undefined for any other prompt. */
export function readCompactCommand(
  content: UserMessage["content"],
): { readonly instructions: string | undefined } | undefined {
  if (typeof content !== "string" && content.some(({ type }) => type !== "text")) return undefined;
  const match = /^\s*\/compact(\s.*)?$/s.exec(textOf({ role: "user", content }));
  if (match === null) return undefined;
  const instructions = match[1]?.trim() ?? "";
  return { instructions: instructions === "" ? undefined : instructions };
}
