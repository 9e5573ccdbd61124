import type { ShellWord } from "./shell-analysis.ts";

/** One argument of a command, as far as it is known before the command runs. */
export interface Word extends ShellWord {
  /** The argument itself, if it is literal: the text with the home directory filled in. */
  readonly value: string;
  /** As written. */
  readonly source: string;
  /** When it runs it may begin with a dash, be several words, or none. */
  readonly loose: boolean;
  /** It is exactly one word when it runs. */
  readonly isOne: boolean;
  /** The path it names, with `~` for the home directory; empty for one that names no file. */
  readonly path: string;
  readonly pathKnown: boolean;
  /** The word in shell syntax, with everything that is known quoted literally. */
  readonly rendered: string;
  /** It comes from the same written word as the one before it. */
  readonly continued?: true;
  /** It means further words like the one before it. */
  readonly repeated?: true;
  /** It is a file at or below its path. */
  readonly isBelow?: true;
  /** Its value is not known, but it is a whole number. */
  readonly numeric?: true;
  /** It holds the value of this variable, which comes from the environment. */
  readonly environment?: string;
}

/** A word that is exactly this text. */
export function plainWord(text: string): Word {
  const path = text.startsWith("~") ? `./${text}` : text;
  return {
    text,
    value: text,
    source: text,
    literal: true,
    glob: false,
    loose: false,
    isOne: true,
    path,
    pathKnown: true,
    rendered: quoteWord(text),
  };
}

/** A word that is not known before it runs. */
export function unknownWord(text: string): Word {
  return { ...plainWord(text), literal: false, loose: true, isOne: false, path: text, pathKnown: false };
}

/** The part of a word from a position on, such as the value in `--option=value`. */
export function sliceWord(word: Word, from: number): Word {
  const text = word.text.slice(from);
  if (word.literal) return plainWord(text);
  return {
    ...unknownWord(text),
    isOne: word.isOne,
    ...(word.environment !== undefined && { environment: word.environment }),
  };
}

const bare = /^[A-Za-z0-9_./:@+,-][A-Za-z0-9_./:@%+,=-]*$/;

/** A text in a form that bash reads as exactly this one word. */
export function quoteWord(text: string): string {
  return bare.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const reserved = new Set(
  "if then else elif fi for while until do done case esac select function in time coproc { } ! [[ ]]".split(
    " ",
  ),
);

/** A text as the name of a command: keywords and assignments are quoted too. */
export function quoteName(text: string): string {
  return reserved.has(text) || text.includes("=") ? `'${text.replaceAll("'", "'\\''")}'` : quoteWord(text);
}
