import { createParser } from "eventsource-parser";
import { lineTooLong, maxLine } from "../model-error.ts";

/** One server-sent event. */
export interface SseEvent {
  readonly event: string;
  readonly data: string;
}

interface SseDecoder {
  /** The events that these bytes complete; any cut of the bytes gives the same events. */
  push(bytes: Uint8Array): readonly SseEvent[];
}

/** Reads server-sent events from pieces of a response; a line without an end is a ModelError. An event that was not closed by an empty line is not returned. */
export function createSseDecoder(): SseDecoder {
  const decoder = new TextDecoder();
  let events: SseEvent[] = [];
  const parser = createParser({
    maxBufferSize: maxLine,
    onEvent: ({ event = "", data }) => events.push({ event, data }),
    onError(error) {
      // Unknown fields are passed over, as the format asks for.
      if (error.type === "max-buffer-size-exceeded") throw lineTooLong();
    },
  });
  return {
    push(bytes) {
      parser.feed(decoder.decode(bytes, { stream: true }));
      const completed = events;
      events = [];
      return completed;
    },
  };
}
