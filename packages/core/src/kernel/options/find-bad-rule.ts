import { parseToolEntry, resolveToolName } from "@retinue/config/tools/tool-entry.ts";
import { parseRule, type RuleList } from "@retinue/gate/rules/parse-rule.ts";

export { splitEntries } from "@retinue/config/tools/tool-entry.ts";
export type { RuleList } from "@retinue/gate/rules/parse-rule.ts";

/** Whether a word can only be meant as a tool or a rule for one: `Read`, `Bash(git *)`, `mcp__github`. */
export function isToolEntry(text: string): boolean {
  const { type, name } = parseToolEntry(text);
  if (type === "malformed" || !/^[A-Za-z_][\w-]*$/.test(name)) return false;
  const meaning = resolveToolName(name);
  // A name in other letters is more likely a word of a sentence.
  return meaning.type !== "unknown" && !(meaning.type === "renamed" && meaning.reason === "letter-case");
}

/** The first rule of a list that cannot be understood, with what to write instead. */
export function findBadRule(
  list: RuleList,
  rules: readonly string[],
): { readonly reason: string; readonly advice: string } | undefined {
  for (const text of rules) {
    const reading = parseRule(text, { list });
    if (reading.type !== "rule") return { reason: reading.reason, advice: reading.advice };
  }
  return undefined;
}
