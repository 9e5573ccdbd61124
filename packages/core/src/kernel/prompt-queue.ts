import { randomUUID } from "node:crypto";
import type { Content, PromptInput, QueuedPrompt } from "../protocol/op.ts";

/** Prompts of a session that no turn has started with. */
export interface PromptQueue {
  add(prompt: PromptInput): QueuedPrompt;
  /** The prompt that starts the next turn; prompts that asked nothing and were passed before are put in front of its content. */
  next(): QueuedPrompt | undefined;
  /** Those that can be read in the middle of a turn: commands begin a turn of their own, and keep their place. */
  takeReadable(): readonly QueuedPrompt[];
  /** Takes back the one with this id, or all. */
  withdraw(id?: string): readonly QueuedPrompt[];
  list(): readonly QueuedPrompt[];
}

export function createPromptQueue(changed: () => void): PromptQueue {
  let waiting: QueuedPrompt[] = [];
  const passed: QueuedPrompt[] = [];
  return {
    list: () => waiting,
    add({ id = randomUUID(), ...prompt }) {
      const queued = { id, ...prompt };
      waiting = [...waiting, queued];
      changed();
      return queued;
    },
    next() {
      const [found, ...rest] = waiting;
      if (found === undefined) return undefined;
      waiting = rest;
      changed();
      if (found.asks === false) {
        passed.push(found);
        return found;
      }
      const before = passed.splice(0);
      if (before.length === 0) return found;
      return { ...found, content: [...before, found].flatMap(({ content }) => blocksOf(content)) };
    },
    takeReadable() {
      const at = waiting.findIndex(({ content, verbatim }) => verbatim !== true && isCommand(content));
      const taken = at === -1 ? waiting : waiting.slice(0, at);
      if (taken.length === 0) return [];
      waiting = waiting.slice(taken.length);
      changed();
      return taken;
    },
    withdraw(id) {
      const taken = id === undefined ? waiting : waiting.filter((prompt) => prompt.id === id);
      if (taken.length === 0) return [];
      waiting = waiting.filter((prompt) => !taken.includes(prompt));
      changed();
      return taken;
    },
  };
}

function isCommand(content: Content): boolean {
  const [first] = blocksOf(content);
  return first?.type === "text" && first.text.trimStart().startsWith("/");
}

export function blocksOf(content: Content): Exclude<Content, string> {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
