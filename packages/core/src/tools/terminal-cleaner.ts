/** Turns what a program wrote for a terminal into plain text, piece by piece. */
export interface TerminalCleaner {
  /** The lines that are complete now; an unfinished one is held, because a progress bar may still redraw it. */
  take(piece: string): string;
  /** The unfinished line as it is. */
  pending(): string;
  /** The unfinished line, which is then done with: nothing more will come. */
  takePending(): string;
}

/**
 * Drops escape sequences, folds lines that were redrawn with carriage returns to their last state, applies backspaces,
 * and replaces runs of other control characters and broken bytes by one U+FFFD each.
 */
export function createTerminalCleaner(): TerminalCleaner {
  let cutEscape = "";
  let line = "";
  const pending = () => stripControlCharacters(foldLine(line));
  return {
    take(piece) {
      const { text, rest } = splitEscape(cutEscape + piece);
      cutEscape = rest;
      const plain = line + (/[\x1b\x9b]/.test(text) ? text.replace(escapeSequence, "") : text);
      const end = plain.lastIndexOf("\n") + 1;
      line = foldPending(plain.slice(end));
      const done = foldLines(plain.slice(0, end));
      if (line.length <= maxHeldLine) return stripControlCharacters(done);
      const long = foldLine(line);
      line = "";
      return stripControlCharacters(done + long);
    },
    pending,
    takePending() {
      const last = pending();
      line = "";
      return last;
    },
  };
}

export function cleanTerminalText(text: string): string {
  const cleaner = createTerminalCleaner();
  return cleaner.take(text) + cleaner.pending();
}

const maxHeldLine = 16_384;
const maxEscape = 4_096;

function foldLines(text: string): string {
  return text.includes("\r") ? text.split("\n").map(foldLine).join("\n") : text;
}

/** What a reader sees last of a line: the part after the last return that was followed by something. */
function foldLine(line: string): string {
  if (!line.includes("\r")) return line;
  return line.split("\r").findLast((part) => part !== "") ?? "";
}

/** A return at the end is kept, for what follows it decides whether the line is redrawn. */
function foldPending(line: string): string {
  if (!line.includes("\r")) return line;
  return foldLine(line) + (line.endsWith("\r") ? "\r" : "");
}

const escapeSequence =
  /\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\|\x9b[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]/g;

const unfinishedEscape = /^\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*|[PX^_][^\x1b]*|[ -/]*)$/;

/** Parts a text from an escape sequence that its end cuts in two. */
function splitEscape(text: string): { readonly text: string; readonly rest: string } {
  const at = text.lastIndexOf("\x1b");
  const tail = at === -1 ? "" : text.slice(at);
  if (tail === "" || tail.length > maxEscape || !unfinishedEscape.test(tail)) return { text, rest: "" };
  return { text: text.slice(0, at), rest: tail };
}

const control = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]/;

function stripControlCharacters(text: string): string {
  if (!control.test(text)) return text;
  return text
    .replace(/[^\n\x08]\x08/g, "")
    .replace(/[\x07\x08]/g, "")
    .replace(/[\x0b\x0c]/g, "\n")
    .replace(/[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]+/g, "\ufffd");
}
