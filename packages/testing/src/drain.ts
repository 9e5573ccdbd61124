import type { AssistantBlock } from "@retinue/core/conversation/message.ts";
import type { Model, ModelEvent, ModelRequest } from "@retinue/core/models/model.ts";

/** Everything a model said, and the error that ended it if there was one. */
export async function drain(
  model: Model,
  asked: ModelRequest,
  signal: AbortSignal = new AbortController().signal,
  onDelta: (count: number) => void = () => undefined,
): Promise<{ readonly events: readonly ModelEvent[]; readonly error?: unknown }> {
  const events: ModelEvent[] = [];
  let deltas = 0;
  try {
    for await (const event of model.stream(asked, { signal })) {
      events.push(event);
      if (event.type !== "text-delta") continue;
      deltas += 1;
      onDelta(deltas);
    }
    return { events };
  } catch (error) {
    return { events, error };
  }
}

export function endOf(events: readonly ModelEvent[]) {
  return events.find((event) => event.type === "message-ended");
}

export function messageOf(events: readonly ModelEvent[]): readonly AssistantBlock[] {
  return endOf(events)?.message.content ?? [];
}

export function blocksByIndex(events: readonly ModelEvent[]): readonly AssistantBlock[] {
  const ended = events.filter((event) => event.type === "block-ended");
  return ended.toSorted((a, b) => a.index - b.index).map(({ block }) => block);
}

export function readDeltas(events: readonly ModelEvent[], index: number): unknown {
  const pieces = events.flatMap((event) => {
    if (event.type === "input-delta" && event.index === index) return [event.json];
    const isText = event.type === "text-delta" || event.type === "thinking-delta";
    return isText && event.index === index ? [event.text] : [];
  });
  const isInput = events.some((event) => event.type === "input-delta" && event.index === index);
  return isInput ? JSON.parse(pieces.join("")) : pieces.join("");
}

/** What the deltas of a block must add up to. */
export function said(block: AssistantBlock): unknown {
  if (block.type === "text") return block.text;
  if (block.type === "thinking") return block.thinking;
  return block.type === "tool_use" ? block.input : "";
}

/** The other side learns of a closed connection a moment later. */
export async function becomesZero(count: (() => number) | undefined): Promise<boolean> {
  for (let tries = 0; tries < 500; tries += 1) {
    if ((count?.() ?? 0) === 0) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return false;
}
