import type { Piece } from "./expand-parameter.ts";
import type { GlobRequest, Scene, Walk, Word } from "./model.ts";
import { markOpaque } from "./walk.ts";
import { plainWord, quoteWord } from "./word.ts";

/** The value of unquoted text: a backslash keeps the next character, and joins lines. */
export function unescapePlain(source: string): string {
  return source.includes("\\")
    ? source.replace(/\\([\s\S])/g, (_, next: string) => (next === "\n" ? "" : next))
    : source;
}

/** The value of text between double quotes. */
export function unescapeDouble(source: string): string {
  if (!source.includes("\\")) return source;
  return source.replace(/\\([$`"\\\n])/g, (_, next: string) => (next === "\n" ? "" : next));
}

/** The value of text in a here-document whose delimiter is not quoted. */
export function unescapeDocument(source: string): string {
  if (!source.includes("\\")) return source;
  return source.replace(/\\([$`\\\n])/g, (_, next: string) => (next === "\n" ? "" : next));
}

/** A text between double quotes that bash reads as exactly this. */
export function escapeDouble(text: string): string {
  return text.replace(/[\\"$`]/g, "\\$&");
}

const simpleEscapes: ReadonlyMap<string, string> = new Map([
  ["n", "\n"],
  ["t", "\t"],
  ["r", "\r"],
  ["a", "\x07"],
  ["b", "\b"],
  ["e", "\x1b"],
  ["E", "\x1b"],
  ["f", "\f"],
  ["v", "\v"],
  ["\\", "\\"],
  ["'", "'"],
  ['"', '"'],
  ["?", "?"],
]);

const escapeSequence =
  /\\(?:x([0-9A-Fa-f]{1,2})(?!\{)|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|([\s\S]))/y;

/** The value of `$'…'`; undefined where it has an escape sequence that is not certain. */
export function decodeAnsiC(source: string): string | undefined {
  const body = source.slice(2, -1);
  let value = "";
  for (let at = 0; at < body.length; ) {
    if (body[at] !== "\\") {
      value += body[at];
      at += 1;
      continue;
    }
    escapeSequence.lastIndex = at;
    const found = escapeSequence.exec(body);
    if (found === null) return undefined;
    const decoded = decodeEscape(found);
    if (decoded === undefined) return undefined;
    value += decoded;
    at += found[0].length;
  }
  return value;
}

function decodeEscape([, hex, short, long, octal, sign]: RegExpExecArray): string | undefined {
  const digits = hex ?? short ?? long;
  if (digits === undefined && octal === undefined) return simpleEscapes.get(sign ?? "");
  const code = digits === undefined ? Number.parseInt(octal ?? "", 8) : Number.parseInt(digits, 16);
  // Bytes above ASCII are parts of characters, and NUL ends the text.
  const isByte = hex !== undefined || octal !== undefined;
  if (code === 0 || code > 0x10ffff || (isByte && code > 0x7f) || (code >= 0xd800 && code <= 0xdfff))
    return undefined;
  return String.fromCodePoint(code);
}

const plainList = /^\{[\w./:@%+=-]*(?:,[\w./:@%+=-]*)+\}$/;
const numberRange = /^\{(-?\d{1,6})\.\.(-?\d{1,6})\}$/;
const letterRange = /^\{([a-z])\.\.([a-z])\}$|^\{([A-Z])\.\.([A-Z])\}$/;

/** The words of a simple brace expansion; undefined for one that is not certain. */
export function expandBraces(source: string): readonly string[] | undefined {
  if (plainList.test(source) && !source.includes("..")) return source.slice(1, -1).split(",");
  const numbers = numberRange.exec(source);
  if (numbers !== null) {
    const [, from = "", to = ""] = numbers;
    if (/^-?0\d/.test(from) || /^-?0\d/.test(to)) return undefined;
    return range(Number(from), Number(to))?.map(String);
  }
  const letters = letterRange.exec(source);
  if (letters === null) return undefined;
  const [, from = letters[3] ?? "", to = letters[4] ?? ""] = letters;
  return range(from.charCodeAt(0), to.charCodeAt(0))?.map((code) => String.fromCharCode(code));
}

function range(from: number, to: number): readonly number[] | undefined {
  const length = Math.abs(to - from) + 1;
  if (length > 256) return undefined;
  return Array.from({ length }, (_, at) => (from <= to ? from + at : from - at));
}

/** Whether bash could expand braces in text that the parser took for plain. */
export function hasUnclearBraces(source: string, alone: boolean): boolean {
  const text = source.replace(/\\[\s\S]/g, "_");
  if (!/[{}]/.test(text) || text === "{}") return false;
  if (!alone) return true;
  const rest = text.replace(/\{[^{},]*\}/g, (group) => (group.includes("..") ? group : ""));
  return /[{}]/.test(rest) || text.slice(text.indexOf("{")).includes(",");
}

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
  /** The part that names a temporary file which was made just now. */
  temporary: string | undefined;
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
    temporary: undefined,
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
    ...(text !== "" && text === draft.temporary && { temporary: true as const }),
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
interface UnknownPart {
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
  if (piece.temporary === true) draft.temporary = piece.source;
  // A number is always one word, even one that turns out to be empty.
  const isQuoted = quoted || piece.numeric === true;
  const rendered = isQuoted ? `"${piece.rendered}"` : piece.rendered;
  addUnknown(draft, piece.source, rendered, { loose, isOne: isQuoted && piece.list !== true });
  draft.numeric = isWhole && piece.numeric === true;
}

const simpleBracket = /^\[[!^]?[A-Za-z0-9_.,@%+-]+\]$/;

/** Adds a sign of a file pattern to a word. */
export function addGlob(walk: Walk, draft: WordDraft, source: string): void {
  if (source.startsWith("[") && !simpleBracket.test(source))
    markOpaque(walk, "a file pattern is not understood");
  flush(draft);
  if (draft.text === "" || draft.text.startsWith("-")) draft.loose = true;
  draft.text += source;
  draft.path += source;
  draft.rendered += source;
  draft.pattern += source;
  draft.literal = false;
  draft.pathKnown = false;
  draft.glob = true;
  draft.stays = true;
  draft.numeric = false;
  draft.isOne = false;
}

/** A pattern is the files that it matches now; they are what runs. */
export function expandGlob(walk: Walk, draft: WordDraft, scene: Scene, source: string): Word[] {
  const { directories } = scene.state;
  const [directory = "unknown"] = directories;
  const known = draft.environment === undefined && !/[$`(]/.test(draft.pattern.replace(/\\[\s\S]/g, ""));
  const isAnywhere = draft.pattern.startsWith("/");
  const request: GlobRequest = { pattern: draft.pattern, directory: isAnywhere ? "" : directory };
  const isPlaced = isAnywhere || (directories.length === 1 && directory !== "unknown");
  if (!known || !isPlaced) {
    markOpaque(
      walk,
      known ? "a file pattern is in a folder that is not known" : "a file pattern is only known when it runs",
    );
    return [finishWord(draft, source)];
  }
  noteListed(walk, request, directories);
  const matches = walk.surroundings.matches(request);
  if (matches === undefined) walk.globs.push(request);
  if (matches === "too-many") markOpaque(walk, "a file pattern matches too many files");
  if (matches === undefined || matches === "too-many") return [finishWord(draft, source)];
  if (matches.length > 0) return matches.map((match) => ({ ...plainWord(match), source }));
  return [{ ...plainWord(unescapePlain(draft.pattern)), source }];
}

/** The names in the folder where a pattern begins become known. */
function noteListed(walk: Walk, { pattern }: GlobRequest, directories: readonly string[]): void {
  const segments = pattern.split("/");
  const first = segments.findIndex((segment) => /[*?[]/.test(segment.replace(/\\[\s\S]/g, "")));
  const folder = segments
    .slice(0, first)
    .join("/")
    .replace(/\\([\s\S])/g, "$1");
  const path = folder === "" && pattern.startsWith("/") ? "/" : folder;
  if (path === "" && directories.every((directory) => directory === "")) return;
  for (const directory of path.startsWith("/") ? [""] : directories)
    walk.listed.push({ path: path === "" ? "." : path, literal: true, directory, use: "read" });
}
