import type { Place } from "@retinue/base/foundation/diagnostic.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { type DefinitionKey, definitionKeys, fieldOf } from "./agent-definition.ts";

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

/** One top-level key of a frontmatter with all lines that belong to it. */
export interface FrontmatterEntry {
  readonly key: string;
  /** The text behind the colon on the key's own line. */
  readonly head: string;
  /** The lines below, as they are. */
  readonly below: readonly string[];
  /** Index of the key's line within the frontmatter, from 0. */
  readonly index: number;
}

interface EntriesReading {
  readonly entries: readonly FrontmatterEntry[];
  /** Indexes of lines that belong to no key. */
  readonly stray: readonly number[];
}

const keyLine = /^(["']?)([A-Za-z_][\w.-]*(?: [A-Za-z][\w-]*)?)\1[ \t]*:(?:\s+(.*)|)$/;
/** `name:value` without the blank; only believed for known keys. */
const tightKeyLine = /^([A-Za-z_][\w-]*):(\S.*)$/;
/** Speakers and headings of example dialogues that people paste below a description. */
const dialogueWord =
  /^(?:user|assistant|human|context|examples?|commentary|system|note|input|output|response|reasoning|scenario|task)$/i;

/** Cuts frontmatter lines into entries without a YAML parser, the way a person would read them. */
export function splitEntriesByKey(
  lines: readonly string[],
  vocabulary: KeyVocabulary = agentVocabulary,
): EntriesReading {
  const entries: { key: string; head: string; below: string[]; index: number }[] = [];
  const stray: number[] = [];
  const atMargin = new Set(lines.map((line) => /^[\w-]+(?=:)/.exec(line)?.[0]));
  let openQuote: string | undefined;
  for (const [index, line] of lines.entries()) {
    const current = entries.at(-1);
    const start =
      startOfEntry(line, current?.key, vocabulary, openQuote) ??
      startOfSlippedEntry(line, current, atMargin, vocabulary);
    if (start !== undefined) {
      entries.push({ ...start, below: [], index });
      openQuote = /^(["'])(?!.*\1$)/.exec(start.head)?.[1];
    } else if (current !== undefined) {
      current.below.push(line);
      if (openQuote !== undefined && line.trimEnd().endsWith(openQuote)) openQuote = undefined;
    } else if (line.trim() !== "" && !line.startsWith("#")) stray.push(index);
  }
  return { entries, stray };
}

function startOfEntry(
  line: string,
  currentKey: string | undefined,
  vocabulary: KeyVocabulary,
  openQuote?: string,
): { key: string; head: string } | undefined {
  const match = keyLine.exec(line);
  if (match === null) {
    const tight = tightKeyLine.exec(line);
    if (tight === null || vocabulary.meaningOf(tight[1] ?? "").type !== "known") return undefined;
    return { key: tight[1] ?? "", head: (tight[2] ?? "").trim() };
  }
  const key = match[2] ?? "";
  const start = { key, head: (match[3] ?? "").trim() };
  if (vocabulary.meaningOf(key).type !== "unknown") return start;
  if (currentKey === undefined || !isProse(currentKey, vocabulary)) return start;
  return openQuote === undefined && looksLikeField(key) ? start : undefined;
}

/**
 * A key that slipped to the right by a few spaces: the first one, or a limit that would drown in the text above it and
 * is nowhere else.
 */
function startOfSlippedEntry(
  line: string,
  current: Pick<FrontmatterEntry, "key" | "head"> | undefined,
  atMargin: ReadonlySet<string | undefined>,
  vocabulary: KeyVocabulary,
): { key: string; head: string } | undefined {
  const key = /^ {1,3}([\w-]+):/.exec(line)?.[1];
  if (key === undefined || vocabulary.meaningOf(key).type !== "known" || atMargin.has(key)) return undefined;
  const start = startOfEntry(line.trimStart(), undefined, vocabulary);
  if (current === undefined) return start;
  const isPlainProse = isProse(current.key, vocabulary) && /^[^|>"'[{]/.test(current.head);
  return isPlainProse && vocabulary.restricting.has(key) ? start : undefined;
}

function isProse(key: string, vocabulary: KeyVocabulary): boolean {
  const meaning = vocabulary.meaningOf(key);
  return meaning.type !== "unknown" && vocabulary.prose.has(meaning.key);
}

/** Inside prose only a plain lower-case word that is no speaker starts a new field. */
function looksLikeField(key: string): boolean {
  return /^[a-z][\w.-]*$/.test(key) && !dialogueWord.test(key);
}

/** The place of an entry's key in the file. */
export function placeOfEntry(entry: FrontmatterEntry, firstLine: number, indent: number): Place {
  return { line: firstLine + entry.index, column: indent + 1, length: entry.key.length };
}
