import { randomUUID } from "node:crypto";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { UserMessage } from "@retinue/core/conversation/message.ts";
import type { SdkConnection } from "./sdk-connection.ts";

/** A prompt of the host. */
export interface QueuedPrompt {
  readonly content: UserMessage["content"];
  /** The id the host gave it. */
  readonly uuid?: string;
  /** The line as it came, for replaying it. */
  readonly line: JsonRecord;
  /** True: it calls no command and attaches no file, whatever it says. */
  readonly verbatim: boolean;
  /** False: it is only read together with the next prompt. */
  readonly asks: boolean;
}

/** Reads a user message of the host; a text says what is wrong with it. */
export function readPromptMessage(line: JsonRecord): QueuedPrompt | string {
  const { message, uuid, shouldQuery } = line;
  const content = isRecord(message) ? message["content"] : undefined;
  if (
    typeof content !== "string" &&
    !(Array.isArray(content) && content.length > 0 && content.every(isBlock))
  )
    return "A user message has no content: it must be a string or a list of text, image and document blocks.";
  return {
    // What blocks hold beyond their type is the provider's to judge.
    content: content as UserMessage["content"],
    ...(typeof uuid === "string" ? { uuid } : {}),
    line,
    verbatim: line["client_composed"] === true,
    asks: shouldQuery !== false,
  };
}

function isBlock(value: unknown): boolean {
  return isRecord(value) && ["text", "image", "document", "tool_result"].includes(String(value["type"]));
}

/** Notifies the host of what has become of a prompt that it gave an id. */
export function announcePrompt(
  { queued, host, channel }: Pick<SdkConnection, "queued" | "host" | "channel">,
  id: string,
  state: "queued" | "started" | "completed" | "cancelled",
): void {
  const sessionId = host.current()?.session.plan.sessionId;
  if (sessionId === undefined) return;
  const send = (stage: string): void =>
    channel.send({
      type: "command_lifecycle",
      command_uuid: id,
      state: stage,
      session_id: sessionId,
      uuid: randomUUID(),
    });
  if (state !== "queued" && !queued.has(id)) send("queued");
  queued.add(id);
  send(state);
}
