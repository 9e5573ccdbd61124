import { randomUUID } from "node:crypto";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { UserMessage } from "@retinue/core/conversation/message.ts";
import type { SdkConnection } from "./sdk-connection.ts";

/** A prompt of the host that waits for its turn. */
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

/** What waits to be worked on, and a bell for the one that waits for more. */
export interface PromptQueue {
  add(prompt: QueuedPrompt): void;
  /** The next one; a prompt that asks for an answer comes with the notes before it in front. */
  next(): QueuedPrompt | undefined;
  /** Prompts that may be read in the middle of a turn; commands wait for their own. */
  takeForTurn(): readonly QueuedPrompt[];
  /** Removes one that has not been begun. */
  cancel(uuid: string): boolean;
  /** Removes all and says which. */
  clear(): readonly string[];
  ids(): readonly string[];
  /** Whether anything waits. */
  hasPrompt(): boolean;
  ring(): void;
  /** Resolves at the next addition or ring. */
  wait(): Promise<void>;
}

export function createPromptQueue(): PromptQueue {
  let waiting: QueuedPrompt[] = [];
  const notes: QueuedPrompt[] = [];
  let bell = Promise.withResolvers<void>();
  const ring = (): void => {
    bell.resolve();
    bell = Promise.withResolvers();
  };
  const ids = (): readonly string[] => waiting.flatMap(({ uuid }) => uuid ?? []);
  return {
    ring,
    wait: () => bell.promise,
    ids,
    hasPrompt: () => waiting.length > 0,
    add(prompt) {
      waiting.push(prompt);
      ring();
    },
    next() {
      const [found, ...rest] = waiting;
      if (found === undefined) return undefined;
      waiting = rest;
      if (!found.asks) {
        notes.push(found);
        return found;
      }
      const before = notes.splice(0);
      if (before.length === 0) return found;
      return { ...found, content: [...before, found].flatMap(({ content }) => blocksOf(content)) };
    },
    takeForTurn() {
      const at = waiting.findIndex(({ content, verbatim }) => !verbatim && isCommand(content));
      const taken = at === -1 ? waiting : waiting.slice(0, at);
      waiting = at === -1 ? [] : waiting.slice(at);
      return taken;
    },
    cancel(uuid) {
      const before = waiting.length;
      waiting = waiting.filter((prompt) => prompt.uuid !== uuid);
      return waiting.length < before;
    },
    clear() {
      const cleared = ids();
      waiting = [];
      return cleared;
    },
  };
}

function isCommand(content: UserMessage["content"]): boolean {
  const [first] = blocksOf(content);
  return first?.type === "text" && first.text.trimStart().startsWith("/");
}

export function blocksOf(content: UserMessage["content"]): Exclude<UserMessage["content"], string> {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** Reads a user message of the host; a text says what is wrong with it. */
export function readPromptMessage(line: JsonRecord): QueuedPrompt | string {
  const { message, uuid, shouldQuery } = line;
  const content = isRecord(message) ? message["content"] : undefined;
  if (
    typeof content !== "string" &&
    !(Array.isArray(content) && content.length > 0 && content.every(isBlock))
  )
    return "A user message has no content: it must be a text or a list of text, image and document blocks.";
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
