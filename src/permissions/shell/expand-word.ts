import type {
  CommandExpansionPart,
  DoubleQuotedPart,
  ProcessSubstitutionPart,
  Word as SyntaxWord,
  WordPart,
} from "unbash";
import { expandParameter, type Piece } from "./expand-parameter.ts";
import { decodeAnsiC, expandBraces, hasUnclearBraces, unescapeDouble, unescapePlain } from "./quoting.ts";
import { type GlobRequest, markOpaque, type Scene, visitNested, type Walk } from "./shell-walk.ts";
import { plainWord, quoteWord, type Word } from "./shell-word.ts";

/** `single`: a value that bash neither splits nor takes for a file pattern; `target`: a file that a redirection opens. */
export type WordMode = "argument" | "single" | "target";

/** Expands a word as bash would, as far as that is certain before it runs; what is not becomes opaque or unknown. */
export function expandWord(walk: Walk, word: SyntaxWord, scene: Scene, mode: WordMode = "argument"): Word[] {
  const parts = word.parts ?? [literalPart(word)];
  if (parts.some((part) => part.type === "Literal" && strangeBlank.test(part.text)))
    markOpaque(walk, "it has blanks that bash does not take for blanks");
  if (continuesName(parts)) markOpaque(walk, "it is not clear where the name of a variable ends");
  const split = mode === "argument" ? splitValue(parts, scene) : undefined;
  const words =
    split?.map((text) => ({ ...plainWord(text), source: word.text })) ??
    alternatives(walk, parts, scene, mode).flatMap((alternative) =>
      expandParts(walk, alternative, { scene, mode, source: word.text }),
    );
  return words.map((expanded, at) => (at === 0 ? expanded : { ...expanded, continued: true }));
}

/** Expands a word that stays one word. */
export function expandSingle(walk: Walk, word: SyntaxWord, scene: Scene, mode: WordMode = "single"): Word {
  return expandWord(walk, word, scene, mode)[0] ?? plainWord("");
}

const strangeBlank = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/;

function literalPart(word: SyntaxWord): WordPart {
  return { type: "Literal", text: word.text, value: word.value, pos: word.pos, end: word.end };
}

/** A bare `$x` whose value is known is split at blanks. */
function splitValue(parts: readonly WordPart[], { state }: Scene): readonly string[] | undefined {
  const [part] = parts;
  if (parts.length !== 1 || part?.type !== "SimpleExpansion") return undefined;
  const value = state.variables.get(part.text.slice(1));
  if (value?.type !== "text" || /[*?[\]{}~\\]/.test(value.text)) return undefined;
  return value.text.split(/[ \t\n]+/).filter((text) => text !== "");
}

const mostAlternatives = 64;

function alternatives(
  walk: Walk,
  parts: readonly WordPart[],
  scene: Scene,
  mode: WordMode,
): readonly (readonly WordPart[])[] {
  let all: (readonly WordPart[])[] = [[]];
  for (const part of parts) {
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
    if (all.length > mostAlternatives) {
      markOpaque(walk, "a brace expansion makes too many words");
      return [parts];
    }
  }
  return all;
}

interface Draft {
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
  pathKnown: boolean;
  glob: boolean;
  /** It has quotes or text, so it stays a word even when it is empty. */
  stays: boolean;
  numeric: boolean;
  environment: string | undefined;
}

interface Expansion {
  readonly scene: Scene;
  readonly mode: WordMode;
  readonly source: string;
}

function expandParts(walk: Walk, parts: readonly WordPart[], expansion: Expansion): Word[] {
  const draft: Draft = {
    text: "",
    value: "",
    path: "",
    rendered: "",
    pending: "",
    pattern: "",
    literal: true,
    loose: false,
    pathKnown: true,
    glob: false,
    stays: false,
    numeric: false,
    environment: undefined,
  };
  for (const part of parts) addPart(walk, draft, part, { ...expansion, alone: parts.length === 1 });
  if (draft.glob) return expandGlob(walk, draft, expansion);
  if (!draft.stays && draft.text === "" && draft.literal && expansion.mode === "argument") return [];
  return [finish(draft, expansion.source)];
}

/** `$a\` at the end of a line and `b` on the next are the variable `ab` for bash, and so is the first word of `$a{b,c}`. */
function continuesName(parts: readonly WordPart[]): boolean {
  return parts.some((part, at) => {
    if (part.type === "DoubleQuoted") return continuesName(part.parts);
    if (parts[at - 1]?.type !== "SimpleExpansion") return false;
    return part.type === "BraceExpansion" || (part.type === "Literal" && part.text.startsWith("\\\n"));
  });
}

function finish(draft: Draft, source: string): Word {
  flush(draft);

  const { text, value, path, literal, loose, pathKnown, glob, rendered, numeric, environment } = draft;
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
    ...(numeric && { numeric: true as const }),
    ...(environment !== undefined && { environment }),
  };
}

const bashOnly = new Set<WordPart["type"]>([
  "AnsiCQuoted",
  "LocaleString",
  "ProcessSubstitution",
  "ExtendedGlob",
]);

function addPart(walk: Walk, draft: Draft, part: WordPart, expansion: Expansion & { alone: boolean }): void {
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
      addAnsiC(walk, draft, part.text);
      return;
    case "DoubleQuoted":
      addDoubleQuoted(walk, draft, part, scene);
      return;
    case "Glob":
      addGlob(walk, draft, part.text, mode);
      return;
    case "ProcessSubstitution":
      addProcess(walk, draft, part, { scene, alone });
      return;
    case "SimpleExpansion":
    case "ParameterExpansion":
    case "ArithmeticExpansion":
      addPiece(draft, expandParameter(walk, part, scene), false);
      return;
    case "CommandExpansion":
      addPiece(draft, expandCommand(walk, part, scene), false);
      return;
    default:
      markOpaque(walk, `${notUnderstood.get(part.type) ?? part.type} is not understood here`);
      visitNested(walk, part, scene);
      addUnknown(draft, part.text, part.text, true);
  }
}

const notUnderstood: ReadonlyMap<WordPart["type"], string> = new Map([
  ["LocaleString", "a translated string"],
  ["ExtendedGlob", "an extended pattern"],
  ["BraceExpansion", "a brace expansion"],
]);

function flush(draft: Draft): void {
  if (draft.pending !== "") draft.rendered += quoteWord(draft.pending);
  draft.pending = "";
}

/** Text that is exactly this; a tilde at its start is a name, not the home directory. */
function addText(draft: Draft, value: string): void {
  draft.path += draft.path === "" && value.startsWith("~") ? `./${value}` : value;
  draft.text += value;
  draft.value += value;
  draft.pending += value;
  draft.pattern += value.replace(/[\\*?[\]]/g, "\\$&");
  draft.stays = true;
}

/** Quoted text; even nothing in quotes keeps the word, whatever the rest turns out to be. */
function addQuoted(draft: Draft, value: string): void {
  addText(draft, value);
  if (value !== "") return;
  flush(draft);
  draft.rendered += "''";
}

function addUnknown(draft: Draft, text: string, rendered: string, loose: boolean): void {
  flush(draft);
  draft.text += text;
  draft.path += text;
  draft.rendered += rendered;
  draft.pattern += text;
  draft.literal = false;
  draft.pathKnown = false;
  draft.loose ||= loose;
  draft.stays = true;
}

function addLiteral(
  walk: Walk,
  draft: Draft,
  source: string,
  { mode, alone, scene }: Expansion & { alone: boolean },
): void {
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
  addUnknown(draft, source, source, false);
}

/** The home directory keeps its sign in texts and paths, since rules are written with it. */
function addHome(draft: Draft, home: string, sign = "~"): void {
  draft.text = sign;
  draft.value = home;
  draft.path = "~";
  draft.pending = home;
  draft.pattern = home.replace(/[\\*?[\]]/g, "\\$&");
  draft.stays = true;
}

function addAnsiC(walk: Walk, draft: Draft, source: string): void {
  const value = decodeAnsiC(source);
  if (value !== undefined) addText(draft, value);
  else {
    markOpaque(walk, "an escape sequence is not understood");
    addUnknown(draft, source, source, false);
  }
}

function addDoubleQuoted(walk: Walk, draft: Draft, { parts }: DoubleQuotedPart, scene: Scene): void {
  draft.stays = true;
  if (parts.every((part) => part.type === "Literal" && part.text === "")) addQuoted(draft, "");
  for (const part of parts) {
    if (part.type === "Literal") addText(draft, unescapeDouble(part.text));
    else if (part.type === "CommandExpansion") addPiece(draft, expandCommand(walk, part, scene), true);
    else addPiece(draft, expandParameter(walk, part, scene), true);
  }
}

function addPiece(draft: Draft, piece: Piece, quoted: boolean): void {
  if (piece.type === "text") {
    const isPlain = quoted || !/[\s*?[\]]/.test(piece.text);
    if (!isPlain) addUnknown(draft, piece.source, piece.rendered, true);
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
    draft.rendered = quoted ? `"${piece.rendered}"` : piece.rendered;
    draft.literal = false;
    draft.stays = true;
    return;
  }
  const isFirst = draft.text === "" || draft.text.startsWith("-");
  const loose = piece.numeric !== true && (!quoted || isFirst || piece.list === true);
  if (piece.numeric === true && draft.text === "") draft.numeric = true;
  draft.environment ??= piece.environment;
  addUnknown(draft, piece.source, quoted ? `"${piece.rendered}"` : piece.rendered, loose);
}

const simpleBracket = /^\[[!^]?[A-Za-z0-9_.,@%+-]+\]$/;

function addGlob(walk: Walk, draft: Draft, source: string, mode: WordMode): void {
  if (mode === "single") {
    addText(draft, source);
    return;
  }
  if (mode === "target") markOpaque(walk, "the target of a redirection is a file pattern");
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
}

/** A pattern is the files that it matches now; they are what runs. */
function expandGlob(walk: Walk, draft: Draft, { scene, source }: Expansion): Word[] {
  const { directories } = scene.state;
  const [directory = "unknown"] = directories;
  const known = draft.environment === undefined && !/[$`(]/.test(draft.pattern.replace(/\\[\s\S]/g, ""));
  const isAnywhere = draft.pattern.startsWith("/");
  const request: GlobRequest = { pattern: draft.pattern, directory: isAnywhere ? "" : directory };
  const isPlaced = isAnywhere || (directories.length === 1 && directory !== "unknown");
  if (!known || !isPlaced) {
    markOpaque(
      walk,
      known
        ? "a file pattern stands in a folder that is not known"
        : "a file pattern is only known when it runs",
    );
    return [finish(draft, source)];
  }
  noteListed(walk, request, directories);
  const matches = walk.surroundings.matches(request);
  if (matches === undefined) walk.globs.push(request);
  if (matches === "too-many") markOpaque(walk, "a file pattern matches too many files");
  if (matches === undefined || matches === "too-many") return [finish(draft, source)];
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

function addProcess(
  walk: Walk,
  draft: Draft,
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
  if (alone) draft.path = "";
}

function expandScript(
  walk: Walk,
  part: CommandExpansionPart | ProcessSubstitutionPart,
  scene: Scene,
): string {
  if (part.text.startsWith("$((")) markOpaque(walk, "arithmetic and a substitution look alike");
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
    ? { type: "unknown", source: part.text, rendered }
    : { type: "text", text: constant, source: part.text, rendered };
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
