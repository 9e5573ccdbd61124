import type { FoundOption, ScannedWords } from "../option-table.ts";
import type { OperandUse, PathOperand, UrlUse } from "../shell-analysis.ts";
import type { Word } from "../word.ts";

/** What a command with these arguments does, as far as its table or reader knows. */
export interface Judgement {
  /** Every word was understood, and it only reads. */
  readonly readOnly: boolean;
  /** Why a wildcard does not cover it: a word that is not understood, or one that starts a program or writes. */
  readonly exactOnly?: string;
  readonly wildcardHead?: string;
  /** Where present, a wildcard that reaches beyond `wildcardHead` must agree with these words. */
  readonly pinnedHead?: string;
  readonly paths: readonly UsedPath[];
  /** It does the same in every directory. */
  readonly anywhere?: boolean;
  readonly urls?: UrlUse;
  readonly showsTracked?: true;
  /** The words that are run in place of those that were given, to switch off what the tables cannot see. */
  readonly rendered?: readonly string[];
  /** The same, in a form to which paths that are to be left out can be appended. */
  readonly limited?: readonly string[];
}

export interface UsedPath {
  readonly word: Word;
  readonly use: OperandUse;
  readonly below?: PathOperand["below"];
}

/** Reads the words of one command. */
export type JudgeCommand = (words: readonly Word[], place: Place) => Judgement;

export interface Place {
  /** It runs in the directory of the call. */
  readonly here: boolean;
  /** The folder of the repository, where rules forbid some of its paths. */
  readonly repository?: string | undefined;
}

/** A judgement with the first reason that was found, if any. */
export function judgement(
  readOnly: boolean,
  paths: readonly UsedPath[],
  reasons: readonly (string | undefined)[] = [],
): Judgement {
  const exactOnly = reasons.find((reason) => reason !== undefined);
  if (exactOnly === undefined) return { readOnly, paths, anywhere: true };
  return { readOnly: false, exactOnly, paths, anywhere: true };
}

export function used(words: readonly Word[], use: OperandUse): UsedPath[] {
  return words.map((word) => ({ word, use }));
}

/** The first option that starts a program or writes a file. */
export function optionRisk(program: string, { options }: Pick<ScannedWords, "options">): string | undefined {
  const found = options.find(
    ({ signs, value }) => signs.includes("!") || (signs.includes(">") && value?.text !== "-"),
  );
  if (found === undefined) return undefined;
  const option = `${found.name.length === 1 ? "-" : "--"}${found.name}`;
  return `the option ${option} of ${program} starts a program or writes a file`;
}

export function optionPaths(options: readonly FoundOption[]): UsedPath[] {
  return options.flatMap(({ signs, value }) => {
    if (value === undefined) return [];
    const paths: UsedPath[] = [];
    if (signs.includes(">")) paths.push({ word: value, use: "write" });
    if (signs.includes("<")) paths.push({ word: value, use: "read" });
    const file = signs.includes("@") ? /^(?:[^@<]*[=])?[@<](.+)$/s.exec(value.text)?.[1] : undefined;
    if (file !== undefined) paths.push({ word: { ...value, text: file, path: file }, use: "read" });
    return paths;
  });
}

/** A word whose value would show what is in the environment. */
export function environmentReason(words: readonly Word[]): string | undefined {
  const name = words.find(({ environment }) => environment !== undefined)?.environment;
  return name === undefined ? undefined : `the value of the variable ${name} is not known`;
}
