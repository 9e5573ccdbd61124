import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { type DefinitionKey, definitionKeys, fieldOf } from "./agent-definition.ts";
import type { KeyVocabulary } from "./read-frontmatter.ts";

/** Fields that limit what an agent may do: present but unreadable, they make the file an error instead of a guess. */
const restrictingKeys = keysWhere("restricts");

/** What a key written by a person means. A misspelt key is honoured, because ignoring `allowed-tools` would grant everything. */
type KeyMeaning =
  | { readonly type: "known"; readonly key: DefinitionKey }
  | { readonly type: "misspelt"; readonly key: DefinitionKey }
  | { readonly type: "unknown"; readonly nearest?: DefinitionKey };

export function meaningOfKey(written: string): KeyMeaning {
  const exact = canonical.get(written);
  if (exact !== undefined) return { type: "known", key: exact };
  const misspelt = spellings.get(bareKey(written));
  if (misspelt !== undefined) return { type: "misspelt", key: misspelt };
  // nearestName gives back one of the names it was given.
  const nearest = nearestName(written, definitionKeys) as DefinitionKey | undefined;
  if (nearest === undefined) return { type: "unknown" };
  const isOneSlip = restrictingKeys.has(nearest) && nearestName(written, [nearest], 1) !== undefined;
  return isOneSlip ? { type: "misspelt", key: nearest } : { type: "unknown", nearest };
}

export const agentVocabulary: KeyVocabulary = {
  meaningOf: meaningOfKey,
  prose: keysWhere("isProse"),
  restricting: restrictingKeys,
  structured: keysWhere("isNested"),
};

const canonical: ReadonlyMap<string, DefinitionKey> = new Map(definitionKeys.map((key) => [key, key]));

/** What people write for a field, without case, hyphens and underscores. */
const spellings: ReadonlyMap<string, DefinitionKey> = new Map(
  definitionKeys.flatMap((key) =>
    [bareKey(key), ...(fieldOf(key).spellings?.split(" ") ?? [])].map((word) => [word, key] as const),
  ),
);

function keysWhere(trait: "restricts" | "isProse" | "isNested"): ReadonlySet<string> {
  return new Set(definitionKeys.filter((key) => fieldOf(key)[trait] === true));
}

export function bareKey(key: string): string {
  return key.toLowerCase().replace(/[-_\s]/g, "");
}
