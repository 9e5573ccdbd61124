import { plainWord, unknownWord, type Word } from "./shell-word.ts";

/**
 * Option names with signs: `:` takes a value, `?` takes one only when attached, `<` the value is a file that is read,
 * `>` a file that is written, `@` a file that is read when it begins with `@`, `!` it starts a program or widens
 * what the command does.
 */
export type OptionTable = ReadonlyMap<string, string>;

/** Reads a table from text such as `o:> output:> n i?! compress-program:!`. */
export function optionTable(text: string): OptionTable {
  const entries = text.split(/\s+/).filter((entry) => entry !== "");
  return new Map(
    entries.map((entry) => {
      const [, name = "", signs = ""] = /^(.+?)([:?<>@!]*)$/.exec(entry) ?? [];
      return [name, signs];
    }),
  );
}

export interface FoundOption {
  readonly name: string;
  readonly signs: string;
  readonly value?: Word;
}

export interface ScannedWords {
  readonly options: readonly FoundOption[];
  readonly operands: readonly Word[];
  /** A word before `--` that may turn into an option. */
  readonly loose: boolean;
  /** Words taken when the scan stopped at the first operand. */
  readonly taken: number;
  /** An option that the table does not have. */
  readonly strange?: string;
}

interface Scan {
  readonly words: readonly Word[];
  readonly table: OptionTable;
  readonly options: FoundOption[];
  at: number;
  strange: string | undefined;
}

/** Splits arguments into options and operands, with clustered short and abbreviated long options. */
export function scanOptions(words: readonly Word[], table: OptionTable, stopAtOperand = false): ScannedWords {
  const scan: Scan = { words, table, options: [], at: 0, strange: undefined };
  const operands: Word[] = [];
  let loose = false;
  while (scan.at < words.length) {
    const word = words[scan.at] as Word; // within the bounds that the loop has just checked
    if (word.text === "--" && word.literal) {
      operands.push(...words.slice(scan.at + 1));
      scan.at += 1;
      break;
    }
    loose ||= word.loose;
    if (!word.text.startsWith("-") || word.text === "-") {
      if (stopAtOperand) break;
      operands.push(word);
      scan.at += 1;
    } else if (word.text.startsWith("--")) readLong(scan, word);
    else readCluster(scan, word);
  }
  const { options, at: taken, strange } = scan;
  return { options, operands, loose, taken, ...(strange !== undefined && { strange }) };
}

function readLong(scan: Scan, word: Word): void {
  scan.at += 1;
  const equals = word.text.indexOf("=");
  const given = word.text.slice(2, equals === -1 ? undefined : equals);
  const name = findLong(scan.table, given);
  if (name === undefined) {
    scan.strange ??= word.text;
    return;
  }
  const signs = scan.table.get(name) ?? "";
  if (equals !== -1) scan.options.push({ name, signs, value: attached(word, equals + 1) });
  else pushOption(scan, name, signs);
}

/** The option of that name or abbreviation; of several, one that must not be overlooked. */
function findLong(table: OptionTable, given: string): string | undefined {
  if (given.length > 1 && table.has(given)) return given;
  const candidates = [...table.keys()].filter((name) => name.length > 1 && name.startsWith(given));
  return candidates.find((name) => /[<>!]/.test(table.get(name) ?? "")) ?? candidates[0];
}

function readCluster(scan: Scan, word: Word): void {
  scan.at += 1;
  for (let at = 1; at < word.text.length; at += 1) {
    const name = word.text[at] ?? "";
    const signs = scan.table.get(name);
    if (signs === undefined) {
      scan.strange ??= word.text;
      continue;
    }
    const rest = at + 1 < word.text.length;
    if (rest && /[:?]/.test(signs)) {
      scan.options.push({ name, signs, value: attached(word, at + 1) });
      return;
    }
    pushOption(scan, name, signs);
  }
}

function pushOption(scan: Scan, name: string, signs: string): void {
  const value = signs.includes(":") ? scan.words[scan.at] : undefined;
  if (value !== undefined) scan.at += 1;
  scan.options.push({ name, signs, ...(value !== undefined && { value }) });
}

function attached(word: Word, from: number): Word {
  const text = word.text.slice(from);
  if (!word.literal) return unknownWord(text);
  const plain = plainWord(text);
  return text.startsWith("~") ? { ...plain, path: `./${text}` } : plain;
}
