import type { UsedPath, Word } from "./model.ts";
import { optionPaths } from "./programs/judgement.ts";
import { optionTable, type ScannedWords, scanOptions, unknownWord } from "./word.ts";
import { type WrapperSpec, wrapperSpecs } from "./wrapper-specs.ts";

/** What a command that starts another one starts. */
export interface Unwrapped {
  /** How `xargs` takes the names that come in; its further words are then files of them. */
  readonly taken?: "whole" | "split" | undefined;
  /** The inner command, or shell text. */
  readonly inner: readonly Word[];
  /** So many words are before the inner command. */
  readonly before: number;
  readonly isText: boolean;
  /** Why the wrapper itself needs an exact rule; without it only the inner command counts. */
  readonly reason?: string;
  readonly variables: readonly string[];
  /** The directory the inner command runs in. */
  readonly directory?: Word;
  readonly paths: readonly UsedPath[];
}

export type Unwrapping =
  | { readonly type: "none" }
  | { readonly type: "unclear"; readonly reason: string }
  | { readonly type: "inner"; readonly unwrapped: Unwrapped };

/** Takes a wrapper off, with the real number of values of its options. */
export function unwrap(words: readonly Word[], name: string): Unwrapping {
  const spec = wrapperSpecs.get(name);
  if (spec === undefined || isLookup(words, name)) return { type: "none" };
  const skipped = spec.numeric === true && /^--?\d+$/.test(words[1]?.text ?? "") ? 2 : 1;
  const scanned = scanOptions(words.slice(skipped), tables.get(name) ?? new Map(), { stopAtOperand: true });
  const unclear = { type: "unclear", reason: `what ${name} starts is not clear` } as const;
  if (scanned.unclear !== undefined || isRepeated(scanned, spec)) return unclear;
  let at = skipped + scanned.taken;
  const before = words.slice(at, at + (spec.before ?? 0));
  if (before.some(({ loose }) => loose)) return unclear;
  at += before.length;
  if (name === "env" && words[at]?.text === "-") at += 1;
  const assigned = spec.assignments === true ? countAssignments(words.slice(at)) : 0;
  const variables = words.slice(at, at + assigned).map(({ text }) => text.slice(0, text.indexOf("=")));
  at += assigned;
  const inner = words.slice(at);
  const text = findOption(scanned, spec.textOptions)?.value;
  if (text === undefined && inner.length === 0) return { type: "none" };
  if (inner[0]?.loose === true) return unclear;
  return { type: "inner", unwrapped: describe({ name, spec, scanned, inner, at, text, before, variables }) };
}

/** Of options that name a directory or bring text, the last counts for one program and the first for another. */
function isRepeated({ options }: ScannedWords, { directory = "", textOptions = "" }: WrapperSpec): boolean {
  return [directory, textOptions].some((names) => {
    const list = names.split(" ");
    return options.filter(({ name }) => list.includes(name)).length > 1;
  });
}

interface Parts {
  readonly name: string;
  readonly spec: WrapperSpec;
  readonly scanned: ScannedWords;
  readonly inner: readonly Word[];
  readonly at: number;
  readonly text: Word | undefined;
  readonly before: readonly Word[];
  readonly variables: readonly string[];
}

function describe({ name, spec, scanned, inner, at, text, before, variables }: Parts): Unwrapped {
  const all = text === undefined ? inner : [text, ...inner];
  const directory = findOption(scanned, spec.directory)?.value;
  const risky = scanned.options.find(({ signs }) => /[!>]/.test(signs));
  const reason =
    spec.reason ?? (risky === undefined ? undefined : `the option ${risky.name} of ${name} does more`);
  const isText =
    (spec.text === true && findOption(scanned, "x exec") === undefined) ||
    text !== undefined ||
    (spec.textAfterC === true && all[0]?.text === "-c");
  const arguments_ = isText && all[0]?.text === "-c" ? all.slice(1) : all;
  return {
    inner: name === "xargs" ? withArguments(arguments_, scanned) : arguments_,
    ...(name === "xargs" && { taken: takenNames(scanned) }),
    before: at,
    isText,
    variables,
    paths: [...optionPaths(scanned.options), ...(spec.writesBefore === true ? written(before) : [])],
    ...(reason !== undefined && { reason }),
    ...(directory !== undefined && { directory }),
  };
}

function findOption({ options }: ScannedWords, names = ""): ScannedWords["options"][number] | undefined {
  const list = names.split(" ");
  return options.find(({ name }) => list.includes(name));
}

const tables = new Map([...wrapperSpecs].map(([name, { options }]) => [name, optionTable(options ?? "")]));

/** `command -v x` looks a name up and starts nothing. */
function isLookup(words: readonly Word[], name: string): boolean {
  return name === "command" && /^-[pvV]*[vV]/.test(words[1]?.text ?? "");
}

function countAssignments(words: readonly Word[]): number {
  const end = words.findIndex(({ text, loose }) => loose || !text.includes("="));
  return end === -1 ? words.length : end;
}

/**
 * `xargs` puts words from its input at the end, or in the place of a mark. The last of several marks counts, and an
 * option that counts words or lines takes a mark back.
 */
function withArguments(words: readonly Word[], { options }: ScannedWords): readonly Word[] {
  const marks = options.flatMap(({ name, value }) =>
    /^(?:I|i|replace)$/.test(name) ? [value?.text ?? "{}"] : [],
  );
  const counts = options.some(({ name }) => /^(?:n|max-args|L|l|max-lines)$/.test(name));
  const marked = words.map((word) => {
    const mark = marks.find((place) => word.text.includes(place));
    if (mark === undefined) return word;
    const isFirst = marks.some((place) => word.text.startsWith(place));
    return { ...word, literal: false, pathKnown: false, loose: word.loose || isFirst };
  });
  if (marks.length > 0 && !counts) return marked;
  return [...marked, { ...unknownWord(""), source: "", rendered: "" }];
}

/** Whether `xargs` takes each name for itself, splits its input at blanks and quotes, or neither is clear. */
function takenNames({ options }: ScannedWords): "whole" | "split" | undefined {
  const names = options.map(({ name }) => name);
  if (names.every((name) => splitting.has(name)))
    return names.some((name) => /^(?:0|null)$/.test(name)) ? "whole" : "split";
  return undefined;
}

const splitting = new Set("0 null n max-args P max-procs r no-run-if-empty t verbose x exit".split(" "));

function written(words: readonly Word[]): UsedPath[] {
  return words.filter(({ text }) => !/^\d+$/.test(text)).map((word) => ({ word, use: "write" }));
}
