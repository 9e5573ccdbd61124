import type { Message } from "../../conversation/message.ts";

const atEdge = /^\s*\+(\d+(?:\.\d+)?)([km])(?=\s|$)|(?:^|\s)\+(\d+(?:\.\d+)?)([km])[.!]?\s*$/i;
const factors: Readonly<Record<string, number>> = { k: 1_000, m: 1_000_000 };

/** The output tokens that a person gives for a turn: `+500k` or `+2m` at the beginning or end of the last prompt. */
export function tokenTarget(messages: readonly Message[]): number | undefined {
  const prompt = messages.flatMap(({ role, content }) => {
    if (role !== "user") return [];
    const blocks = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
    if (blocks.some(({ type }) => type === "tool_result")) return [];
    // What the runtime adds is in tags.
    return blocks.flatMap((block) =>
      block.type === "text" && !block.text.startsWith("<") ? [block.text] : [],
    );
  });
  const [, first, firstUnit, last = first, lastUnit = firstUnit] = atEdge.exec(prompt.at(-1) ?? "") ?? [];
  if (last === undefined || lastUnit === undefined) return undefined;
  return Math.round(Number(last) * (factors[lastUnit.toLowerCase()] ?? 1));
}
