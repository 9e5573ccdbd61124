import { nearestName } from "../foundation/nearest-name.ts";

/** Every field a definition may have, by its canonical name. */
export const definitionKeys = [
  "name",
  "description",
  "tools",
  "disallowedTools",
  "model",
  "permissionMode",
  "maxTurns",
  "skills",
  "mcpServers",
  "hooks",
  "memory",
  "color",
  "background",
  "effort",
  "isolation",
  "initialPrompt",
  "omitClaudeMd",
  "criticalSystemReminder_EXPERIMENTAL",
  "forkContext",
  "limits",
] as const;

export type DefinitionKey = (typeof definitionKeys)[number];

/** Fields that limit what an agent may do: present but unreadable, they make the file an error instead of a guess. */
export const restrictingKeys: ReadonlySet<DefinitionKey> = new Set([
  "tools",
  "disallowedTools",
  "permissionMode",
  "hooks",
  "isolation",
]);

/** Fields of prose, in which a line that looks like `user: …` belongs to the text. */
export const proseKeys: ReadonlySet<string> = new Set<DefinitionKey>([
  "description",
  "initialPrompt",
  "criticalSystemReminder_EXPERIMENTAL",
]);

/** What a key written by a person means. A misspelt key is honoured, because ignoring `allowed-tools` would grant everything. */
export type KeyMeaning =
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

/** What a reader of frontmatter must know of a kind of file: its keys, and which of them hold prose, limits or structure. */
export interface KeyVocabulary {
  readonly meaningOf: (
    written: string,
  ) => { readonly type: "known" | "misspelt"; readonly key: string } | { readonly type: "unknown" };
  readonly prose: ReadonlySet<string>;
  readonly restricting: ReadonlySet<string>;
  /** Fields of nested keys, which are never guessed from text. */
  readonly structured: ReadonlySet<string>;
}

export const agentVocabulary: KeyVocabulary = {
  meaningOf: meaningOfKey,
  prose: proseKeys,
  restricting: restrictingKeys,
  structured: new Set<DefinitionKey>(["hooks", "mcpServers", "limits"]),
};

const canonical: ReadonlyMap<string, DefinitionKey> = new Map(definitionKeys.map((key) => [key, key]));

/** Other words people write for a field, without case, hyphens and underscores. */
const spellings: ReadonlyMap<string, DefinitionKey> = new Map<string, DefinitionKey>([
  ...definitionKeys.map((key): [string, DefinitionKey] => [bareKey(key), key]),
  ["allowedtools", "tools"],
  ["allowtools", "tools"],
  ["toolsallowed", "tools"],
  ["availabletools", "tools"],
  ["disallowed", "disallowedTools"],
  ["disallowtools", "disallowedTools"],
  ["toolsdisallowed", "disallowedTools"],
  ["deniedtools", "disallowedTools"],
  ["denytools", "disallowedTools"],
  ["toolsdenied", "disallowedTools"],
  ["disabledtools", "disallowedTools"],
  ["excludedtools", "disallowedTools"],
  ["excludetools", "disallowedTools"],
  ["forbiddentools", "disallowedTools"],
  ["blockedtools", "disallowedTools"],
  ["mcpserver", "mcpServers"],
  ["criticalsystemreminder", "criticalSystemReminder_EXPERIMENTAL"],
  ["colour", "color"],
]);

function bareKey(key: string): string {
  return key.toLowerCase().replace(/[-_\s]/g, "");
}
