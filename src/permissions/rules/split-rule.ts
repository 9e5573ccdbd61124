import { shown } from "../../foundation/json-record.ts";

export type RuleParts =
  | { readonly type: "parts"; readonly tool: string; readonly specifier?: string }
  | { readonly type: "invalid"; readonly reason: string; readonly advice: string };

/** Parts the tool's name from what is in the parentheses after it. */
export function splitRule(text: string): RuleParts {
  const rule = text.trim();
  if (rule === "") return invalid("the rule is empty", "Remove it, or write a tool such as Read.");
  if (forbiddenCharacters.test(rule)) {
    return invalid(
      `${shown(rule)} has a control character in it`,
      "Remove the character; it is often left from copying.",
    );
  }
  const open = rule.indexOf("(");
  if (open === -1) {
    if (rule.includes(")"))
      return invalid(`${shown(rule)} closes a parenthesis that was not opened`, 'Add "(" after the tool.');
    return { type: "parts", tool: rule };
  }
  const end = closingParenthesis(rule, open);
  if (end === undefined)
    return invalid(`${shown(rule)} is missing the closing parenthesis`, 'End the rule with ")".');
  if (end !== rule.length - 1 && !isCommandWithLoneParenthesis(rule, end)) {
    return invalid(
      `in ${shown(rule)} there is text after the closing parenthesis`,
      "Write one rule per entry.",
    );
  }
  const specifier = rule.slice(open + 1, -1);
  if (specifier.trim() === "") {
    return invalid(
      `${shown(rule)} has nothing in its parentheses`,
      `Write ${rule.slice(0, open)} for every call of the tool.`,
    );
  }
  return { type: "parts", tool: rule.slice(0, open), specifier };
}

/** Saved shell commands hold `:)` or `case x in a)`; where a parenthesis opens again, two things were pasted into one. */
function isCommandWithLoneParenthesis(rule: string, end: number): boolean {
  return /^(?:Bash|PowerShell)\(/.test(rule) && rule.endsWith(")") && !rule.includes("(", end);
}

/** Tabs and line ends are in saved multi-line commands; no other control character belongs into a rule. */
const forbiddenCharacters = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

/**
 * Where the first parenthesis closes. Saved commands have lone parentheses inside quotes, so where plain counting does
 * not come out at the end of the rule, quoted text is left aside.
 */
function closingParenthesis(rule: string, open: number): number | undefined {
  const plain = countToEnd(rule, open, false);
  if (plain === rule.length - 1) return plain;
  const quoted = countToEnd(rule, open, true);
  return quoted === rule.length - 1 ? quoted : plain;
}

function countToEnd(rule: string, open: number, skipQuoted: boolean): number | undefined {
  let depth = 0;
  let quote: string | undefined;
  for (let at = open; at < rule.length; at += 1) {
    const character = rule[at];
    if (character === "\\") at += 1;
    else if (quote !== undefined) quote = character === quote ? undefined : quote;
    else if (skipQuoted && (character === '"' || character === "'")) quote = character;
    else if (character === "(") depth += 1;
    else if (character === ")") {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return undefined;
}

function invalid(reason: string, advice: string): RuleParts {
  return { type: "invalid", reason, advice };
}
