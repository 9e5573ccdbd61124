import type { Place } from "../foundation/diagnostic.ts";
import { agentVocabulary, type KeyVocabulary } from "./definition-keys.ts";

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

export interface EntriesReading {
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
