import { kindOf, shown } from "../foundation/json-value.ts";
import type { DocumentPath, Issue } from "../foundation/diagnostic.ts";

export type MatcherReading =
  | { readonly type: "matcher"; readonly matcher?: string; readonly issues: readonly Issue[] }
  | { readonly type: "invalid"; readonly issues: readonly Issue[] };

/** Reads a `matcher`. Absent, empty and `*` are all "everything"; a list of names is joined with `|`. */
export function readHookMatcher(value: unknown, path: DocumentPath): MatcherReading {
  const text =
    Array.isArray(value) && value.every((name) => typeof name === "string") ? value.join("|") : value;
  if (text === undefined || text === null) return { type: "matcher", issues: [] };
  if (typeof text !== "string") {
    return { type: "invalid", issues: [wrongKind(value, path)] };
  }
  if (text.trim() === "" || text.trim() === "*") return { type: "matcher", issues: [] };
  return { type: "matcher", matcher: text, issues: isPattern(text) ? [] : [notAPattern(text, path)] };
}

/** Letters, digits, `_`, `-`, blanks, commas and bars are names; everything else must be a regular expression. */
function isPattern(text: string): boolean {
  if (/^[\w\-\s,|]*$/.test(text)) return true;
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

function wrongKind(value: unknown, path: DocumentPath): Issue {
  return {
    severity: "error",
    code: "hook-matcher-invalid",
    message: `A matcher is a text, but here it is ${kindOf(value)}; these hooks were left out.`,
    advice:
      'Write the names with bars between them, as in "Edit|Write", or leave the matcher out to match everything.',
    path,
  };
}

function notAPattern(text: string, path: DocumentPath): Issue {
  return {
    severity: "warning",
    code: "hook-matcher-not-a-pattern",
    message: `The matcher ${shown(text)} is neither a list of names nor a regular expression; it cannot match as meant.`,
    advice: 'Write "*" for everything, names as in "Edit|Write", or a regular expression such as "mcp__.*".',
    path,
  };
}
