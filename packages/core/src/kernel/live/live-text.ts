// @io
import { appendFileSync, rmdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { removeIfPossible } from "@retinue/base/foundation/remove-if-possible.ts";
import type { ModelEvent } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import type { SessionFiles } from "../../journal/session-files.ts";

/** An answer that a model is giving. */
export interface OpenAnswer {
  /** The id of the message, as its lines in the transcript have it. */
  readonly id: string;
  /** How the provider announced it. */
  readonly head?: Extract<ModelEvent, { type: "message-started" }>;
  /** Its text so far, by block. */
  readonly texts: readonly string[];
}

/** Follows the answers of one agent: the one rule of where an answer begins and ends, for all who show it while it is given. */
export interface AnswerFold {
  readonly open: OpenAnswer | undefined;
  onEvent(event: RunEvent): void;
}

export function createAnswerFold(): AnswerFold {
  let open: (OpenAnswer & { readonly texts: string[] }) | undefined;
  let unnamed = 0;
  const begin = (head?: OpenAnswer["head"]) => {
    if (head === undefined) unnamed += 1;
    return { id: head?.id ?? `answer-${unnamed}`, texts: [], head };
  };
  return {
    get open() {
      return open;
    },
    onEvent(event) {
      switch (event.type) {
        case "model-streamed":
          if (event.event.type === "message-started") open = begin(event.event);
          if (event.event.type !== "text-delta") return;
          open ??= begin();
          open.texts[event.event.index] = (open.texts[event.event.index] ?? "") + event.event.text;
          return;
        case "model-retried":
        case "model-fell-back":
        case "assistant-answered":
        case "answer-lost":
        case "run-ended":
          open = undefined;
          return;
        default:
      }
    },
  };
}

/**
 * What models of a session are writing right now. Programs of this process ask for it; for those in other processes it is in files
 * while one of them keeps the file `attached` fresh. Nothing of it is part of the journal, and losing it loses nothing.
 */
export interface LiveText {
  readonly onEvent: (agentId: string, event: RunEvent) => void;
  /** The text so far of the answer that an agent's model is giving; empty between answers. */
  partialText(agentId: string): string;
  close(): void;
}

/** A piece of an answer that is being written; one without text ends it. */
export interface LivePiece {
  readonly agentId: string;
  readonly answer: string;
  readonly block: number;
  readonly text?: string;
  /** The reader has passed on nothing of this answer before. */
  readonly isFirst?: true;
}

const flushMs = 20;
/** How often the marker of viewers is looked at while models write. */
const lookMs = 500;
/** How often a viewer says that it still looks. */
export const refreshMs = 2000;
const staleMs = 3 * refreshMs;
const maxFileBytes = 4_000_000;

export interface LiveFiles {
  readonly directory: string;
  readonly attached: string;
}

export function liveFiles({ directory }: Pick<SessionFiles, "directory">): LiveFiles {
  const folder = join(directory, "live");
  return { directory: folder, attached: join(folder, "attached") };
}

/** Without files, for this process alone. */
export function createLiveText(files: LiveFiles | undefined, now: () => number = Date.now): LiveText {
  const folds = new Map<string, AnswerFold>();
  const writer = files === undefined ? undefined : createPieceWriter(files, { folds, now });
  return {
    onEvent(agentId, event) {
      const fold = folds.get(agentId) ?? createAnswerFold();
      folds.set(agentId, fold);
      const before = fold.open;
      fold.onEvent(event);
      if (event.type === "run-ended") folds.delete(agentId);
      if (before !== undefined && before !== fold.open && before.texts.length > 0)
        writer?.add({ agentId, answer: before.id, block: 0 });
      if (event.type !== "model-streamed" || event.event.type !== "text-delta") return;
      const { index: block, text } = event.event;
      writer?.add({ agentId, answer: fold.open?.id ?? "", block, text });
    },
    partialText: (agentId) => folds.get(agentId)?.open?.texts.join("") ?? "",
    close: () => writer?.close(),
  };
}

/** A line of a file: a piece, which is all of its block so far where the file begins. */
export type LiveLine = Omit<LivePiece, "isFirst"> & { readonly isWhole?: true };

/** Writes pieces to a file while there is a viewer, several together; otherwise they are dropped. */
function createPieceWriter(
  files: LiveFiles,
  { folds, now }: { readonly folds: ReadonlyMap<string, AnswerFold>; readonly now: () => number },
) {
  let pending: LiveLine[] = [];
  const isAttached = createViewerCheck(files, now);
  let timer: NodeJS.Timeout | undefined;
  let file: { readonly path: string; size: number } | undefined;
  let made = 0;

  function plan(): void {
    timer ??= setTimeout(flush, file === undefined ? lookMs : flushMs).unref();
  }

  /** A file that begins with all that is open, so that a viewer needs no other. */
  function begin(): void {
    drop();
    made += 1;
    file = { path: join(files.directory, `${process.pid}-${made}.jsonl`), size: 0 };
    pending = openLines(folds);
  }

  function drop(): void {
    if (file !== undefined) removeIfPossible(file.path);
    file = undefined;
  }

  function flush(): void {
    timer = undefined;
    try {
      if (!isAttached()) drop();
      else if (file === undefined || file.size > maxFileBytes) begin();
      const text = pending.map((line) => `${JSON.stringify(line)}\n`).join("");
      pending = [];
      if (file !== undefined && text !== "") {
        appendFileSync(file.path, text, { mode: 0o600 });
        file.size += text.length;
      }
    } catch {
      // A viewer that misses something sees the whole answer when it is in the transcript.
      file = undefined;
    }
    if (openLines(folds).length > 0) plan();
  }

  return {
    add(piece: LiveLine): void {
      if (file !== undefined) {
        // Pieces of the same block that follow each other are one.
        const pieces = pending;
        const last = pieces.at(-1);
        const joins =
          last?.agentId === piece.agentId && last.answer === piece.answer && last.block === piece.block;
        if (joins && last.text !== undefined && piece.text !== undefined)
          pieces[pieces.length - 1] = { ...last, text: last.text + piece.text };
        else pieces.push(piece);
      }
      if (piece.text !== undefined || file !== undefined || openLines(folds).length > 0) plan();
      else timer = void clearTimeout(timer);
    },
    close(): void {
      clearTimeout(timer);
      drop();
      if (made > 0) {
        // A viewer that still looks makes it again when the session is resumed.
        const { directory, attached } = files;
        try {
          rmSync(attached, { force: true });
          rmdirSync(directory);
        } catch {
          // Another process writes there.
        }
      }
    },
  };
}

/** The whole text so far of the answers that are being given. */
function openLines(folds: ReadonlyMap<string, AnswerFold>): LiveLine[] {
  return [...folds].flatMap(([agentId, { open }]) =>
    Object.entries(open?.texts ?? []).map(([block, text]) => {
      return { agentId, answer: open?.id ?? "", block: Number(block), text, isWhole: true as const };
    }),
  );
}

/** Whether there is a viewer; the file is looked at now and then, not for every piece. */
function createViewerCheck({ attached }: LiveFiles, now: () => number): () => boolean {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let answer = false;
  return () => {
    if (now() - lookedAt < lookMs) return answer;
    lookedAt = now();
    const seen = statSync(attached, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    answer = now() - seen < staleMs;
    return answer;
  };
}

/** The events that `onEvent` needs. */
export const liveTextEvents: ReadonlySet<RunEvent["type"]> = new Set([
  "model-streamed",
  "model-retried",
  "model-fell-back",
  "assistant-answered",
  "answer-lost",
  "run-ended",
]);
