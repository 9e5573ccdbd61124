import type { CommandExpansionPart, DoubleQuotedPart, Word as SyntaxWord, WordPart } from "unbash";
import type { ShellWord } from "./shell-types.ts";

export interface Word extends ShellWord {
  /** As written. */
  readonly source: string;
  /** When it runs it may begin with a dash, be several words, or none. */
  readonly loose: boolean;
  /** The path it names, with `~` for the home directory; empty for one that names no file. */
  readonly path: string;
  readonly pathKnown: boolean;
}

/** Reads a word as bash would expand it, as far as that is certain before it runs. */
export function readWord(word: SyntaxWord): Word {
  const parts = word.parts;
  if (parts === undefined) return bareWord(word);
  const draft: Draft = { text: "", literal: true, glob: false, loose: false, path: "", pathKnown: true };
  for (const part of parts) addPart(draft, part, parts.length === 1);
  return { ...draft, source: word.text };
}

/** A word that is all it can be. */
export function plainWord(text: string): Word {
  return { text, source: text, literal: true, glob: false, loose: false, path: text, pathKnown: true };
}

/** A word that is not known before it runs. */
export function unknownWord(text: string): Word {
  return { text, source: text, literal: false, glob: false, loose: true, path: text, pathKnown: false };
}

interface Draft {
  text: string;
  literal: boolean;
  glob: boolean;
  loose: boolean;
  path: string;
  pathKnown: boolean;
}

function bareWord({ text: source, value: text }: SyntaxWord): Word {
  const base = { text, source, glob: false, loose: false };
  if (!text.startsWith("~")) return { ...base, literal: true, path: text, pathKnown: true };
  if (!source.startsWith("~")) return { ...base, literal: true, path: `./${text}`, pathKnown: true };
  const known = text === "~" || source.startsWith("~/");
  return { ...base, literal: known, path: text, pathKnown: known };
}

function addPart(draft: Draft, part: WordPart, alone: boolean): void {
  switch (part.type) {
    case "Literal":
      addLiteral(draft, part.value, part.text, alone);
      return;
    case "SingleQuoted":
    case "AnsiCQuoted":
      addFixed(draft, part.value);
      if (part.value.includes("\0")) draft.literal = draft.pathKnown = false;
      return;
    case "DoubleQuoted":
      addDoubleQuoted(draft, part);
      return;
    case "Glob":
    case "ExtendedGlob":
    case "BraceExpansion":
      if (draft.text === "" || draft.text.startsWith("-")) draft.loose = true;
      draft.glob ||= part.type !== "BraceExpansion";
      addUnknown(draft, part.text);
      return;
    case "ProcessSubstitution":
      draft.text += part.text;
      draft.literal = false;
      draft.pathKnown = alone;
      return;
    default:
      addExpansion(draft, part.text, false);
  }
}

function addLiteral(draft: Draft, value: string, source: string, alone: boolean): void {
  if (draft.text !== "" || !source.startsWith("~")) addFixed(draft, value);
  else if (source.startsWith("~/") || (alone && source === "~")) {
    draft.text = value;
    draft.path = value;
  } else {
    addFixed(draft, value);
    if (value !== "~") draft.literal = draft.pathKnown = false;
  }
}

/** Quoted text; a tilde at its start is a name, not the home directory. */
function addFixed(draft: Draft, value: string): void {
  draft.path += draft.path === "" && value.startsWith("~") ? `./${value}` : value;
  draft.text += value;
}

function addUnknown(draft: Draft, source: string): void {
  draft.text += source;
  draft.path += source;
  draft.literal = false;
  draft.pathKnown = false;
}

function addDoubleQuoted(draft: Draft, { parts }: DoubleQuotedPart): void {
  for (const part of parts) {
    if (part.type === "Literal") addFixed(draft, part.value);
    else {
      const folded = part.type === "CommandExpansion" ? constantOf(part) : undefined;
      if (folded === undefined) addExpansion(draft, part.text, true);
      else addFixed(draft, folded);
    }
  }
}

const numberNames = new Set(["$?", "$#", "$$", "$!"]);

function addExpansion(draft: Draft, source: string, quoted: boolean): void {
  const known = draft.text === "" ? knownDirectory(source) : undefined;
  if (known !== undefined) {
    draft.text = source;
    draft.path = known;
    draft.literal = false;
    return;
  }
  if (!numberNames.has(source) && (!quoted || draft.text === "" || draft.text.startsWith("-")))
    draft.loose = true;
  addUnknown(draft, source);
}

function knownDirectory(source: string): string | undefined {
  const name = /^\$(?:\{(HOME|PWD)\}|(HOME|PWD))$/.exec(source);
  if (name === null) return undefined;
  return (name[1] ?? name[2]) === "HOME" ? "~" : ".";
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
  return document.body.text.replace(/\n+$/, "");
}
