import type { FieldReport } from "../definitions/field-readers.ts";
import type { FrontmatterField } from "../definitions/read-frontmatter.ts";
import { readToolList } from "../definitions/tool-list-fields.ts";
import { canonicalToolName } from "../foundation/tool-aliases.ts";
import { specifierKind } from "../permissions/rule-tools.ts";
import { splitWords } from "../tools/list-field.ts";
import { resolveToolName } from "../tools/tool-names.ts";

/** Reads `allowed-tools`. In a list each entry is one rule: `["Bash git status"]` must not become a grant of all of Bash. */
export function readAllowedRules(field: FrontmatterField, to: FieldReport): readonly string[] | undefined {
  const entries = readRules(field, to);
  return Array.isArray(field.value) ? entries : entries?.flatMap(splitAtSpaces);
}

/** Reads `disallowed-tools`. An entry with spaces denies each tool that it names, since as one rule it would deny nothing. */
export function readDisallowedRules(field: FrontmatterField, to: FieldReport): readonly string[] | undefined {
  return readRules(field, to)?.flatMap(splitAtSpaces);
}

function readRules(field: FrontmatterField, to: FieldReport): readonly string[] | undefined {
  if (field.value === null) return undefined;
  const word = typeof field.value === "string" ? words.get(field.value.trim().toLowerCase()) : undefined;
  if (word !== undefined) {
    const meaning = word.length === 0 ? "[]" : '"*"';
    const message = `\`${field.key}: ${String(field.value).trim()}\` was read as \`${meaning}\`.`;
    to.report("warning", "tools-word", message, `Write \`${field.key}: ${meaning}\`.`);
    return word;
  }
  return readToolList(field, to);
}

/**
 * Blanks separate too, unless the words are a sentence or a parenthesis stands alone, as in `Bash (git status)`: read as
 * two, that would grant all of Bash.
 */
function splitAtSpaces(entry: string): readonly string[] {
  const pieces = splitWords(entry);
  const isList =
    pieces.some(isTool) && pieces.every((piece) => toolLike.test(piece) && !sentenceWord.test(piece));
  return isList && !isCommandLine(pieces) ? pieces : [entry];
}

/** `Bash git status` is a command written without parentheses, and no list of three tools. */
function isCommandLine(pieces: readonly string[]): boolean {
  return pieces.some((piece, at) => {
    const next = pieces[at + 1];
    return specifierKind(canonicalToolName(piece)) === "command" && next !== undefined && !isTool(next);
  });
}

const toolLike = /^[\w*][^\s()]*(?:\(.*\))?$/s;
const sentenceWord =
  /^(?:a|access|all|an|and|any|are|as|files?|for|if|in|is|no|not|of|on|only|or|the|to|tools?|via|when|with)$|[.:;!?]$/i;

function isTool(word: string): boolean {
  const name = word.replace(/\(.*$/s, "");
  return /^(?:[A-Z][A-Za-z0-9]*|\*|\w+_\S*)$/.test(name) || resolveToolName(name).type !== "unknown";
}

/** Words that people write for every tool or for none. */
const words: ReadonlyMap<string, readonly string[]> = new Map([
  ["all", ["*"]],
  ["all tools", ["*"]],
  ["all available tools", ["*"]],
  ["none", []],
]);
