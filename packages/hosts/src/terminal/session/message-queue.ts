import type { UserMessage } from "@retinue/core/conversation/message.ts";
import type { QueuedMessage, SessionEvent } from "./terminal-session.ts";

/** Messages of the person that the agent has not read yet. */
export class MessageQueue {
  readonly #report: (event: SessionEvent) => void;
  #messages: QueuedMessage[] = [];
  #count = 0;

  constructor(report: (event: SessionEvent) => void) {
    this.#report = report;
  }

  add(text: string): void {
    this.#count += 1;
    this.#messages.push({ id: `message-${this.#count}`, text });
    this.#changed();
  }

  takeBack(id: string): string | undefined {
    const found = this.#messages.find((message) => message.id === id);
    if (found === undefined) return undefined;
    this.#messages = this.#messages.filter((message) => message !== found);
    this.#changed();
    return found.text;
  }

  /** The one that begins the next turn. */
  takeFirst(): string | undefined {
    const first = this.#messages.shift();
    if (first === undefined) return undefined;
    this.#changed();
    this.#report({ type: "message-read", text: first.text });
    return first.text;
  }

  /** What the agent can read in the middle of a turn: commands begin a turn of their own, and keep their place. */
  takeReadable(): readonly UserMessage[] {
    const end = this.#messages.findIndex(({ text }) => text.startsWith("/"));
    const taken = this.#messages.splice(0, end === -1 ? this.#messages.length : end);
    if (taken.length === 0) return [];
    this.#changed();
    return taken.map(({ text }) => {
      this.#report({ type: "message-read", text });
      return { role: "user", content: [{ type: "text", text }] };
    });
  }

  #changed(): void {
    this.#report({ type: "queue-changed", messages: [...this.#messages] });
  }
}
