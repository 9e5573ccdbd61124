import type { Piece } from "./expand-parameter.ts";
import { quoteWord, type Word } from "./word.ts";

/** A word while its parts are put together. */
export interface WordDraft {
  text: string;
  value: string;
  path: string;
  rendered: string;
  /** Literal text that is not in `rendered` yet. */
  pending: string;
  /** The word as a file pattern. */
  pattern: string;
  literal: boolean;
  loose: boolean;
  isOne: boolean;
  pathKnown: boolean;
  glob: boolean;
  /** It has quotes or text, so it stays a word even when it is empty. */
  stays: boolean;
  /** All of it is one number. */
  numeric: boolean;
  environment: string | undefined;
}

/** A draft without any part yet. */
export function emptyDraft(): WordDraft {
  return {
    text: "",
    value: "",
    path: "",
    rendered: "",
    pending: "",
    pattern: "",
    literal: true,
    loose: false,
    isOne: true,
    pathKnown: true,
    glob: false,
    stays: false,
    numeric: false,
    environment: undefined,
  };
}

export function finishWord(draft: WordDraft, source: string): Word {
  flush(draft);

  const { text, value, path, literal, loose, isOne, pathKnown, glob, rendered, numeric, environment } = draft;
  return {
    text,
    value,
    source,
    literal,
    glob,
    loose,
    isOne,
    path,
    pathKnown,
    rendered: literal ? quoteWord(value) : rendered,
    ...(numeric && { numeric: true as const }),
    ...(environment !== undefined && { environment }),
  };
}

export function flush(draft: WordDraft): void {
  if (draft.pending !== "") draft.rendered += quoteWord(draft.pending);
  draft.pending = "";
}

/** Text that is exactly this; a tilde at its start is a name, not the home directory. */
export function addText(draft: WordDraft, value: string): void {
  draft.path += draft.path === "" && value.startsWith("~") ? `./${value}` : value;
  draft.text += value;
  draft.value += value;
  draft.pending += value;
  draft.pattern += value.replace(/[\\*?[\]]/g, "\\$&");
  draft.stays = true;
  if (value !== "") draft.numeric = false;
}

/** Quoted text; even nothing in quotes keeps the word, whatever the rest turns out to be. */
export function addQuoted(draft: WordDraft, value: string): void {
  addText(draft, value);
  if (value !== "") return;
  flush(draft);
  draft.rendered += "''";
}

/** How a part that is not known is in its word. */
export interface UnknownPart {
  /** The word may turn into an option, or vanish. */
  readonly loose: boolean;
  /** It does not split the word. */
  readonly isOne: boolean;
}

export function addUnknown(draft: WordDraft, text: string, rendered: string, part: UnknownPart): void {
  flush(draft);
  draft.text += text;
  draft.path += text;
  draft.rendered += rendered;
  draft.pattern += text;
  draft.literal = false;
  draft.pathKnown = false;
  draft.loose ||= part.loose;
  draft.isOne &&= part.isOne;
  draft.stays = true;
  draft.numeric = false;
}

/** The home directory keeps its sign in texts and paths, since rules are written with it. */
export function addHome(draft: WordDraft, home: string, sign = "~"): void {
  draft.text = sign;
  draft.value = home;
  draft.path = "~";
  draft.pending = home;
  draft.pattern = home.replace(/[\\*?[\]]/g, "\\$&");
  draft.stays = true;
}

export function addPiece(draft: WordDraft, piece: Piece, quoted: boolean): void {
  if (piece.type === "text") {
    const isPlain = quoted || !/[\s*?[\]]/.test(piece.text);
    if (!isPlain) addUnknown(draft, piece.source, piece.rendered, { loose: true, isOne: false });
    else if (piece.text !== "") addText(draft, piece.text);
    if (quoted) draft.stays = true;
    return;
  }
  if (piece.type === "home") {
    if (draft.stays) addText(draft, piece.path);
    else addHome(draft, piece.path, piece.source);
    return;
  }
  if (piece.here === true && draft.text === "" && draft.rendered === "") {
    draft.path = ".";
    draft.text = piece.source;
    draft.pattern = "$";
    draft.rendered = `"${piece.rendered}"`;
    draft.literal = false;
    draft.stays = true;
    return;
  }
  const isFirst = draft.text === "" || draft.text.startsWith("-");
  const loose = piece.numeric !== true && (!quoted || isFirst || piece.list === true);
  const isWhole = draft.text === "";
  draft.environment ??= piece.environment;
  // A number is always one word, even one that turns out to be empty.
  const isQuoted = quoted || piece.numeric === true;
  const rendered = isQuoted ? `"${piece.rendered}"` : piece.rendered;
  addUnknown(draft, piece.source, rendered, { loose, isOne: isQuoted && piece.list !== true });
  draft.numeric = isWhole && piece.numeric === true;
}
