import type { Word } from "./model.ts";

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

/**
 * Option names with signs: `:` takes a value, `?` takes one only when attached, `<` the value is a file that is read,
 * `>` a file that is written, `@` a file that is read when it begins with `@`, `!` it starts a program or widens
 * what the command does, `~` the value may be missing at the end, `-` the value may look like an option.
 */
export type OptionTable = Pick<
  ReadonlyMap<string, string>,
  "get" | "has" | "keys" | "values" | typeof Symbol.iterator
>;

/** Reads a table from text such as `o:> output:> n i?! compress-program:!`, when it is first looked at: most programs are never called. */
export function optionTable(text: string): OptionTable {
  let table: ReadonlyMap<string, string> | undefined;
  const read = () => {
    table ??= readTable(text);
    return table;
  };
  return {
    get: (name) => read().get(name),
    has: (name) => read().has(name),
    keys: () => read().keys(),
    values: () => read().values(),
    [Symbol.iterator]: () => read()[Symbol.iterator](),
  };
}

function readTable(text: string): ReadonlyMap<string, string> {
  const entries = text.split(/\s+/).filter((entry) => entry !== "");
  return new Map(
    entries.map((entry) => {
      const [, name = "", signs = ""] = /^(.+?)([:?<>@!~-]*)$/.exec(entry) ?? [];
      return [name, signs];
    }),
  );
}

export interface FoundOption {
  readonly name: string;
  readonly signs: string;
  readonly value?: Word;
  /** It follows an operand, where programs differ in whether they still look for options. */
  readonly late?: true;
}

export interface ScannedWords {
  readonly options: readonly FoundOption[];
  readonly operands: readonly Word[];
  /** Words taken when the scan stopped at the first operand. */
  readonly taken: number;
  /** Where the word `--` is that ends the options. */
  readonly ended?: number;
  /** Why the words are not understood: an option that the table does not have, or a word that may turn into one. */
  readonly unclear?: string;
  /** A word may turn into an option, and nothing else is unclear. */
  readonly loose: boolean;
}

export interface ScanOptions {
  /** Options end where the first operand begins. */
  readonly stopAtOperand?: boolean;
  /** `-5` is an option. */
  readonly numeric?: boolean;
  /**
   * How letters may be joined: `plain` as is usual, `separate` where a value is a word of its own, `none` where
   * every letter is, and only a number may be attached to it.
   */
  readonly letters?: "plain" | "separate" | "none";
}

interface Scan {
  readonly words: readonly Word[];
  readonly table: OptionTable;
  readonly letters: NonNullable<ScanOptions["letters"]>;
  readonly options: FoundOption[];
  /** An operand was found. */
  late: boolean;
  at: number;
  unclear: string | undefined;
  /** A word may turn into an option, or into several words. */
  loose: boolean;
}

/** Splits arguments into options and operands; only options that are in the table are understood. */
export function scanOptions(
  words: readonly Word[],
  table: OptionTable,
  { stopAtOperand = false, numeric = false, letters = "plain" }: ScanOptions = {},
): ScannedWords {
  const scan: Scan = {
    words,
    table,
    letters,
    options: [],
    late: false,
    loose: false,
    at: 0,
    unclear: undefined,
  };
  const operands: Word[] = [];
  let ended: number | undefined;
  while (scan.at < words.length) {
    const word = words[scan.at] as Word; // within the bounds that the loop has just checked
    if (word.text === "--" && word.literal) {
      ended = scan.at;
      operands.push(...words.slice(scan.at + 1));
      scan.at += 1;
      break;
    }
    scan.loose ||= word.loose;
    if (!word.text.startsWith("-") || word.text === "-") {
      if (stopAtOperand) break;
      operands.push(word);
      scan.late = true;
      scan.at += 1;
    } else if (word.text.startsWith("--")) readLong(scan, word);
    else if (numeric && word.literal && /^-\d+$/.test(word.text)) scan.at += 1;
    else readCluster(scan, word);
  }
  const { options, loose, at: taken } = scan;
  const unclear =
    scan.unclear ?? (loose ? "an argument is only known when it runs and may be an option" : undefined);
  const isLoose = loose && scan.unclear === undefined;
  return {
    options,
    operands,
    taken,
    loose: isLoose,
    ended,
    unclear,
  };
}

function notKnown(option: string): string {
  return `the option ${option} is not known to be harmless`;
}

function readLong(scan: Scan, word: Word): void {
  scan.at += 1;
  const equals = word.text.indexOf("=");
  const name = word.text.slice(2, equals === -1 ? undefined : equals);
  const signs = name.length > 1 ? scan.table.get(name) : undefined;
  if (signs === undefined) {
    scan.unclear ??= notKnown(`--${name}`);
    if (equals !== -1) suspect(scan, name, sliceWord(word, equals + 1));
    return;
  }
  if (equals !== -1 && !/[:?]/.test(signs)) scan.unclear ??= notKnown(word.text);
  if (equals !== -1) scan.options.push({ name, signs, value: sliceWord(word, equals + 1) });
  else pushOption(scan, name, signs);
}

/** The value of an option that is not known may be a file: rules that deny must see it. */
function suspect(scan: Scan, name: string, value: Word): void {
  scan.options.push({ name, signs: "<", value });
}

function readCluster(scan: Scan, word: Word): void {
  scan.at += 1;
  for (let at = 1; at < word.text.length; at += 1) {
    const name = word.text[at] ?? "";
    const signs = scan.table.get(name);
    if (signs === undefined) {
      scan.unclear ??= notKnown(`-${name}`);
      if (at + 1 < word.text.length) suspect(scan, name, sliceWord(word, at + 1));
      continue;
    }
    const rest = at + 1 < word.text.length;
    if (rest && !mayJoin(scan.letters, signs, word.text.slice(at + 1)))
      scan.unclear ??= `it is not clear how the letters of ${word.text} are read`;
    if (rest && /[:?]/.test(signs)) {
      scan.options.push({ name, signs, value: sliceWord(word, at + 1) });
      return;
    }
    pushOption(scan, name, signs);
  }
}

/** Some programs take the next word as the value even where letters follow, which they read as further options. */
function mayJoin(letters: Scan["letters"], signs: string, rest: string): boolean {
  if (letters === "plain") return true;
  const takesValue = /[:?]/.test(signs);
  return letters === "separate" ? !takesValue : takesValue && /^\d+$/.test(rest);
}

function pushOption(scan: Scan, name: string, signs: string): void {
  const value = signs.includes(":") ? scan.words[scan.at] : undefined;
  if (signs.includes(":") && value === undefined && !signs.includes("~"))
    scan.unclear ??= `the option ${name} has no value`;
  if (value !== undefined) {
    scan.at += 1;
    if (!value.isOne) scan.loose = true;
    // A version of the program that takes no value here would read an option.
    if (/^--?[A-Za-z]/.test(value.text) && !signs.includes("-"))
      scan.unclear ??= `the value of the option ${name} looks like an option`;
  }
  scan.options.push({
    name,
    signs,
    value,
    ...(scan.late && { late: true as const }),
  });
}

/** The values of options with one of these names. */
export function valuesOf({ options }: Pick<ScannedWords, "options">, ...names: string[]): Word[] {
  return options.flatMap(({ name, value }) => (names.includes(name) && value !== undefined ? [value] : []));
}

export function hasOption({ options }: Pick<ScannedWords, "options">, ...names: string[]): boolean {
  return options.some(({ name }) => names.includes(name));
}
