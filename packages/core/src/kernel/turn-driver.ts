import { randomUUID } from "node:crypto";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { UserMessage } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import type { PromptOutcome, WireError, WireEvent } from "../protocol/agent-event.ts";
import type { Content, PromptInput, QueuedPrompt } from "../protocol/op.ts";
import { blocksOf, createPromptQueue, type PromptQueue } from "./prompt-queue.ts";
import type { Session } from "./session.ts";

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
export class TurnDriver {
  readonly #options: TurnDriverOptions;
  readonly #queue: PromptQueue;
  readonly #asides: string[] = [];
  readonly #waiting: (() => void)[] = [];
  #turn: AbortController | undefined;
  #lastEvent: RunEvent | undefined;
  /** The prompts of the running turn. */
  #ids: string[] = [];
  #holds = 0;
  #isClosed = false;

  constructor(options: TurnDriverOptions) {
    this.#options = options;
    this.#queue = createPromptQueue(() =>
      options.emit({ type: "prompts-changed", prompts: this.#queue.list() }),
    );
  }

  get isBusy(): boolean {
    return this.#turn !== undefined;
  }

  prompts(): readonly QueuedPrompt[] {
    return this.#queue.list();
  }

  add(prompt: PromptInput): QueuedPrompt {
    if (this.#isClosed)
      throw new RetinueError("session-closed", "The session is closed, so it does not accept prompts.");
    const queued = this.#queue.add(prompt);
    this.continue();
    return queued;
  }

  /** Takes prompts back before their turn; each is reported as ended. */
  withdraw(id?: string): readonly QueuedPrompt[] {
    const taken = this.#queue.withdraw(id);
    for (const prompt of taken)
      this.#options.emit({ type: "prompt-ended", id: prompt.id, outcome: "withdrawn" });
    return taken;
  }

  interrupt(reason: RetinueError): void {
    this.#turn?.abort(reason);
  }

  /** Is read with the next prompt. */
  addAside(text: string): void {
    this.#asides.push(text);
  }

  /** No turn begins until it is disposed. */
  hold(): Disposable {
    let isHeld = true;
    this.#holds += 1;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#holds -= 1;
        this.continue();
      },
    };
  }

  /** Resolves when no turn runs. */
  async idle(): Promise<void> {
    while (this.#turn !== undefined) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Begins no turn any more. */
  close(reason: RetinueError): void {
    this.#isClosed = true;
    this.#turn?.abort(reason);
  }

  /** What the running turn reads between two model calls. */
  takeMessages(): readonly UserMessage[] {
    const { reads, commandReports, messages, emit } = this.#options;
    const own = [...commandReports(), ...(messages?.() ?? [])];
    const isReading = reads === "model-calls" || (reads === "tool-calls" && this.#isAfter("tool-results"));
    const prompts = isReading ? this.#queue.takeReadable() : [];
    for (const prompt of prompts) {
      this.#ids.push(prompt.id);
      emit({ type: "prompt-read", prompt });
    }
    return [...own, ...prompts.map(({ content }): UserMessage => ({ role: "user", content }))];
  }

  /** Whether reports of children may be read now: before the first model call, and after results of tools. */
  takesReports(): boolean {
    return this.#lastEvent === undefined || this.#isAfter("prompt") || this.#isAfter("tool-results");
  }

  #isAfter(origin: string): boolean {
    return this.#lastEvent?.type === "user-added" && this.#lastEvent.origin === origin;
  }

  /** Begins the next turn, where something waits and nothing runs. */
  continue(): void {
    const isOpen = !this.#isClosed && this.#options.session() !== undefined;
    if (this.#turn !== undefined || this.#holds > 0 || !isOpen) return;
    const next = this.#next();
    if (next !== undefined) void this.#run(next);
  }

  #next(): Pick<Turn, "prompt" | "origin"> | undefined {
    const { reads, session, commandReports, reports } = this.#options;
    const prompt = this.#queue.next();
    if (prompt !== undefined) return { prompt, origin: "prompt" };
    // Without reading between calls, the run itself waits for what children report.
    if (reads === undefined) return undefined;
    const notices = [...(session()?.takeNotices() ?? []), ...commandReports()];
    const content = notices.length > 0 ? notices.flatMap((each) => blocksOf(each.content)) : reports?.();
    if (content === undefined || content.length === 0) return undefined;
    return { prompt: { id: randomUUID(), content, verbatim: true }, origin: "report" };
  }

  async #run(started: Pick<Turn, "prompt" | "origin">): Promise<void> {
    const { emit } = this.#options;
    const turn = new AbortController();
    this.#turn = turn;
    const { signal } = turn;
    const { id, content, note } = started.prompt;
    this.#ids = [id];
    emit({ type: "status-changed", status: { isBusy: true } });
    emit({ type: "prompt-started", id, content, origin: started.origin, note });
    let outcome: PromptOutcome;
    try {
      const ending = await this.#work({ ...started, signal });
      outcome = { outcome: "ended", ending, isInterrupted: signal.aborted };
    } catch (error) {
      outcome = { outcome: "failed", error: wireError(error), isInterrupted: signal.aborted };
    }
    this.#lastEvent = undefined;
    for (const ended of this.#ids) emit({ type: "prompt-ended", id: ended, ...outcome });
    this.#turn = undefined;
    for (const resolve of this.#waiting.splice(0)) resolve();
    this.continue();
    if (this.#turn === undefined) emit({ type: "status-changed", status: { isBusy: false } });
  }

  async #work({ prompt, origin, signal }: Turn): Promise<RunEnding> {
    const { prepare, session, tap, emit } = this.#options;
    const asides = this.#asides.splice(0).map((text) => ({ type: "text", text }) as const);
    const content = asides.length === 0 ? prompt.content : [...asides, ...blocksOf(prompt.content)];
    const whole = { ...prompt, content };
    const prepared = (await prepare?.({ prompt: whole, origin, signal })) ?? whole;
    if ("ending" in prepared) return prepared.ending;
    const opened = session();
    if (opened === undefined) throw new RetinueError("session-closed", "The session is not open.");
    let ending: RunEnding | undefined;
    const { verbatim = false } = prepared;
    for await (const event of opened.stream(prepared.content, signal, { verbatim })) {
      this.#lastEvent = event;
      if (event.type === "run-ended") ending = event.ending;
      emit(event);
      const tapped = tap?.(event);
      if (tapped !== undefined) await tapped;
    }
    if (ending === undefined)
      throw new RetinueError("run-without-end", "The run ended without reporting a result.");
    return ending;
  }
}

export function wireError(error: unknown): WireError {
  const message = error instanceof Error ? error.message : String(error);
  const code = isRetinueError(error) ? error.code : "error";
  const advice = isRetinueError(error) ? error.advice : undefined;
  return { code, message, advice, cause: error };
}

/** The error as it was thrown, or as it came over a wire. */
export function thrownError({ cause, code, message, advice }: WireError): unknown {
  return cause ?? new RetinueError(code, message, advice === undefined ? {} : { advice });
}
