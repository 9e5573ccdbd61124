import type { Judgement, Word } from "../model.ts";
import { optionTable, plainWord, type ScannedWords, scanOptions, valuesOf } from "../word.ts";
import { environmentReason, judgement, optionPaths, optionRisk, used } from "./judgement.ts";

export const sedOptions = optionTable(
  "n quiet silent E r regexp-extended s separate z null-data u unbuffered l: line-length: posix debug sandbox e: " +
    "expression: f:<! file:<! i?! in-place?! help version",
);

/** Reads a sed command: only scripts of a small grammar are understood, in which nothing writes or executes. */
export function judgeSed(words: readonly Word[]): Judgement {
  const scanned = scanOptions(words.slice(1), sedOptions);
  const given = valuesOf(scanned, "e", "expression");
  const fromFile = valuesOf(scanned, "f", "file").length > 0;
  const implied = given.length === 0 && !fromFile;
  const scripts = implied ? scanned.operands.slice(0, 1) : given;
  const files = scanned.operands.slice(implied ? 1 : 0);
  const inPlace = scanned.options.some(({ name }) => name === "i" || name === "in-place");
  const unclear = scripts.filter(({ literal, text }) => !literal || !isHarmlessScript(text));
  const written = unclear.flatMap(({ text }) => namedFiles(text));
  const judged = judgement(
    true,
    [
      ...optionPaths(scanned.options),
      ...used(files, "read"),
      ...(inPlace ? used(files, "write") : []),
      ...used(written, "write"),
    ],
    [
      optionRisk("sed", scanned),
      otherScript(scanned),
      unclear.length === 0
        ? undefined
        : "the script of sed is more than printing, deleting and replacing text",
      scanned.unclear,
    ],
  );
  return environmentReason(words) === undefined ? judged : { ...judged, readOnly: false };
}

/** Some programs take the first operand for the script where `-e` comes after it, or after `-l`, which has no value there. */
function otherScript({ options }: ScannedWords): string | undefined {
  const isOther = options.some(
    ({ name, value, late }) =>
      (/^(?:e|expression)$/.test(name) && late === true) ||
      (/^(?:l|line-length)$/.test(name) && !/^\d+$/.test(value?.text ?? "")),
  );
  return isOther ? "it is not clear which argument is the script of sed" : undefined;
}

interface Reading {
  readonly script: string;
  at: number;
}

/**
 * Whether a script is a list of `[address[,address]][!]command`, where the command prints, deletes, ends, jumps, moves
 * text between the spaces, replaces text or exchanges characters, or is such a list between braces.
 */
function isHarmlessScript(script: string): boolean {
  const reading: Reading = { script, at: 0 };
  let depth = 0;
  for (;;) {
    take(reading, /[ \t\n;]*/y);
    if (reading.at >= script.length) return depth === 0;
    if (take(reading, /\}/y) !== "") {
      depth -= 1;
      if (depth < 0 || !atEnd(reading)) return false;
      continue;
    }
    const hasAddress = readAddresses(reading);
    if (hasAddress === undefined) return false;
    if (take(reading, /\{/y) !== "") {
      depth += 1;
      continue;
    }
    if (!readCommand(reading, hasAddress)) return false;
  }
}

function take(reading: Reading, pattern: RegExp): string {
  pattern.lastIndex = reading.at;
  const found = pattern.exec(reading.script)?.[0] ?? "";
  reading.at += found.length;
  return found;
}

function atEnd({ script, at }: Reading): boolean {
  return /^[ \t]*(?:[;\n}]|$)/.test(script.slice(at));
}

/** Whether there are addresses before a command; undefined for one that is not understood. */
function readAddresses(reading: Reading): boolean | undefined {
  const first = readAddress(reading, /\d+(?:~\d+)?|\$/y);
  if (first === undefined) return undefined;
  take(reading, /[ \t]*/y);
  if (first && take(reading, /,[ \t]*/y) !== "") {
    if (readAddress(reading, /\d+|\$|[+~]\d+/y) !== true) return undefined;
    take(reading, /[ \t]*/y);
  }
  take(reading, /![ \t]*/y);
  return first;
}

function readAddress(reading: Reading, plain: RegExp): boolean | undefined {
  if (reading.script[reading.at] !== "/") return take(reading, plain) !== "";
  const end = regexEnd(reading.script, reading.at + 1, "/");
  if (end === undefined) return undefined;
  reading.at = end + 1;
  take(reading, /I?/y);
  return true;
}

const plainCommand = /[pdnNDPhHgGxl=]|[qQ](?: ?\d+)?/y;
const jump = /[btT][ \t]*(?:[A-Za-z_]\w*)?[ \t]*(?=[;\n]|$)/y;
const label = /:[A-Za-z_]\w*(?=[;\n]|$)/y;

function readCommand(reading: Reading, hasAddress: boolean): boolean {
  if (take(reading, jump) !== "" || (!hasAddress && take(reading, label) !== "")) return true;
  if (take(reading, plainCommand) === "" && !readSubstitution(reading)) return false;
  return atEnd(reading);
}

/** Reads `s/…/…/flags` or `y/…/…/`. */
function readSubstitution(reading: Reading): boolean {
  const { script, at } = reading;
  const [name = "", delimiter = ""] = script.slice(at, at + 2);
  if (name !== "s" && name !== "y") return false;
  const middle = regexEnd(script, at + 2, delimiter);
  const end = middle === undefined ? undefined : textEnd(script, middle + 1, delimiter);
  if (end === undefined) return false;
  reading.at = end + 1;
  if (name === "s") take(reading, /[gpiI\d]*/y);
  return true;
}

function textEnd(text: string, from: number, delimiter: string): number | undefined {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === "\n" || hidesNext(text, at)) return undefined;
    if (text[at] === "\\") at += 1;
    else if (text[at] === delimiter) return at;
    if (text[at] === "\n") return undefined;
  }
  return undefined;
}

/** Files that a script may name, so that rules which deny see them. */
function namedFiles(script: string): Word[] {
  return [...script.matchAll(/(?:^|[;\n}/|,#:@!%_gpiI\d ])[wWrR] +([^\n;}]+)/g)].flatMap(([, file]) =>
    file === undefined ? [] : [plainWord(file.trim())],
  );
}

/**
 * Where a regular expression between delimiters ends; undefined for one whose end programs may see in different places.
 * Some look for the delimiter between brackets too, others do not, and they differ about backslashes there: brackets
 * must be closed, and hold neither the bare delimiter nor a backslash before a bracket or another backslash.
 */
export function regexEnd(text: string, from: number, delimiter: string): number | undefined {
  const bracket = brackets.get(delimiter);
  if (bracket === undefined) return undefined;
  for (let at = from; at < text.length; at += 1) {
    const sign = text[at];
    if (sign === delimiter) return at;
    if (sign === "\n" || hidesNext(text, at)) return undefined;
    if (sign === "\\") {
      at += 1;
      if (text[at] === "\n") return undefined;
    } else if (sign === "[") {
      bracket.lastIndex = at;
      if (!bracket.test(text)) return undefined;
      at = bracket.lastIndex - 1;
    }
  }
  return undefined;
}

/**
 * Whether a character that some encodings write with several bytes is before a sign that could be the last of those
 * bytes, and would then lose its meaning.
 */
export function hidesNext(text: string, at: number): boolean {
  return text.charCodeAt(at) > 127 && /[@[\\\]^_`{|}~]/.test(text[at + 1] ?? "");
}

/** Characters that may delimit a regular expression. */
const delimiters = "/|,#:@!%_";

const brackets: ReadonlyMap<string, RegExp> = new Map(
  [...delimiters].map((delimiter) => {
    const inside = `(?:[^[\\]\\\\\\n\\u0080-\\uffff${delimiter}]|[\\u0080-\\uffff](?![@[\\\\\\]^_\`{|}~])|\\[:[a-z]+:\\]|\\\\[^[\\]\\\\\\n])`;
    return [delimiter, new RegExp(`\\[\\^?(?:\\]${inside}*|(?!\\^)${inside}+)\\]`, "y")];
  }),
);
