import type { ModelEvent } from "../../../conversation/model-event.ts";
import type { RunEvent } from "../../../conversation/run-event.ts";
import { wireUsage } from "../../../journal/transcript-line.ts";

/** A model's event in the words of the Anthropic stream, which is what watchers of partial messages read. */
export function streamEventOf(event: ModelEvent): Readonly<Record<string, unknown>> | undefined {
  switch (event.type) {
    case "message-started":
      return {
        type: "message_start",
        message: {
          id: event.id,
          type: "message",
          role: "assistant",
          model: event.model,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          ...(event.usage === undefined ? {} : { usage: wireUsage(event.usage) }),
        },
      };
    case "block-started":
      return { type: "content_block_start", index: event.index, content_block: event.block };
    case "text-delta":
      return delta(event.index, { type: "text_delta", text: event.text });
    case "thinking-delta":
      return delta(event.index, { type: "thinking_delta", thinking: event.text });
    case "input-delta":
      return delta(event.index, { type: "input_json_delta", partial_json: event.json });
    case "block-ended":
      return { type: "content_block_stop", index: event.index };
    default:
      return undefined;
  }
}

function delta(index: number, content: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return { type: "content_block_delta", index, delta: content };
}

/** The two events that end an answer's stream; the loop knows them only as the whole answer. */
export function endingEvents({
  stopReason,
  usage,
}: Pick<Extract<RunEvent, { type: "assistant-answered" }>, "stopReason" | "usage">): readonly Readonly<
  Record<string, unknown>
>[] {
  return [
    {
      type: "message_delta",
      delta: { stop_reason: stopReason, stop_sequence: null },
      usage: wireUsage(usage),
    },
    { type: "message_stop" },
  ];
}
