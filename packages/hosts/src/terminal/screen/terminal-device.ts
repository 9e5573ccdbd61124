import { writeSync } from "node:fs";
import type { ReadStream, WriteStream } from "node:tty";
import { StdinBuffer } from "@earendil-works/pi-tui/dist/stdin-buffer.js";
import { type KeyPress, readKey } from "../input/key-press.ts";
import type { Capabilities } from "./capabilities.ts";

export interface DeviceListener {
  key(key: KeyPress): void;
  paste(text: string): void;
  /** Called after all that one chunk of input held. */
  settled(): void;
  resized(): void;
  /** The terminal is gone; nothing more can be shown. */
  gone(): void;
}

const outputDescriptor = 1;

/** Asks where the cursor is when it is as far right and down as it can be; the answer comes as input. What reports sizes swaps them here and there. */
const askSize = "\u001b7\u001b[9999;9999H\u001b[6n\u001b8";
const sizeAnswer = /^\u001b\[(\d+);(\d+)R$/;
/** How long the first answer is waited for, and later ones, which come for sure; how many may be missing before no more are asked for. */
const firstAnswerMs = 100;
const answerMs = 5_000;
const maxMissing = 3;

/** All signals that end a process and that it can handle; Windows has some of them. */
const endingSignals: readonly NodeJS.Signals[] =
  process.platform === "win32"
    ? ["SIGINT", "SIGHUP", "SIGBREAK"]
    : ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGABRT", "SIGALRM", "SIGUSR2", "SIGXCPU", "SIGVTALRM"];

/**
 * The terminal of this process. From `open` to `close` it is in raw mode with bracketed paste and exact keys; whatever
 * ends the process in between, it is given back as it was.
 */
export class TerminalDevice {
  readonly #input: ReadStream;
  readonly #output: WriteStream;
  readonly #capabilities: Capabilities;
  #buffer: StdinBuffer | undefined;
  #listener: DeviceListener | undefined;
  #isOpen = false;
  #isAlternate = false;
  readonly #onData = (data: Buffer | string): void => this.#take(data.toString());
  readonly #onResize = (): void => {
    this.#reportedSize = undefined;
    this.#listener?.resized();
  };
  readonly #onExit = (): void => this.#restoreNow();
  /** A signal without another handler ends the process immediately. */
  readonly #onSignal = (signal: NodeJS.Signals): void => {
    if (process.listenerCount(signal) > 1) return;
    this.#restoreNow();
    process.kill(process.pid, signal);
  };
  readonly #onError = (): void => this.#listener?.gone();

  constructor(
    streams: { readonly input: ReadStream; readonly output: WriteStream },
    capabilities: Capabilities,
  ) {
    this.#input = streams.input;
    this.#output = streams.output;
    this.#capabilities = capabilities;
  }

  get columns(): number {
    return this.#reportedSize?.columns ?? (this.#output.columns > 0 ? this.#output.columns : 80);
  }

  get rows(): number {
    return this.#reportedSize?.rows ?? (this.#output.rows > 0 ? this.#output.rows : 24);
  }

  /** The size that the terminal itself has reported since the last resize event. */
  #reportedSize: { readonly columns: number; readonly rows: number } | undefined;
  #asked: { paint: () => void; readonly timer: NodeJS.Timeout; readonly done: () => void } | undefined;
  #answered = Promise.resolve();
  #missing = 0;
  /** Answers that are no longer waited for and come before the next one. */
  #late = 0;
  #hasAnswered = false;

  /** Paints when the size is known for sure; of several that wait for the same answer, the last. */
  withSize(paint: () => void): void {
    if (!this.#capabilities.asksSize || this.#missing >= maxMissing) {
      paint();
      return;
    }
    if (this.#asked !== undefined) {
      this.#asked.paint = paint;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#answered = promise;
    const timer = setTimeout(
      () => {
        this.#missing += 1;
        // One that took that long later is lost.
        this.#late = this.#hasAnswered ? 0 : this.#late + 1;
        this.#endAsking();
      },
      this.#hasAnswered ? answerMs : firstAnswerMs,
    );
    this.#asked = { paint, timer, done: resolve };
    this.write(askSize);
  }

  /** An answer that is still to come would be read by the next program on the terminal. */
  get isAsking(): boolean {
    return this.#asked !== undefined;
  }

  /** Resolves when no answer is waited for. */
  answered(): Promise<void> {
    return this.#answered;
  }

  #takeSize(sequence: string): boolean {
    const isExpected = this.#asked !== undefined || this.#late > 0;
    const found = isExpected ? sizeAnswer.exec(sequence) : null;
    if (found === null) return false;
    const [rows = 0, columns = 0] = found.slice(1).map(Number);
    // F3 with Shift, Ctrl or Alt looks like a window of one row.
    if (rows === 1) return false;
    this.#hasAnswered = true;
    this.#missing = 0;
    if (this.#late > 0) {
      this.#late -= 1;
      return true;
    }
    this.#reportedSize = { columns, rows };
    this.#endAsking();
    return true;
  }

  #endAsking(): void {
    const asked = this.#asked;
    if (asked === undefined) return;
    this.#asked = undefined;
    clearTimeout(asked.timer);
    asked.done();
    if (this.#isOpen) asked.paint();
  }

  /**
   * Asks the system for the size: the resize event may still be queued behind what is done now, and what is painted for the
   * size before would be counted in lines of another width. Listeners get a change as they get any other.
   */
  refreshSize(): void {
    const { _refreshSize: refresh } = this.#output as { _refreshSize?: () => void };
    refresh?.call(this.#output);
  }

  get isAlternate(): boolean {
    return this.#isAlternate;
  }

  /** Opens the terminal for the first time; `ready` is called when what was typed before has been read. */
  begin(listener: DeviceListener, ready: () => void): void {
    this.#isEarly = true;
    this.open(listener);
    // What the terminal has kept until now is read before this.
    setImmediate(() => {
      this.#isEarly = false;
      ready();
    });
  }

  open(listener: DeviceListener): void {
    this.#listener = listener;
    this.#buffer ??= this.#createBuffer();
    if (this.#isOpen) return;
    this.#isOpen = true;
    process.on("exit", this.#onExit);
    for (const signal of endingSignals) process.on(signal, this.#onSignal);
    this.#input.setRawMode(true);
    this.#input.setEncoding("utf8");
    this.#input.on("data", this.#onData);
    // They stay when the terminal is closed, so that a late error harms no one.
    this.#input.off("error", this.#onError);
    this.#output.off("error", this.#onError);
    this.#input.on("error", this.#onError);
    this.#input.on("end", this.#onError);
    this.#output.on("resize", this.#onResize);
    this.#output.on("error", this.#onError);
    // Closing let the process end without it; now it is what the process waits for.
    this.#input.ref();
    this.#input.resume();
    this.write(this.#enterModes());
  }

  /** Gives the terminal back; what was typed and not read stays for the next program. */
  close(): void {
    if (!this.#isOpen) return;
    this.write(this.#leaveModes());
    this.#release();
    this.#input.pause();
    this.#input.unref();
  }

  write(bytes: string): void {
    if (bytes !== "") this.#output.write(bytes);
  }

  enterAlternate(): void {
    if (this.#isAlternate || !this.#capabilities.hasEscapes) return;
    this.#isAlternate = true;
    // Some terminals keep the modes of keys apart for both screens.
    this.write(`\u001b[?1049h\u001b[H${this.#keysOn()}`);
  }

  leaveAlternate(): void {
    if (!this.#isAlternate) return;
    this.#isAlternate = false;
    this.write(`${this.#keysOff()}\u001b[?25h\u001b[?1049l`);
  }

  #createBuffer(): StdinBuffer {
    const buffer = new StdinBuffer({ escapeTimeout: this.#capabilities.escapeMs });
    buffer.on("data", (sequence) => {
      if (this.#takeSize(sequence)) return;
      this.#hasInput = true;
      const key = readKey(sequence);
      if (key === undefined) return;
      this.#listener?.key(key);
      // A lone Escape comes after a pause of its own, outside of any chunk.
      if (!this.#isTaking) this.#listener?.settled();
    });
    buffer.on("paste", (text) => {
      this.#hasInput = true;
      this.#listener?.paste(text);
    });
    return buffer;
  }

  #isTaking = false;

  /** Whether a chunk held anything but an answer about the size: that one has been painted for already. */
  #hasInput = false;

  #isEarly = false;

  #take(given: string): void {
    const data = this.#isEarly ? this.#takeEarly(given) : given;
    this.#isTaking = true;
    this.#hasInput = false;
    try {
      this.#buffer?.process(data);
    } finally {
      this.#isTaking = false;
    }
    if (this.#hasInput) this.#listener?.settled();
  }

  /**
   * What was typed before the terminal was ours: it has turned Enter into a line feed, and has shown everything. The
   * cursor goes back to where that began, so that the first frame covers it.
   */
  #takeEarly(data: string): string {
    const lines = data.split("\n");
    const rows = lines.reduce((sum, line) => sum + Math.floor(line.length / this.columns), lines.length - 1);
    if (rows > 0 && this.#capabilities.hasEscapes) this.write(`\r\u001b[${rows}A`);
    return lines.join("\r");
  }

  #enterModes(): string {
    return this.#capabilities.hasEscapes ? `\u001b[?2004h${this.#keysOn()}` : "";
  }

  #leaveModes(): string {
    if (!this.#capabilities.hasEscapes) return "";
    const alternate = this.#isAlternate ? `${this.#keysOff()}\u001b[?1049l` : "";
    this.#isAlternate = false;
    return `${alternate}${this.#keysOff()}\u001b[?2004l\u001b[?2026l\u001b[?25h`;
  }

  /** The kitty protocol where it is known, modifyOtherKeys elsewhere; terminals that know neither ignore both. */
  #keysOn(): string {
    return `\u001b[>1u\u001b[>4;1m${this.#capabilities.hasWindowsKeys ? "\u001b[?9001h" : ""}`;
  }

  #keysOff(): string {
    return `\u001b[<u\u001b[>4;0m${this.#capabilities.hasWindowsKeys ? "\u001b[?9001l" : ""}`;
  }

  #release(): void {
    this.#isOpen = false;
    process.off("exit", this.#onExit);
    for (const signal of endingSignals) process.off(signal, this.#onSignal);
    this.#input.off("data", this.#onData);
    this.#input.off("end", this.#onError);
    this.#output.off("resize", this.#onResize);
    this.#buffer?.clear();
    try {
      this.#input.setRawMode(false);
    } catch {
      // The terminal is gone.
    }
  }

  /** The process ends now; only what is done immediately is done. */
  #restoreNow(): void {
    if (!this.#isOpen) return;
    const bytes = this.#leaveModes();
    this.#release();
    try {
      writeSync(outputDescriptor, bytes);
    } catch {
      // The terminal is gone.
    }
  }
}
