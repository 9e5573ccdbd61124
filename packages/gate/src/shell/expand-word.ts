import type {
  CommandExpansionPart,
  DoubleQuotedPart,
  ProcessSubstitutionPart,
  Word as SyntaxWord,
  WordPart,
} from "unbash";
import {
  addGlob,
  addHome,
  addPiece,
  addQuoted,
  addText,
  addUnknown,
  decodeAnsiC,
  emptyDraft,
  expandBraces,
  expandGlob,
  finishWord,
  flush,
  hasUnclearBraces,
  unescapeDouble,
  unescapePlain,
  type WordDraft,
} from "./expand-braces.ts";
import { expandParameter, type Piece } from "./expand-parameter.ts";
import type { Scene, Walk, Word } from "./model.ts";
import { markOpaque, spend, visitNested } from "./walk.ts";
import { plainWord } from "./word.ts";

/** `single`: a value that bash neither splits nor takes for a file pattern; `target`: a file that a redirection opens. */
export type WordMode = "argument" | "single" | "target";

/** Expands a word as bash would, as far as that is certain before it runs; what is not becomes opaque or unknown. */
export function expandWord(walk: Walk, word: SyntaxWord, scene: Scene, mode: WordMode = "argument"): Word[] {
  spend(walk, word.text.length);
  const parts = word.parts ?? [literalPart(word)];
  if (parts.some((part) => part.type === "Literal" && strangeBlank.test(part.text)))
    markOpaque(walk, "it has spaces that bash does not take for spaces");
  if (continuesName(parts)) markOpaque(walk, "it is not clear where the name of a variable ends");
  const split = mode === "argument" ? splitValue(parts, scene) : undefined;
  const words =
    split?.map((text) => ({ ...plainWord(text), source: word.text })) ??
    alternatives(walk, parts, scene, mode).flatMap((alternative) =>
      expandParts(walk, alternative, { scene, mode, source: word.text }),
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

function literalPart(word: SyntaxWord): WordPart {
  return { type: "Literal", text: word.text, value: word.value, pos: word.pos, end: word.end };
}

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
      addAnsiC(walk, draft, part.text);
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

function addAnsiC(walk: Walk, draft: WordDraft, source: string): void {
  const value = decodeAnsiC(source);
  if (value !== undefined) addText(draft, value);
  else {
    markOpaque(walk, "an escape sequence is not understood");
    addUnknown(draft, source, source, { loose: false, isOne: true });
  }
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
