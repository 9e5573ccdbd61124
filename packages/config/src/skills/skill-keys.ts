import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { bareKey } from "../agents/agent-vocabulary.ts";
import type { KeyVocabulary } from "../agents/read-frontmatter.ts";

/** Every field a skill may have, as it is written. */
export const skillKeys = [
  "name",
  "description",
  "when_to_use",
  "argument-hint",
  "arguments",
  "disable-model-invocation",
  "user-invocable",
  "allowed-tools",
  "disallowed-tools",
  "model",
  "effort",
  "context",
  "agent",
  "background",
  "hooks",
  "paths",
  "shell",
  "metadata",
  "license",
  "compatibility",
] as const;

export type SkillKey = (typeof skillKeys)[number];

/** Fields that take something away from a model: misread, they would leave open what should be closed. */
const restrictingSkillKeys: ReadonlySet<SkillKey> = new Set([
  "disable-model-invocation",
  "user-invocable",
  "disallowed-tools",
  "hooks",
]);

type SkillKeyMeaning =
  | { readonly type: "known" | "misspelt"; readonly key: SkillKey }
  | { readonly type: "unknown"; readonly nearest?: SkillKey };

/** What a key written by a person means. Grants are taken only from a clear spelling, limits also from a slip. */
export function meaningOfSkillKey(written: string): SkillKeyMeaning {
  const exact = skillKeys.find((key) => key === written);
  if (exact !== undefined) return { type: "known", key: exact };
  const misspelt = isSentenceWord(written) ? undefined : spellings.get(bareKey(written));
  if (misspelt !== undefined) return { type: "misspelt", key: misspelt };
  const meant = otherWords.get(bareKey(written));
  if (meant !== undefined) return { type: "unknown", nearest: meant };
  // nearestName gives back one of the names it was given.
  const nearest = nearestName(written, longKeys) as SkillKey | undefined;
  if (nearest === undefined) return { type: "unknown" };
  const isOneSlip = isLimit(nearest) && nearestName(written, [nearest], 1) !== undefined;
  return isOneSlip ? { type: "misspelt", key: nearest } : { type: "unknown", nearest };
}

export const skillVocabulary: KeyVocabulary = {
  meaningOf: meaningOfSkillKey,
  prose: new Set<SkillKey>(["description", "when_to_use", "argument-hint", "license", "compatibility"]),
  restricting: restrictingSkillKeys,
  structured: new Set<SkillKey>(["hooks"]),
};

/** `user-invocable` only says where a skill is offered, and other programs have a key of their own that looks like it. */
function isLimit(key: SkillKey): boolean {
  return restrictingSkillKeys.has(key) && key !== "user-invocable";
}

/** `Context: the user …` opens a line of an example dialogue; only the lower-case word is a field. */
function isSentenceWord(written: string): boolean {
  return /^[A-Z][a-z]+$/.test(written) && !/^(?:Name|Description)$/.test(written);
}

const longKeys: readonly SkillKey[] = skillKeys.filter((key) => key.length > 5);

/** Spellings without case, hyphens and underscores. */
const spellings: ReadonlyMap<string, SkillKey> = new Map<string, SkillKey>([
  ...skillKeys.map((key): [string, SkillKey] => [bareKey(key), key]),
  ["disallowedtool", "disallowed-tools"],
  ["deniedtools", "disallowed-tools"],
  ["forbiddentools", "disallowed-tools"],
  ["blockedtools", "disallowed-tools"],
]);

/** Words of other formats that people may have meant as a field, but that are not taken for it. */
const otherWords: ReadonlyMap<string, SkillKey> = new Map<string, SkillKey>([
  ["tools", "allowed-tools"],
  ["allowedtool", "allowed-tools"],
  ["globs", "paths"],
  ["args", "arguments"],
]);
