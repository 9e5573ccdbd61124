import type { Message } from "./message.ts";
import type { RunEvent } from "./run-event.ts";

/** Adds what an event says to a conversation, so that the next run continues it. */
export function followMessages(messages: Message[], event: RunEvent): void {
  if (event.type === "user-added" || event.type === "assistant-answered") messages.push(event.message);
  if (event.type === "context-compacted") messages.splice(0, messages.length - event.kept, event.summary);
}
