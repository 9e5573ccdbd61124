import type { UserMessage } from "../conversation/message.ts";
import type { SpawnRequest } from "../planning/agent-request.ts";
import { hasEnded } from "../protocol/agent-state.ts";
import type { FoundTask } from "./find-tasks.ts";
import type { SpawnOutcome } from "./spawn-outcome.ts";
import type { TaskManager } from "./task-manager.ts";

/** What a message needs to know of an agent that it may be for. */
interface Recipient {
  readonly id: string;
  readonly agentType: string;
  readonly description: string;
  readonly name?: string;
  /** Its last run was in the background. */
  readonly background: boolean;
  /** `elsewhere`: another process runs it. */
  readonly state: "running" | "ended" | "elsewhere";
}

export type SendOutcome =
  /** It runs and reads the message between its turns. */
  | { readonly type: "queued"; readonly recipient: Recipient }
  /** It had ended and was resumed with the message. */
  | { readonly type: "resumed"; readonly recipient: Recipient; readonly outcome: SpawnOutcome }
  | { readonly type: "refused"; readonly reason: string };

interface MessengerOptions {
  readonly tasks: TaskManager;
  /** The children of the session as recorded in their files, also those of earlier processes. */
  readonly find: () => Promise<readonly FoundTask[]>;
  /** Starts an ended child again, as a call of the Agent tool with `resume` would. */
  readonly resume: (
    request: SpawnRequest,
    options: { readonly signal: AbortSignal },
  ) => Promise<SpawnOutcome>;
  /** Called when a message that was taken by a running child could not reach it any more. */
  readonly onLost?: (recipient: Recipient, reason: string) => void;
}

export interface Messenger {
  /** By id, or by the name it was given when it was started. */
  send(
    to: string,
    text: string,
    options: { readonly signal: AbortSignal; readonly callId?: string },
  ): Promise<SendOutcome>;
}

/** Brings messages to the child agents of a session: running ones read them, ended ones are resumed with them. */
export function createMessenger({ tasks, find, resume, onLost }: MessengerOptions): Messenger {
  const requestFor = ({ id, agentType, description }: Recipient, prompt: string): SpawnRequest => ({
    agentType,
    description,
    prompt,
    resume: id,
    origin: "model",
  });

  /** A child may end after it took a message and before it read it; then it is resumed with it. */
  async function resumeUnread(recipient: Recipient): Promise<void> {
    await tasks.ended(recipient.id);
    const text = tasks.takeUnread(recipient.id).map(textIn).join("\n\n");
    if (text === "") return;
    const request = { ...requestFor(recipient, text), background: true };
    const outcome = await resume(request, { signal: new AbortController().signal });
    if (outcome.type === "refused") onLost?.(recipient, outcome.reason);
  }

  return {
    async send(to, text, { signal, callId }) {
      const known = await recipientsOf(tasks, find);
      const found = choose(to, known);
      if (found.type === "refused") return found;
      const { recipient } = found;
      if (recipient.state === "elsewhere")
        return refused(
          `${nameOf(recipient)} is run by another process, which cannot receive messages from here.`,
        );
      const message: UserMessage = { role: "user", content: [{ type: "text", text }] };
      if (recipient.state === "running" && tasks.send(recipient.id, message)) {
        resumeUnread(recipient).catch((error: unknown) => onLost?.(recipient, String(error)));
        return { type: "queued", recipient };
      }
      const outcome = await resume(
        {
          ...requestFor(recipient, text),
          ...(recipient.background ? { background: true } : {}),
          callId,
        },
        { signal },
      );
      return outcome.type === "refused" ? refused(outcome.reason) : { type: "resumed", recipient, outcome };
    },
  };
}

/** Those in memory first: what files have about them may be older. */
async function recipientsOf(
  tasks: TaskManager,
  find: MessengerOptions["find"],
): Promise<readonly Recipient[]> {
  const inMemory = tasks.list().map((state): Recipient => {
    const { id, agentType, description, name, background } = state;
    return {
      id,
      agentType,
      description,
      background,
      state: hasEnded(state) ? "ended" : "running",
      name,
    };
  });
  const ids = new Set(inMemory.map(({ id }) => id));
  const onDisk = (await find()).filter(({ id }) => !ids.has(id));
  return [...inMemory, ...onDisk.map(recipientOf)];
}

function recipientOf({ id, agentType, description, name, background, state }: FoundTask): Recipient {
  return {
    id,
    agentType,
    description,
    background,
    state: state === "running" ? "elsewhere" : "ended",
    name,
  };
}

type Choice =
  | { readonly type: "found"; readonly recipient: Recipient }
  | Extract<SendOutcome, { type: "refused" }>;

/** An id is exact. A name that several had means the running one; where that does not decide it, none is guessed. */
function choose(to: string, known: readonly Recipient[]): Choice {
  const byId = known.find(({ id }) => id === to);
  if (byId !== undefined) return { type: "found", recipient: byId };
  const named = known.filter(({ name }) => name === to);
  const running = named.filter(({ state }) => state === "running");
  const [only, ...others] = running.length > 0 ? running : named;
  if (only === undefined) return refused(unknownText(to, known));
  if (others.length === 0) return { type: "found", recipient: only };
  const ids = [only, ...others].map(({ id }) => id).join(", ");
  return refused(
    `Several agents have the name ${JSON.stringify(to)}: ${ids}. Write to one of them by its id.`,
  );
}

const maxListed = 40;

function unknownText(to: string, known: readonly Recipient[]): string {
  const start = `There is no agent ${JSON.stringify(to)} in this session.`;
  if (known.length === 0) return `${start} None was started yet.`;
  const lines = known.slice(-maxListed).map((recipient) => {
    const { id, name, agentType, description, state } = recipient;
    const alias = name === undefined ? "" : ` ${JSON.stringify(name)}`;
    return `- ${id}${alias} (${agentType}, ${state === "ended" ? "ended" : "running"}): ${description}`;
  });
  return [`${start} These are known:`, ...lines].join("\n");
}

function nameOf({ id, name }: Recipient): string {
  return name === undefined ? `The agent ${id}` : `The agent ${JSON.stringify(name)} (${id})`;
}

function refused(reason: string): Extract<SendOutcome, { type: "refused" }> {
  return { type: "refused", reason };
}

function textIn({ content }: UserMessage): string {
  if (typeof content === "string") return content;
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

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
  let wakeup = Promise.withResolvers<void>();

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
      wakeup.resolve();
      wakeup = Promise.withResolvers();
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
        if (!signal.aborted) await Promise.race([wakeup.promise, end.promise]);
      } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", release);
      }
    },
  };
}
