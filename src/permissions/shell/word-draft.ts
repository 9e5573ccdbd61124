import type { Piece } from "./expand-parameter.ts";
import { quoteWord, type Word } from "./shell-word.ts";

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
  splits: boolean;
  pathKnown: boolean;
  glob: boolean;
  /** It has quotes or text, so it stays a word even when it is empty. */
  stays: boolean;
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
    splits: false,
    pathKnown: true,
    glob: false,
    stays: false,
    numeric: false,
    environment: undefined,
  };
}

export function finishWord(draft: WordDraft, source: string): Word {
  flush(draft);

  const { text, value, path, literal, loose, splits, pathKnown, glob, rendered, numeric, environment } = draft;
  return {
    text,
    value,
    source,
    literal,
    glob,
    loose,
    path,
    pathKnown,
    rendered: literal ? quoteWord(value) : rendered,
    ...(splits && { splits: true as const }),
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
}

/** Quoted text; even nothing in quotes keeps the word, whatever the rest turns out to be. */
export function addQuoted(draft: WordDraft, value: string): void {
  addText(draft, value);
  if (value !== "") return;
  flush(draft);
  draft.rendered += "''";
}

/** `loose`: it may begin with a dash; `splits`: it may be several words, or none. */
export function addUnknown(
  draft: WordDraft,
  text: string,
  rendered: string,
  { loose = false, splits = false }: { readonly loose?: boolean; readonly splits?: boolean },
): void {
  flush(draft);
  draft.text += text;
  draft.path += text;
  draft.rendered += rendered;
  draft.pattern += text;
  draft.literal = false;
  draft.pathKnown = false;
  draft.loose ||= loose;
  draft.splits ||= splits;
  draft.stays = true;
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
    if (!isPlain) addUnknown(draft, piece.source, piece.rendered, { loose: true, splits: true });
    else if (piece.text !== "") addText(draft, piece.text);
    if (quoted) draft.stays = true;
    return;
  }
  if (piece.type === "home") {
    if (draft.stays) addText(draft, piece.path);
    else addHome(draft, piece.path, piece.source);
    return;
  }
  if (piece.here === true && !draft.stays) {
    draft.path = ".";
    draft.text = piece.source;
    draft.pattern = "$";
    // A folder whose name has blanks would be several words.
    draft.rendered = `"${piece.rendered}"`;
    draft.literal = false;
    draft.stays = true;
    return;
  }
  const isFirst = draft.text === "" || draft.text.startsWith("-");
  const splits = piece.numeric !== true && (!quoted || piece.list === true);
  const loose = splits || (piece.numeric !== true && isFirst);
  if (piece.numeric === true && draft.text === "") draft.numeric = true;
  draft.environment ??= piece.environment;
  addUnknown(draft, piece.source, quoted ? `"${piece.rendered}"` : piece.rendered, { loose, splits });
}
