import { randomUUID } from "node:crypto";
import type { UserMessage } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { isRetinueError, RetinueError } from "../foundation/retinue-error.ts";
import type { PromptOutcome, WireError, WireEvent } from "../protocol/agent-event.ts";
import type { Content, PromptInput, QueuedPrompt } from "../protocol/op.ts";
import type { Session } from "../runtime/session.ts";
import { blocksOf, createPromptQueue } from "./prompt-queue.ts";

/** A turn that is about to begin, for the host. */
export interface Turn {
  readonly prompt: QueuedPrompt;
  /** A report is what children and commands in the background have to say. */
  readonly origin: "prompt" | "report";
  readonly signal: AbortSignal;
}

/** What a turn begins with; with an ending, no model is asked. */
export type PreparedTurn =
  | { readonly content: Content; readonly verbatim?: boolean | undefined }
  | { readonly ending: RunEnding };

export interface TurnDriverOptions {
  readonly session: () => Session | undefined;
  readonly emit: (event: WireEvent) => void;
  /** When prompts are read in the middle of a turn; absent: never. */
  readonly reads: "model-calls" | "tool-calls" | undefined;
  /** Changes, answers or refuses a prompt before its turn. */
  readonly prepare?: ((turn: Turn) => Promise<PreparedTurn> | PreparedTurn) | undefined;
  /** Called with each event of the main agent before the next one is asked for. */
  readonly tap?: ((event: RunEvent) => Promise<void> | void) | undefined;
  /** Ends of commands in the background that the agent has not read. */
  readonly commandReports: () => readonly UserMessage[];
  /** What else the agent reads between model calls. */
  readonly messages?: (() => readonly UserMessage[]) | undefined;
  /** What begins a turn where no prompt waits, besides reports of children; undefined: nothing. */
  readonly reports?: (() => Content | undefined) | undefined;
}

/** Works on the prompts of one session, one turn after the other. */
export interface TurnDriver {
  readonly isBusy: boolean;
  readonly lastEvent: RunEvent | undefined;
  add(prompt: PromptInput): QueuedPrompt;
  /** Takes prompts back before their turn; each is reported as ended. */
  withdraw(id?: string): readonly QueuedPrompt[];
  prompts(): readonly QueuedPrompt[];
  interrupt(reason: RetinueError): void;
  /** Is read with the next prompt. */
  addAside(text: string): void;
  /** Begins the next turn, where something waits and nothing runs. */
  continue(): void;
  /** What the running turn reads between two model calls. */
  takeMessages(): readonly UserMessage[];
  /** Whether reports of children may be read now. */
  takesReports(): boolean;
  hold(): Disposable;
  idle(): Promise<void>;
  /** Begins no turn any more. */
  close(reason: RetinueError): void;
}

export function createTurnDriver(options: TurnDriverOptions): TurnDriver {
  const { emit, session, prepare, tap } = options;
  const queue = createPromptQueue(() => emit({ type: "prompts-changed", prompts: queue.list() }));
  const asides: string[] = [];
  let controller: AbortController | undefined;
  let lastEvent: RunEvent | undefined;
  let ids: string[] = [];
  let holds = 0;
  let isClosed = false;
  const waiting: (() => void)[] = [];

  const isAfter = (origin: string): boolean =>
    lastEvent?.type === "user-added" && lastEvent.origin === origin;
  const isReading = (): boolean =>
    options.reads === "model-calls" || (options.reads === "tool-calls" && isAfter("tool-results"));

  function nextTurn(): Pick<Turn, "prompt" | "origin"> | undefined {
    const prompt = queue.next();
    if (prompt !== undefined) return { prompt, origin: "prompt" };
    // Without reading between calls, the run itself waits for what children report.
    if (options.reads === undefined) return undefined;
    const notices = [...(session()?.takeNotices() ?? []), ...options.commandReports()];
    const content =
      notices.length > 0 ? notices.flatMap((each) => blocksOf(each.content)) : options.reports?.();
    if (content === undefined || content.length === 0) return undefined;
    return { prompt: { id: randomUUID(), content, verbatim: true }, origin: "report" };
  }

  async function work({ prompt, origin, signal }: Turn): Promise<RunEnding> {
    const own = asides.splice(0);
    const content =
      own.length === 0
        ? prompt.content
        : [...own.map((text) => ({ type: "text", text }) as const), ...blocksOf(prompt.content)];
    const turn = { prompt: { ...prompt, content }, origin, signal };
    const prepared = (await prepare?.(turn)) ?? { content, verbatim: prompt.verbatim };
    if ("ending" in prepared) return prepared.ending;
    signal.throwIfAborted();
    const opened = session();
    if (opened === undefined) throw new RetinueError("session-closed", "The session is not open.");
    let ending: RunEnding | undefined;
    const { verbatim = false } = prepared;
    for await (const event of opened.stream(prepared.content, signal, { verbatim })) {
      lastEvent = event;
      if (event.type === "run-ended") ending = event.ending;
      emit(event);
      const tapped = tap?.(event);
      if (tapped !== undefined) await tapped;
    }
    if (ending === undefined) throw new RetinueError("run-without-end", "The run ended without saying how.");
    return ending;
  }

  async function run(begun: Pick<Turn, "prompt" | "origin">, turn: AbortController): Promise<void> {
    const { signal } = turn;
    const { id, content, note } = begun.prompt;
    ids = [id];
    emit({ type: "status-changed", status: { isBusy: true } });
    emit({ type: "prompt-started", id, content, origin: begun.origin, note });
    let outcome: PromptOutcome;
    try {
      const ending = await work({ ...begun, signal });
      outcome = { outcome: "ended", ending, isInterrupted: signal.aborted };
    } catch (error) {
      outcome = { outcome: "failed", error: wireError(error), isInterrupted: signal.aborted };
    }
    lastEvent = undefined;
    for (const ended of ids) emit({ type: "prompt-ended", id: ended, ...outcome });
    controller = undefined;
    for (const resolve of waiting.splice(0)) resolve();
    proceed();
    if (controller === undefined) emit({ type: "status-changed", status: { isBusy: false } });
  }

  function proceed(): void {
    if (controller !== undefined || isClosed || holds > 0 || session() === undefined) return;
    const next = nextTurn();
    if (next === undefined) return;
    controller = new AbortController();
    void run(next, controller);
  }

  return {
    get isBusy() {
      return controller !== undefined;
    },
    get lastEvent() {
      return lastEvent;
    },
    add(prompt) {
      if (isClosed)
        throw new RetinueError("session-closed", "The session is closed, so it takes no more prompts.");
      const queued = queue.add(prompt);
      proceed();
      return queued;
    },
    withdraw(id) {
      const taken = queue.withdraw(id);
      for (const prompt of taken) emit({ type: "prompt-ended", id: prompt.id, outcome: "withdrawn" });
      return taken;
    },
    prompts: queue.list,
    interrupt: (reason) => controller?.abort(reason),
    addAside: (text) => void asides.push(text),
    continue: proceed,
    takeMessages() {
      const own = [...options.commandReports(), ...(options.messages?.() ?? [])];
      const prompts = isReading() ? queue.takeReadable() : [];
      for (const prompt of prompts) {
        ids.push(prompt.id);
        emit({ type: "prompt-read", prompt });
      }
      return [
        ...own,
        ...prompts.map(({ content }): UserMessage => ({ role: "user", content: blocksOf(content) })),
      ];
    },
    takesReports: () => lastEvent === undefined || isAfter("prompt") || isAfter("tool-results"),
    hold() {
      holds += 1;
      let isHeld = true;
      return {
        [Symbol.dispose]() {
          if (!isHeld) return;
          isHeld = false;
          holds -= 1;
          proceed();
        },
      };
    },
    async idle() {
      while (controller !== undefined) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    close(reason) {
      isClosed = true;
      controller?.abort(reason);
    },
  };
}

export function wireError(error: unknown): WireError {
  const message = error instanceof Error ? error.message : String(error);
  const code = isRetinueError(error) ? error.code : "error";
  const advice = isRetinueError(error) ? error.advice : undefined;
  return { code, message, advice, cause: error };
}
