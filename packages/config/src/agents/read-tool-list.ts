import type { Severity } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { parseToolEntry, rejoinEntries, splitEntries } from "../tools/tool-entry.ts";
import type { FrontmatterField } from "./read-frontmatter.ts";

interface ToolsReport {
  /** Adds a Finding about the field. */
  readonly report: (
    severity: Exclude<Severity, "error">,
    code: string,
    message: string,
    advice: string,
  ) => void;
  readonly unreadable: (reason: string) => undefined;
}

/** Reads `tools`: undefined is everything the parent has, an empty list is nothing. */
export function readTools(field: FrontmatterField, to: ToolsReport): readonly string[] | undefined {
  if (field.value === null) {
    to.report(
      "warning",
      "empty-tools",
      "`tools` is empty, which leaves the agent all tools.",
      "Name the tools, write `[]` for none, or remove the key.",
    );
    return undefined;
  }
  const entries = readWord(field, grantWords, to) ?? readToolList(field, to);
  return entries?.includes("*") ? undefined : entries;
}

/** Reads `disallowedTools`. An entry that names no tool would deny nothing, so it makes the field unreadable. */
export function readDisallowedTools(field: FrontmatterField, to: ToolsReport): readonly string[] | undefined {
  if (field.value === null) return undefined;
  const entries = readWord(field, toolWords, to) ?? readToolList(field, to);
  const odd = entries?.find((entry) => !toolName.test(parseToolEntry(entry).name));
  return odd === undefined ? entries : to.unreadable(`${JSON.stringify(odd.slice(0, 80))} names no tool`);
}

/** Servers and programs name their tools freely, but a blank means that several things were written into one entry. */
const toolName = /^[^\s!^-]\S*$/;

/** Words that people write for every tool or for none. */
function readWord(
  { key, value }: FrontmatterField,
  words: typeof toolWords,
  to: ToolsReport,
): readonly string[] | undefined {
  const word = typeof value === "string" ? value.trim().toLowerCase() : "";
  const meaning = words.get(word);
  if (meaning === undefined) return undefined;
  to.report(
    "warning",
    "tools-word",
    `\`${key}: ${word}\` was read as \`${meaning}\`.`,
    `Write \`${key}: ${meaning}\`.`,
  );
  return meaning === "[]" ? [] : ["*"];
}

const toolWords: ReadonlyMap<string, "[]" | '"*"'> = new Map([
  ["all", '"*"'],
  ["all tools", '"*"'],
  ["all available tools", '"*"'],
  ["none", "[]"],
]);
const grantWords: typeof toolWords = new Map([...toolWords, ["inherit", '"*"']]);

/** The entries of a list of tools, whichever way it is written. */
export function readToolList(field: FrontmatterField, to: ToolsReport): readonly string[] | undefined {
  const { value } = field;
  if (typeof value === "string") {
    return /^\[[^\]]*$/.test(value) ? to.unreadable("a bracket is never closed") : splitEntries(value);
  }
  if (!Array.isArray(value))
    return to.unreadable(isRecord(value) ? "it is a mapping, not a list" : "it is not a list");
  const entries = value
    .flat(3)
    .filter((entry) => entry !== null)
    .map(textOfEntry);
  if (!entries.every((entry) => entry !== undefined))
    return to.unreadable("an entry of the list is not a string");
  return rejoinEntries(entries).flatMap((entry) => (entry.includes(",") ? splitEntries(entry) : [entry]));
}

/** `- Bash(git log: *)` is a mapping to YAML; the parenthesis shows that it was meant as one text. */
function textOfEntry(entry: unknown): string | undefined {
  if (typeof entry === "string") return entry;
  const [[key, rest] = ["", undefined], ...more] = isRecord(entry) ? Object.entries(entry) : [];
  const isTorn = more.length === 0 && typeof rest === "string" && /\([^)]*$/.test(key);
  return isTorn ? `${key}: ${rest}` : undefined;
}
