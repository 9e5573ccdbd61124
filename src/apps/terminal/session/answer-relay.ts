import { appendFileSync, mkdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "../../../conversation/run-event.ts";
import type { JsonRecord } from "../../../foundation/json-record.ts";
import { readNewLines } from "../../../storage/read-lines.ts";

/** Below the session's folder: who watches touches one file, and reads in the other what is being said. */
function filesOf(directory: string) {
  return { watched: join(directory, "watched"), answer: join(directory, "answer.jsonl") };
}

const askAgainMs = 1000;
/** Someone who watches says so more often than this. */
const watchedMs = 5000;
const maxBytes = 256 * 1024;

/**
 * The side of the process that has the conversation: writes an answer down while it is being said, for terminals that watch.
 * Where no one watches it writes nothing. What it writes is only for the eye; the transcript alone counts.
 */
export class AnswerRelay {
  readonly #directory: string;
  readonly #now: () => number;
  #answerId = "";
  /** What was said of the answer so far, by block. */
  #blocks: string[] = [];
  #written: number[] = [];
  #askedAt = Number.NEGATIVE_INFINITY;
  #isWatched = false;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(directory: string, now: () => number = Date.now) {
    this.#directory = directory;
    this.#now = now;
  }

  hear(event: RunEvent): void {
    if (event.type === "assistant-answered" || event.type === "answer-lost" || event.type === "run-ended")
      clearTimeout(this.#timer);
    if (event.type !== "model-streamed") return;
    const { event: said } = event;
    if (said.type === "message-started") {
      clearTimeout(this.#timer);
      this.#answerId = said.id;
      this.#blocks = [];
      this.#written = [];
    }
    if (said.type !== "text-delta") return;
    this.#blocks[said.index] = (this.#blocks[said.index] ?? "") + said.text;
    this.#pass();
  }

  close(): void {
    clearTimeout(this.#timer);
    if (this.#bytes > 0) rmSync(filesOf(this.#directory).answer, { force: true });
  }

  /** One who comes while the model pauses sees what was said before. */
  #pass(): void {
    clearTimeout(this.#timer);
    if (this.#hasWatcher()) this.#write();
    else this.#timer = setTimeout(() => this.#pass(), askAgainMs).unref();
  }

  #hasWatcher(): boolean {
    const now = this.#now();
    if (now - this.#askedAt < askAgainMs) return this.#isWatched;
    this.#askedAt = now;
    const at = statSync(filesOf(this.#directory).watched, { throwIfNoEntry: false })?.mtimeMs;
    this.#isWatched = at !== undefined && now - at < watchedMs;
    return this.#isWatched;
  }

  #write(): void {
    const lines = Object.entries(this.#blocks).flatMap(([key, text]) => {
      const block = Number(key);
      const more = text.slice(this.#written[block] ?? 0);
      this.#written[block] = text.length;
      return more === "" ? [] : [`${JSON.stringify({ answer: this.#answerId, block, text: more })}\n`];
    });
    const text = lines.join("");
    const flag = this.#bytes === 0 || this.#bytes > maxBytes ? "w" : "a";
    this.#bytes = (flag === "w" ? 0 : this.#bytes) + Buffer.byteLength(text);
    try {
      appendFileSync(filesOf(this.#directory).answer, text, { flag, mode: 0o600 });
    } catch {
      // Who watches reads the answer in the transcript when it is complete.
      this.#isWatched = false;
    }
  }
}

/** More of an answer that is being said. */
export interface AnswerPiece {
  readonly answer: string;
  readonly block: number;
  readonly text: string;
}

/** The side of a terminal that watches: says that it does, and reads what is being said. */
export class AnswerFollower {
  readonly #directory: string;
  #at = 0;
  #saidAt = Number.NEGATIVE_INFINITY;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** What was said since the last time. */
  async read(now: number): Promise<readonly AnswerPiece[]> {
    this.#sayThatWeWatch(now);
    const { answer } = filesOf(this.#directory);
    const size = statSync(answer, { throwIfNoEntry: false })?.size ?? 0;
    if (size < this.#at) this.#at = 0;
    if (size === this.#at) return [];
    const { values, length } = await readNewLines(answer, this.#at).catch(() => ({ values: [], length: 0 }));
    this.#at += length;
    return values.flatMap(pieceOf);
  }

  #sayThatWeWatch(now: number): void {
    if (now - this.#saidAt < askAgainMs) return;
    this.#saidAt = now;
    const { watched } = filesOf(this.#directory);
    try {
      mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      writeFileSync(watched, "", { flag: "a", mode: 0o600 });
      utimesSync(watched, now / 1000, now / 1000);
    } catch {
      // A folder that cannot be written to is watched by its transcript alone.
    }
  }
}

function pieceOf({ answer, block, text }: JsonRecord): readonly AnswerPiece[] {
  return typeof answer === "string" && typeof block === "number" && typeof text === "string"
    ? [{ answer, block, text }]
    : [];
}
