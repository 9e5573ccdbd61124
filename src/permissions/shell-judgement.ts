import type { PathOperand } from "./shell-types.ts";
import type { Word } from "./shell-word.ts";

/** What a command with these arguments does, as far as its table or reader knows. */
export interface Judgement {
  readonly readOnly: boolean;
  readonly exactOnly?: string;
  readonly wildcardHead?: string;
  readonly paths: readonly UsedPath[];
}

export interface UsedPath {
  readonly word: Word;
  readonly use: PathOperand["use"];
  readonly below?: true;
}

/** Reads the words of one command; `here` tells that it runs in the directory of the call. */
export type JudgeCommand = (words: readonly Word[], here: boolean) => Judgement;

/** A judgement with the first reason that was found, if any. */
export function judgement(
  readOnly: boolean,
  paths: readonly UsedPath[],
  reasons: readonly (string | undefined)[] = [],
): Judgement {
  const exactOnly = reasons.find((reason) => reason !== undefined);
  if (exactOnly === undefined) return { readOnly, paths };
  return { readOnly: false, exactOnly, paths };
}

export function used(words: readonly Word[], use: UsedPath["use"]): UsedPath[] {
  return words.map((word) => ({ word, use }));
}
