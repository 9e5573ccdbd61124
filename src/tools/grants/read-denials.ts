import type { Issue } from "../../foundation/diagnostic.ts";
import { type AvailableTool, matchTools } from "./match-tools.ts";
import { splitEntries } from "./split-entries.ts";
import { parseToolEntry, type ToolEntry } from "./tool-entry.ts";
import { describeMatch, describeSpecifiers, issue } from "./withheld-tool.ts";

/** What the entries of `disallowedTools` say, for the agents below as well. */
export interface Exclusions {
  /** Rules about some calls of a tool, as in `Bash(rm *)`. */
  readonly deny?: readonly string[];
  /** Entries that take a whole tool away, as written. */
  readonly removes?: readonly string[];
}

/** What `disallowedTools` takes from the tools that there are. */
export interface Denials {
  readonly whole: ReadonlySet<string>;
  readonly scoped: ReadonlyMap<string, readonly string[]>;
  readonly exclusions: Exclusions;
}

export function readDenials(
  entries: readonly string[],
  available: readonly AvailableTool[],
  notes: Issue[],
): Denials {
  const whole = new Set<string>();
  const scoped = new Map<string, readonly string[]>();
  const removes: string[] = [];
  const unmatched: string[] = [];
  for (const [index, text] of entries.entries()) {
    const entry = parseDenial(text);
    const match = matchTools(entry.name, available);
    const path = ["disallowedTools", index];
    notes.push(...describeMatch(text, match, path));
    if (entry.type === "malformed") notes.push(issue("malformed-denial", text, path));
    if (entry.type !== "scoped") removes.push(text);
    else if (match.tools.length === 0) unmatched.push(text.trim());
    for (const tool of match.tools) {
      if (entry.type !== "scoped") {
        whole.add(tool.name);
        continue;
      }
      const texts = denials(tool, entry.specifier);
      notes.push(...describeSpecifiers(tool.name, texts, path));
      scoped.set(tool.name, [...(scoped.get(tool.name) ?? []), ...texts]);
    }
  }
  const rules = [...scoped].flatMap(([name, texts]) => texts.map((text) => `${name}(${text})`));
  const deny = [...rules, ...unmatched];
  const exclusions = {
    ...(deny.length === 0 ? {} : { deny }),
    ...(removes.length === 0 ? {} : { removes }),
  };
  return { whole, scoped, exclusions };
}

/** The tools that entries of `disallowedTools` take away whole. */
export function removedTools(
  entries: readonly string[],
  available: readonly AvailableTool[],
): ReadonlySet<string> {
  return readDenials(entries, available, []).whole;
}

/**
 * `Agent(a, b)` names two agents. `Bash(git add:*, git commit:*)` names two prefixes, as `:*` can only end a pattern.
 * Any other specifier is one rule, commas and all.
 */
export function specifiers(tool: AvailableTool, specifier: string): readonly string[] {
  if (tool.effect === "spawn") return splitEntries(specifier);
  if (tool.effect !== "execute" || !specifier.includes(":*,")) return [specifier];
  const patterns = specifier.split(",").map((pattern) => pattern.trim());
  return patterns.every((pattern) => pattern.endsWith(":*")) ? patterns : [specifier];
}

/** `Write (all files)` is a remark and no specifier: taken for one, it would deny nothing. `**` denies everything. */
function parseDenial(text: string): ToolEntry {
  const entry = parseToolEntry(text);
  if (entry.type === "scoped" && entry.specifier === "**") return { type: "whole", name: entry.name };
  return entry.type === "scoped" && /\s$/.test(text.slice(0, text.indexOf("(")))
    ? { type: "malformed", name: entry.name }
    : entry;
}

/** A comma may be part of a pattern or are between two; in a denial both readings hold. */
function denials(tool: AvailableTool, specifier: string): readonly string[] {
  const rules = specifiers(tool, specifier);
  return rules.length === 1 && specifier.includes(",") ? [...rules, ...splitEntries(specifier)] : rules;
}
