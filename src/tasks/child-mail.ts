import type { UserMessage } from "../conversation/message.ts";

/** What children have reported to their parent and it has not read yet. */
export interface ChildMail {
  put(message: UserMessage): void;
  isEmpty(): boolean;
  takeAll(): readonly UserMessage[];
  takeOne(): UserMessage | undefined;
  /** Resolves with the next piece of mail, with the signal, or after the time; 0 means without limit. */
  wait(signal: AbortSignal, limitMs: number): Promise<void>;
}

/** More than a parent could read at the same time; what is older can be asked for by id. */
const maxKept = 200;

/** With room for none, as where no parent ever reads, it keeps nothing. */
export function createChildMail(most: number = maxKept): ChildMail {
  const messages: UserMessage[] = [];
  let dropped = 0;
  let bell = Promise.withResolvers<void>();

  function takeDropped(): readonly UserMessage[] {
    if (dropped === 0) return [];
    const text = `<task-notification>\n<summary>${dropped} older notices were dropped; TaskOutput shows how an agent ended.</summary>\n</task-notification>`;
    dropped = 0;
    return [{ role: "user", content: [{ type: "text", text }] }];
  }

  return {
    put(message) {
      messages.push(message);
      if (messages.length > most) {
        messages.shift();
        if (most > 0) dropped += 1;
      }
      bell.resolve();
      bell = Promise.withResolvers();
    },
    isEmpty: () => messages.length === 0,
    takeAll: () => [...takeDropped(), ...messages.splice(0)],
    takeOne: () => takeDropped()[0] ?? messages.shift(),
    async wait(signal, limitMs) {
      const end = Promise.withResolvers<void>();
      const release = (): void => end.resolve();
      const timer = limitMs === 0 ? undefined : setTimeout(release, limitMs);
      signal.addEventListener("abort", release, { once: true });
      try {
        if (!signal.aborted) await Promise.race([bell.promise, end.promise]);
      } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", release);
      }
    },
  };
}
