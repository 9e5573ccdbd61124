import { optionPaths } from "./shell-command-spec.ts";
import type { UsedPath } from "./shell-judgement.ts";
import { optionTable, scanOptions } from "./shell-options.ts";
import { unknownWord, type Word } from "./shell-word.ts";
import { wrapperSpecs } from "./shell-wrapper-specs.ts";

/** What a command that starts another one starts. */
export interface Unwrapped {
  /** The inner command, or shell text. */
  readonly inner: readonly Word[];
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
  const given = spec.numeric === true && /^--?\d+$/.test(words[1]?.text ?? "") ? words.slice(1) : words;
  const scanned = scanOptions(given.slice(1), tables.get(name) ?? new Map(), true);
  const unclear = { type: "unclear", reason: `what ${name} starts is not clear` } as const;
  if (scanned.strange !== undefined || scanned.loose) return unclear;
  const before = given.slice(scanned.taken + 1, scanned.taken + 1 + (spec.before ?? 0));
  if (before.some(({ loose }) => loose)) return unclear;
  const after = given.slice(scanned.taken + 1 + before.length);
  const operands = name === "env" && after[0]?.text === "-" ? after.slice(1) : after;
  const count = spec.assignments === true ? countAssignments(operands) : 0;
  const inner = operands.slice(count);
  const option = (...names: string[]) => scanned.options.find((found) => names.includes(found.name));
  const text = option(...(spec.textOptions?.split(" ") ?? []));
  if (text?.value !== undefined) inner.unshift(text.value);
  if (inner.length === 0) return { type: "none" };
  if (inner[0]?.loose === true) return unclear;
  const directory = option(...(spec.directory?.split(" ") ?? []))?.value;
  const risky = scanned.options.find(({ signs }) => /[!>]/.test(signs));
  const reason =
    spec.reason ?? (risky === undefined ? undefined : `the option ${risky.name} of ${name} does more`);
  const isText =
    (spec.text === true && option("x", "exec") === undefined) ||
    text?.value !== undefined ||
    (spec.textAfterC === true && inner[0]?.text === "-c");
  const arguments_ = isText && inner[0]?.text === "-c" ? inner.slice(1) : inner;
  return {
    type: "inner",
    unwrapped: {
      inner: name === "xargs" ? withArguments(arguments_, option("I", "i", "replace")) : arguments_,
      isText,
      variables: operands.slice(0, count).map(({ text: pair }) => pair.slice(0, pair.indexOf("="))),
      paths: [...optionPaths(scanned.options), ...(spec.writesBefore === true ? written(before) : [])],
      ...(reason !== undefined && { reason }),
      ...(directory !== undefined && { directory }),
    },
  };
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

/** `xargs` puts words from its input at the end, or in the place of a mark. */
function withArguments(words: readonly Word[], mark: { readonly value?: Word } | undefined): readonly Word[] {
  if (mark === undefined) return [...words, { ...unknownWord(""), source: "" }];
  const place = mark.value?.text ?? "{}";
  return words.map((word) =>
    word.text.includes(place)
      ? { ...word, literal: false, pathKnown: false, loose: word.loose || word.text.startsWith(place) }
      : word,
  );
}

function written(words: readonly Word[]): UsedPath[] {
  return words.filter(({ text }) => !/^\d+$/.test(text)).map((word) => ({ word, use: "write" }));
}
