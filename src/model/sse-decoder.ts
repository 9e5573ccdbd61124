import { lineTooLong, maxLine } from "./guard-answer.ts";

/** One server-sent event. */
export interface SseEvent {
  readonly event: string;
  readonly data: string;
}

export interface SseDecoder {
  /** The events that these bytes complete; any cut of the bytes gives the same events. */
  push(bytes: Uint8Array): readonly SseEvent[];
}

/** Reads server-sent events from pieces of a response; a line without an end is a ModelFault. An event that was not closed by an empty line is not given out. */
export function createSseDecoder(): SseDecoder {
  const decoder = new TextDecoder();
  let rest = "";
  let endedOnReturn = false;
  let event = "";
  let data: string | undefined;

  function takeLine(line: string, into: SseEvent[]): void {
    if (line === "") {
      if (data !== undefined) into.push({ event, data });
      event = "";
      data = undefined;
      return;
    }
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    if (field !== "event" && field !== "data") return;
    const start = line.charCodeAt(colon + 1) === space ? colon + 2 : colon + 1;
    const value = colon === -1 ? "" : line.slice(start);
    if (field === "event") event = value;
    else data = data === undefined ? value : `${data}\n${value}`;
  }

  return {
    push(bytes) {
      const events: SseEvent[] = [];
      let text = decoder.decode(bytes, { stream: true });
      if (text === "") return events;
      if (endedOnReturn && text.startsWith("\n")) text = text.slice(1);
      endedOnReturn = text.endsWith("\r");
      const lines = text.split(text.includes("\r") ? anyBreak : "\n");
      lines[0] = rest + lines[0];
      rest = lines.pop() ?? "";
      if (rest.length > maxLine || (data?.length ?? 0) > maxLine) throw lineTooLong();
      for (const line of lines) takeLine(line, events);
      return events;
    },
  };
}

const space = 0x20;
const anyBreak = /\r\n|\n|\r/;
