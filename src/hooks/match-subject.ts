import { Script } from "node:vm";

export type SubjectMatch = "match" | "no-match" | "unusable";

/** Subjects are names; a longer one is compared by its beginning, so that no expression has much to work on. */
const subjectLimit = 500;
const patternLimit = 2_000;
/** A busy machine may make any expression slow once, so a second and longer try follows. */
const tries = [100, 400] as const;

/**
 * Compares a matcher with a subject. Absent, empty and `*` match everything; names, alone or with bars or commas
 * between them, match exactly; anything else is a regular expression that may match anywhere. An expression that is
 * broken, or slow enough to look endless, is unusable.
 */
export function matchSubject(matcher: string | undefined, subject: string): SubjectMatch {
  const written = matcher?.trim() ?? "";
  if (written === "" || written === "*") return "match";
  const names = namesFor(subject);
  if (/^[\w\-\s,|]*$/.test(written)) {
    const listed = written.split(/[|,]/).map((name) => name.trim());
    return listed.some((name) => names.includes(name)) ? "match" : "no-match";
  }
  return testBounded(
    written,
    names.map((name) => name.slice(0, subjectLimit)),
  );
}

/** The tool that starts agents has had two names; people's files use both. */
function namesFor(subject: string): readonly string[] {
  return subject === "Task" || subject === "Agent" ? ["Task", "Agent"] : [subject];
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
