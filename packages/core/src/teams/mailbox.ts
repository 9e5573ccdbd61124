import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { UserMessage } from "../conversation/message.ts";
import { type Mail, mailMessage } from "./mail.ts";
import type { TeamStore } from "./team-store.ts";

/** The mail of one agent: each piece enters its conversation once, and counts as read when the journal has it. */
export interface Mailbox extends AsyncDisposable {
  /** What is new, as one message. It is not taken again unless it is given back. */
  take(): UserMessage | undefined;
  /** The conversation was written down with this mail in it. */
  recorded(keys: readonly string[]): void;
  /** What was taken and did not get into the conversation can be taken again. */
  giveBack(): void;
  /** Marks mail as read only behind this, so that others see that the agent works before they see its mail as read. */
  markAfter(work: Promise<void>): void;
  /** Resolves when all mail that was recorded is marked as read. */
  settled(): Promise<void>;
  /** Lets those that wait look again. */
  look(): void;
  /** Resolves when there is new mail, or when `isAwake` says so after a change; `timeout` after so many milliseconds. */
  wait(options: WaitOptions): Promise<"mail" | "timeout" | "awake">;
}

export interface WaitOptions {
  readonly signal: AbortSignal;
  /** 0 waits for ever. */
  readonly limitMs: number;
  readonly isAwake?: () => boolean;
}

export interface MailboxOptions {
  readonly store: TeamStore;
  readonly name: string;
  /** Keys that the conversation has from before. */
  readonly delivered: ReadonlySet<string>;
  /** Sees each piece of mail once, before the model does; false keeps it from the model. */
  readonly onMail?: (mail: Mail) => boolean;
  /** Resolves when what was recorded would survive a power cut. */
  readonly commit?: (() => Promise<void>) | undefined;
  readonly report?: ((text: string) => void) | undefined;
}

export function openMailbox(options: MailboxOptions): Mailbox {
  const { store, name, onMail, report } = options;
  const delivered = new Set(options.delivered);
  const taken = new Set<string>();
  const listeners = new Set<() => void>();
  const marker = createMarker(options);
  const look = (): void => {
    for (const wakeup of listeners) wakeup();
  };
  const stopWatching = store.watch(look);

  /** Mail that only a crash kept from being marked as read is marked now. */
  function unread(): readonly Mail[] {
    const { mail, invalid } = store.inbox(name);
    const open = mail.filter(({ read }) => !read);
    const late = open.filter(({ key }) => delivered.has(key)).map(({ key }) => key);
    if (late.length > 0 || invalid.length > 0) marker.mark(late);
    return open.filter(({ key }) => !delivered.has(key) && !taken.has(key));
  }

  function hasMail(): boolean {
    try {
      return unread().length > 0;
    } catch (error) {
      report?.(error instanceof Error ? error.message : String(error));
      return false;
    }
  }

  return {
    take() {
      const fresh = hasMail() ? unread() : [];
      for (const { key } of fresh) taken.add(key);
      const shown = fresh.filter((mail) => onMail?.(mail) !== false);
      const silent = fresh.filter((mail) => !shown.includes(mail)).map(({ key }) => key);
      if (silent.length > 0) {
        for (const key of silent) delivered.add(key);
        marker.mark(silent);
      }
      return shown.length === 0 ? undefined : mailMessage(shown);
    },
    recorded(keys) {
      for (const key of keys) {
        delivered.add(key);
        taken.delete(key);
      }
      marker.mark(keys);
    },
    giveBack: () => taken.clear(),
    markAfter: marker.after,
    settled: marker.settled,
    look,
    wait: (wait) => waitForMail(wait, { hasMail, listeners }),
    async [Symbol.asyncDispose]() {
      stopWatching();
      await marker.settled();
    },
  };
}

type Waited = "mail" | "timeout" | "awake";

async function waitForMail(
  { signal, limitMs, isAwake = () => false }: WaitOptions,
  { hasMail, listeners }: { readonly hasMail: () => boolean; readonly listeners: Set<() => void> },
): Promise<Waited> {
  const end = Promise.withResolvers<Waited>();
  const seek = (): void => {
    if (hasMail()) end.resolve("mail");
    else if (isAwake()) end.resolve("awake");
  };
  const stop = (): void => end.reject(signal.reason);
  const timer = limitMs === 0 ? undefined : setTimeout(() => end.resolve("timeout"), limitMs);
  listeners.add(seek);
  signal.addEventListener("abort", stop, { once: true });
  try {
    if (signal.aborted) stop();
    seek();
    return await end.promise;
  } finally {
    clearTimeout(timer);
    listeners.delete(seek);
    signal.removeEventListener("abort", stop);
  }
}

/** Between the record of mail and its mark as read, so that files do not delay the request that answers it. */
const markDelayMs = 30;

/** Marks mail as read behind the work, one step at a time. */
function createMarker({ store, name, commit, report }: MailboxOptions) {
  let waiting = new Set<string>();
  let isWanted = false;
  let work: Promise<void> | undefined;
  let before: Promise<void> = Promise.resolve();
  let hurry: (() => void) | undefined;

  async function run(): Promise<void> {
    while (isWanted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, markDelayMs);
        hurry = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      const keys = waiting;
      waiting = new Set();
      isWanted = false;
      await before;
      await commit?.();
      const aside = await store.markRead(name, keys);
      if (aside !== undefined)
        report?.(
          `${aside.count} entries in the inbox of ${name} are not messages; they are kept in ${aside.file}.`,
        );
    }
  }

  return {
    mark(keys: readonly string[]): void {
      for (const key of keys) waiting.add(key);
      isWanted = true;
      work ??= run()
        .catch((error: unknown) => {
          // The journal has them, so they are not delivered again; they are marked when the agent is opened next time.
          report?.(error instanceof Error ? error.message : String(error));
        })
        .finally(() => {
          work = undefined;
        });
    },
    after(change: Promise<void>): void {
      before = change.catch((error: unknown) =>
        report?.(error instanceof Error ? error.message : String(error)),
      );
    },
    async settled(): Promise<void> {
      while (work !== undefined) {
        hurry?.();
        await work;
      }
      await before;
    },
  };
}

/** The keys of all mail that a transcript has delivered. */
export function deliveredMail(records: readonly JsonRecord[]): ReadonlySet<string> {
  return new Set(
    records.flatMap((record) => {
      const keys: unknown = isRecord(record) ? record["retinueMail"] : undefined;
      return Array.isArray(keys) ? keys.filter((key) => typeof key === "string") : [];
    }),
  );
}
