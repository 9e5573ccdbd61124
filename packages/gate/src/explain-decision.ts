import { canonicalToolName, toolFacts } from "@retinue/base/foundation/tool-table.ts";
import { type Decision, describeRule } from "./decide.ts";
import { splitRule } from "./rules/parse-rule.ts";

/** A decision in lines for people: the answer, the reason, and where the rule is that decided. */
export function explainDecision({ type, reason, rule }: Decision): readonly string[] {
  const answer = { allow: "allowed", ask: "asked", deny: "denied" }[type];
  if (rule === undefined) return [answer, `because ${reason}`, "decided by no rule"];
  const place = rule.from === undefined ? "given with the call" : `from ${rule.from}`;
  return [
    answer,
    `because ${reason}`,
    `decided by ${describeRule({ rule: rule.rule, anchor: rule.anchor })}, ${place}`,
  ];
}

export type CallText =
  | { readonly type: "call"; readonly tool: string; readonly input: Readonly<Record<string, unknown>> }
  | { readonly type: "invalid"; readonly reason: string; readonly advice: string };

/** Reads a call that is written like a rule: `Bash(git push)`, `Read(src/a.ts)`, `WebFetch(https://example.com)`. */
export function readCallText(text: string): CallText {
  const parts = splitRule(text);
  if (parts.type === "invalid") return parts;
  const tool = canonicalToolName(parts.tool);
  if (parts.specifier === undefined) return { type: "call", tool, input: {} };
  const facts = toolFacts.get(tool);
  const field = facts?.callField ?? facts?.mainField;
  if (field !== undefined) return { type: "call", tool, input: { [field]: parts.specifier } };
  return {
    type: "invalid",
    reason: `${tool} has no field that a specifier could match`,
    advice: `Write ${tool} alone.`,
  };
}
