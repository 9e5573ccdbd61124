import type {
  CommandExpansionPart,
  DoubleQuotedPart,
  ProcessSubstitutionPart,
  Word as SyntaxWord,
  WordPart,
} from "unbash";
import { expandParameter, type Piece } from "./expand-parameter.ts";
import type { GlobRequest, Scene, Walk, Word } from "./model.ts";
import { markOpaque, spend, visitNested } from "./walk.ts";
import { plainWord, quoteWord } from "./word.ts";

/** `single`: a value that bash neither splits nor takes for a file pattern; `target`: a file that a redirection opens. */
type WordMode = "argument" | "single" | "target";

/** Expands a word as bash would, as far as that is certain before it runs; what is not becomes opaque or unknown. */
export function expandWord(walk: Walk, word: SyntaxWord, scene: Scene, mode: WordMode = "argument"): Word[] {
  if (word.parts === undefined && plainText.test(word.text)) {
    spend(walk, 2 * word.text.length + 1);
    return [plainWord(word.text)];
  }
  spend(walk, word.text.length);
  const { text: source, value, pos, end } = word;
  const parts = word.parts ?? [{ type: "Literal", text: source, value, pos, end } as const];
  if (parts.some((part) => part.type === "Literal" && strangeBlank.test(part.text)))
    markOpaque(walk, "it has spaces that bash does not take for spaces");
  if (continuesName(parts)) markOpaque(walk, "it is not clear where the name of a variable ends");
  const split = mode === "argument" ? splitValue(parts, scene) : undefined;
  const words =
    split?.map((text) => ({ ...plainWord(text), source })) ??
    alternatives(walk, parts, scene, mode).flatMap((alternative) =>
      expandParts(walk, alternative, { scene, mode, source }),
    );
  spend(
    walk,
    words.reduce((sum, { text }) => sum + text.length + 1, 0),
  );
  return words.map((expanded, at) => (at === 0 ? expanded : { ...expanded, continued: true }));
}

/** Expands a word that stays one word. */
export function expandSingle(walk: Walk, word: SyntaxWord, scene: Scene, mode: WordMode = "single"): Word {
  return expandWord(walk, word, scene, mode)[0] ?? plainWord("");
}

const strangeBlank = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/;

/** Text that bash takes as it is, in every place and dialect. */
const plainText = /^[\w./:@%+,=-]+$/;

/** A bare `$x` whose value is known is split at spaces. */
function splitValue(parts: readonly WordPart[], { state }: Scene): readonly string[] | undefined {
  const [part] = parts;
  if (parts.length !== 1 || part?.type !== "SimpleExpansion") return undefined;
  const value = state.variables.get(part.text.slice(1));
  if (value?.type !== "text" || /[*?[\]{}~\\]/.test(value.text)) return undefined;
  return value.text.split(/[ \t\n]+/).filter((text) => text !== "");
}

const maxAlternatives = 64;

function alternatives(
  walk: Walk,
  parts: readonly WordPart[],
  scene: Scene,
  mode: WordMode,
): readonly (readonly WordPart[])[] {
  let all: (readonly WordPart[])[] = [[]];
  for (const [at, part] of parts.entries()) {
    spend(walk, all.length * at);
    const braces = part.type === "BraceExpansion" ? expandBraces(part.text) : undefined;
    if (
      part.type === "BraceExpansion" &&
      (braces === undefined || mode !== "argument" || scene.dialect === "sh")
    )
      markOpaque(walk, "a brace expansion is not understood");
    const choices = (braces ?? []).map(
      (text): WordPart => ({ type: "Literal", text, value: text, pos: part.pos, end: part.end }),
    );
    const list: readonly WordPart[] = choices.length === 0 || mode !== "argument" ? [part] : choices;
    all = all.flatMap((before) => list.map((choice) => [...before, choice]));
    if (all.length > maxAlternatives) {
      markOpaque(walk, "a brace expansion makes too many words");
      return [parts];
    }
  }
  return all;
}

interface Expansion {
  readonly scene: Scene;
  readonly mode: WordMode;
  readonly source: string;
}

function expandParts(walk: Walk, parts: readonly WordPart[], expansion: Expansion): Word[] {
  const draft = emptyDraft();
  for (const part of parts) addPart(walk, draft, part, { ...expansion, alone: parts.length === 1 });
  if (draft.glob) return expandGlob(walk, draft, expansion.scene, expansion.source);
  if (!draft.stays && draft.text === "" && draft.literal && expansion.mode === "argument") return [];
  return [finishWord(draft, expansion.source)];
}

/** `$a\` at the end of a line and `b` on the next are the variable `ab` for bash, and so is the first word of `$a{b,c}`. */
function continuesName(parts: readonly WordPart[]): boolean {
  return parts.some((part, at) => {
    if (part.type === "DoubleQuoted") return continuesName(part.parts);
    if (parts[at - 1]?.type !== "SimpleExpansion") return false;
    return part.type === "BraceExpansion" || (part.type === "Literal" && part.text.startsWith("\\\n"));
  });
}

const bashOnly = new Set<WordPart["type"]>([
  "AnsiCQuoted",
  "LocaleString",
  "ProcessSubstitution",
  "ExtendedGlob",
]);

function addPart(
  walk: Walk,
  draft: WordDraft,
  part: WordPart,
  expansion: Expansion & { alone: boolean },
): void {
  const { scene, mode, alone } = expansion;
  if (scene.dialect === "sh" && bashOnly.has(part.type))
    markOpaque(walk, "sh may read this syntax of bash differently");
  switch (part.type) {
    case "Literal":
      addLiteral(walk, draft, part.text, expansion);
      return;
    case "SingleQuoted":
      addQuoted(draft, part.value);
      return;
    case "AnsiCQuoted":
      {
        const value = decodeAnsiC(part.text);
        if (value === undefined) markOpaque(walk, "an escape sequence is not understood");
        if (value === undefined) addUnknown(draft, part.text, part.text, { loose: false, isOne: true });
        else addText(draft, value);
      }
      return;
    case "DoubleQuoted":
      addDoubleQuoted(walk, draft, part, scene);
      return;
    case "Glob":
      if (mode === "target") markOpaque(walk, "the target of a redirection is a file pattern");
      if (mode === "single") addText(draft, part.text);
      else addGlob(walk, draft, part.text);
      return;
    case "ProcessSubstitution":
      addProcess(walk, draft, part, { scene, alone });
      return;
    case "SimpleExpansion":
    case "ParameterExpansion":
    case "ArithmeticExpansion":
      addUnquoted(walk, draft, expandParameter(walk, part, scene), mode);
      return;
    case "CommandExpansion":
      addPiece(draft, expandCommand(walk, part, scene), false);
      return;
    default:
      markOpaque(walk, `${notUnderstood.get(part.type) ?? part.type} is not understood here`);
      visitNested(walk, part, scene);
      addUnknown(draft, part.text, part.text, { loose: true, isOne: false });
  }
}

/** A value outside quotes; where it is known and holds signs of a file pattern, it is one. */
function addUnquoted(walk: Walk, draft: WordDraft, given: Piece, mode: WordMode): void {
  const piece: Piece =
    given.type === "unknown" && given.whenEmpty !== undefined && mode === "argument"
      ? { type: "unknown", source: given.source, rendered: given.whenEmpty }
      : given;
  const isPattern =
    piece.type === "text" && mode === "argument" && /[*?]/.test(piece.text) && !/[\s\\[\]]/.test(piece.text);
  if (!isPattern) {
    // The judged form runs without file patterns, so a mix of words and patterns would run as something else.
    const mayMatch =
      piece.type === "text" ? /[*?[]/.test(piece.text) : piece.type === "unknown" && piece.pattern;
    if (mode === "argument" && mayMatch === true)
      markOpaque(walk, "a variable holds a file pattern among other text");
    addPiece(draft, piece, false);
    return;
  }
  for (const part of piece.text.split(/([*?])/)) {
    if (/^[*?]$/.test(part)) addGlob(walk, draft, part);
    else if (part !== "") addText(draft, part);
  }
}

const notUnderstood: ReadonlyMap<WordPart["type"], string> = new Map([
  ["LocaleString", "a translated string"],
  ["ExtendedGlob", "an extended pattern"],
  ["BraceExpansion", "a brace expansion"],
]);

function addLiteral(
  walk: Walk,
  draft: WordDraft,
  source: string,
  { mode, alone, scene }: Expansion & { alone: boolean },
): void {
  // Bash finds a syntax error there; the parser makes a word of it.
  if (/(?<!\\)(?:\\\\)*[()]/.test(source)) markOpaque(walk, "a parenthesis in a word is not quoted");
  if (hasUnclearBraces(source, alone) && mode === "argument" && scene.dialect === "bash")
    markOpaque(walk, "a brace expansion is not understood");
  const joined = source.replaceAll("\\\n", "");
  const isAssigned = mode === "single" || /^[A-Za-z_]\w*\+?=/.test(joined);
  if (isAssigned && /[=:]~/.test(joined)) markOpaque(walk, "it is not clear where a home directory is meant");
  if (/[*?]/.test(source.replace(/\\[\s\S]/g, "")))
    markOpaque(walk, "it is not clear where a file pattern is meant");
  if (draft.stays || !source.startsWith("~")) {
    addText(draft, unescapePlain(source));
    return;
  }
  if (source === "~" ? alone : source.startsWith("~/")) {
    const rest = unescapePlain(source.slice(1));
    addHome(draft, walk.surroundings.home);
    if (rest !== "") addText(draft, rest);
    return;
  }
  if (!alone || !/^~[\w.+-]*(?:\/[\w./-]*)?$/.test(source))
    markOpaque(walk, "it is not clear whose home directory is meant");
  addUnknown(draft, source, source, { loose: false, isOne: true });
}

function addDoubleQuoted(walk: Walk, draft: WordDraft, { parts }: DoubleQuotedPart, scene: Scene): void {
  draft.stays = true;
  if (parts.every((part) => part.type === "Literal" && part.text === "")) addQuoted(draft, "");
  for (const part of parts) {
    if (part.type === "Literal") addText(draft, unescapeDouble(part.text));
    else if (part.type === "CommandExpansion") addPiece(draft, expandCommand(walk, part, scene), true);
    else addPiece(draft, expandParameter(walk, part, scene), true);
  }
}

function addProcess(
  walk: Walk,
  draft: WordDraft,
  part: ProcessSubstitutionPart,
  { scene, alone }: { readonly scene: Scene; readonly alone: boolean },
): void {
  flush(draft);
  const text = expandScript(walk, part, scene);
  draft.text += part.text;
  draft.rendered += `${part.operator}( ${text}\n)`;
  draft.literal = false;
  draft.pathKnown = alone;
  draft.stays = true;
  draft.numeric = false;
  if (alone) draft.path = "";
}

function expandScript(
  walk: Walk,
  part: CommandExpansionPart | ProcessSubstitutionPart,
  scene: Scene,
): string {
  if (/^[$<>]\(\(/.test(part.text)) markOpaque(walk, "arithmetic and a substitution look alike");
  // Which versions of bash run `${ command; }` differs.
  if (part.text.startsWith("${")) markOpaque(walk, "a substitution in braces is not understood");
  if (part.script === undefined) {
    markOpaque(walk, "a substitution cannot be read");
    return "";
  }
  return walk.walkScript(walk, part.script, { ...scene, substituted: true }).text;
}

function expandCommand(walk: Walk, part: CommandExpansionPart, scene: Scene): Piece {
  const text = expandScript(walk, part, scene);
  const constant = constantOf(part);
  const rendered = `$( ${text}\n)`;
  return constant === undefined
    ? { type: "unknown", source: part.text, rendered, ...(makesTemporary(part) && { temporary: true }) }
    : { type: "text", text: constant, source: part.text, rendered };
}

/** `$(mktemp -d)` names a file or folder of its own. */
function makesTemporary({ script }: CommandExpansionPart): boolean {
  const command = script?.commands.length === 1 ? script.commands[0]?.command : undefined;
  return (
    command?.type === "Command" &&
    script?.errors === undefined &&
    command.name?.text === "mktemp" &&
    command.prefix.length === 0 &&
    command.redirects.length === 0 &&
    command.args.every(({ text }) => /^(?:-[dqt]|--directory|--quiet)$/.test(text))
  );
}

/** What `$(cat <<'END' … END)` with a quoted delimiter must print. */
function constantOf({ script }: CommandExpansionPart): string | undefined {
  const command = script?.commands.length === 1 ? script.commands[0]?.command : undefined;
  if (command?.type !== "Command" || script?.errors !== undefined) return undefined;
  if (command.name?.text !== "cat" || command.prefix.length > 0 || command.suffix.length !== 1)
    return undefined;
  const document = command.suffix[0];
  if (document?.type !== "HereDoc" || document.closing === undefined || document.descriptor !== undefined)
    return undefined;
  if (document.delimiter?.quoted !== true || document.body.text.includes("\0")) return undefined;
  const body = document.operator === "<<-" ? document.body.text.replace(/^\t+/gm, "") : document.body.text;
  return body.replace(/\n+$/, "");
}

/** The value of unquoted text: a backslash keeps the next character, and joins lines. */
function unescapePlain(source: string): string {
  return source.includes("\\")
    ? source.replace(/\\([\s\S])/g, (_, next: string) => (next === "\n" ? "" : next))
    : source;
}

/** The value of text between double quotes. */
function unescapeDouble(source: string): string {
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
function decodeAnsiC(source: string): string | undefined {
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
function expandBraces(source: string): readonly string[] | undefined {
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
function hasUnclearBraces(source: string, alone: boolean): boolean {
  const text = source.replace(/\\[\s\S]/g, "_");
  if (!/[{}]/.test(text) || text === "{}") return false;
  if (!alone) return true;
  const rest = text.replace(/\{[^{},]*\}/g, (group) => (group.includes("..") ? group : ""));
  return /[{}]/.test(rest) || text.slice(text.indexOf("{")).includes(",");
}

/** A word while its parts are put together. */
interface WordDraft {
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
function emptyDraft(): WordDraft {
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

function finishWord(draft: WordDraft, source: string): Word {
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
    environment,
    ...(text !== "" && text === draft.temporary && { temporary: true as const }),
  };
}

function flush(draft: WordDraft): void {
  if (draft.pending !== "") draft.rendered += quoteWord(draft.pending);
  draft.pending = "";
}

/** Text that is exactly this; a tilde at its start is a name, not the home directory. */
function addText(draft: WordDraft, value: string): void {
  draft.path += draft.path === "" && value.startsWith("~") ? `./${value}` : value;
  draft.text += value;
  draft.value += value;
  draft.pending += value;
  draft.pattern += value.replace(/[\\*?[\]]/g, "\\$&");
  draft.stays = true;
  if (value !== "") draft.numeric = false;
}

/** Quoted text; even nothing in quotes keeps the word, whatever the rest turns out to be. */
function addQuoted(draft: WordDraft, value: string): void {
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

function addUnknown(draft: WordDraft, text: string, rendered: string, part: UnknownPart): void {
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
function addHome(draft: WordDraft, home: string, sign = "~"): void {
  draft.text = sign;
  draft.value = home;
  draft.path = "~";
  draft.pending = home;
  draft.pattern = home.replace(/[\\*?[\]]/g, "\\$&");
  draft.stays = true;
}

function addPiece(draft: WordDraft, piece: Piece, quoted: boolean): void {
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
function addGlob(walk: Walk, draft: WordDraft, source: string): void {
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
function expandGlob(walk: Walk, draft: WordDraft, scene: Scene, source: string): Word[] {
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
