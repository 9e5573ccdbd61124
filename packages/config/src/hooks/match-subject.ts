import { Script } from "node:vm";
import { knownToolNames, namesOfTool } from "@retinue/base/foundation/tool-table.ts";

export type SubjectMatch = "match" | "no-match" | "unusable";

/** Subjects are names; a longer one is compared by its beginning, so that no expression has much to work on. */
const subjectLimit = 500;
const patternLimit = 2_000;
/** A busy machine may make any expression slow once, so a second and longer try follows. */
const tries = [100, 400] as const;

/**
 * Compares a matcher with a subject, by the names that it is known by; those of a tool by default. Absent, empty and `*` match everything; names, alone or with bars or commas
 * between them, match exactly; anything else is a regular expression that may match anywhere. An expression that is
 * broken, or slow enough to look endless, is unusable.
 */
export function matchSubject(
  matcher: string | undefined,
  subject: string,
  names: readonly string[] = namesOfTool(subject),
): SubjectMatch {
  const written = matcher?.trim() ?? "";
  if (written === "" || written === "*") return "match";
  if (/^[\w\-\s,|]*$/.test(written)) {
    // `bash` can mean no other tool than Bash; where case tells subjects apart, the caller gives their names.
    const listed = written.split(/[|,]/).map((name) => name.trim());
    const folds = knownToolNames.has(subject);
    const isNamed = (name: string): boolean =>
      names.some((known) => known === name || (folds && known.toLowerCase() === name.toLowerCase()));
    return listed.some(isNamed) ? "match" : "no-match";
  }
  // `^(?!Read$)` leaves Read out, whatever else Read was once called: an old name counts only where the expression has it.
  const meant = names.filter((name, at) => at === 0 || written.includes(name));
  return testBounded(
    written,
    meant.map((name) => name.slice(0, subjectLimit)),
  );
}

/** Whether an expression matches one of these names. */
export function matchesSome(pattern: string, names: Iterable<string>): boolean {
  return testBounded(pattern, [...names]) === "match";
}

/** Runs in this same context but under a time limit, which a plain `test` cannot have. */
function testBounded(pattern: string, names: readonly string[]): SubjectMatch {
  if (pattern.length > patternLimit) return "unusable";
  const code = `{ const pattern = new RegExp(${JSON.stringify(pattern)}); ${JSON.stringify(names)}.some((name) => pattern.test(name)); }`;
  const script = new Script(code);
  for (const timeout of tries) {
    try {
      return script.runInThisContext({ timeout }) === true ? "match" : "no-match";
    } catch (error) {
      if (!wasSlow(error)) return "unusable";
    }
  }
  return "unusable";
}

function wasSlow(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}
