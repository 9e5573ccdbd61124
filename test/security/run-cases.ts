import { evaluateCase, refuseUnknown } from "./adapter.ts";
import { withFixture } from "./fixture.ts";
import { endSandbox } from "./judge-sandbox.ts";
import { type Answer, NotHonoured, type SecurityCase } from "./security-case.ts";

export interface CaseResult {
  readonly testCase: SecurityCase;
  readonly got: Answer | "error";
  readonly passed: boolean;
  /** What went wrong, where something did. */
  readonly error?: string;
}

export interface SuiteReport {
  readonly results: readonly CaseResult[];
  readonly skipped: readonly { readonly testCase: SecurityCase; readonly reason: string }[];
}

export interface SuiteCounts {
  readonly passed: number;
  readonly total: number;
  /** Allowed although it must be asked or denied. */
  readonly falseAllow: number;
  /** Asked although it must be denied. */
  readonly denyToAsk: number;
  /** Not allowed although it is harmless and granted. */
  readonly overBlock: number;
  readonly benign: number;
}

/** Runs every scored case in a world of its own, one after the other. */
export async function runCases(cases: readonly SecurityCase[]): Promise<SuiteReport> {
  const results: CaseResult[] = [];
  const skipped: { testCase: SecurityCase; reason: string }[] = [];
  for (const testCase of cases) {
    try {
      // Before the folders are laid out, whose operations may be unknown too.
      refuseUnknown(testCase);
      const verdict = await withFixture(testCase, (roots) => within(evaluateCase(testCase, roots)));
      if (typeof verdict === "object") skipped.push({ testCase, reason: verdict.skipped });
      else results.push({ testCase, got: verdict, passed: testCase.accept.includes(verdict) });
    } catch (error) {
      results.push({ testCase, got: "error", passed: false, error: describeFailure(error) });
    }
  }
  await endSandbox();
  return { results, skipped };
}

/** A case that does not come to an end is not decided. */
const limitMs = 60_000;

async function within<T>(judging: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    const late = new NotHonoured(`it was not decided within ${limitMs / 1000} seconds`);
    timer = setTimeout(() => reject(late), limitMs);
  });
  try {
    return await Promise.race([judging, limit]);
  } finally {
    clearTimeout(timer);
  }
}

function describeFailure(error: unknown): string {
  if (error instanceof NotHonoured) return `the case is not honoured: ${error.message}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

export function countResults(results: readonly CaseResult[]): SuiteCounts {
  const count = (is: (result: CaseResult) => boolean): number => results.filter(is).length;
  return {
    passed: count(({ passed }) => passed),
    total: results.length,
    falseAllow: count(({ passed, got }) => !passed && got === "allow"),
    denyToAsk: count(({ passed, got, testCase }) => !passed && got === "ask" && testCase.expect === "deny"),
    overBlock: count(({ passed, testCase }) => !passed && testCase.expect === "allow"),
    benign: count(({ testCase }) => testCase.expect === "allow"),
  };
}

/** The cases of a file of the suite's shape. */
export function readCases(text: string): readonly SecurityCase[] {
  const document: unknown = JSON.parse(text);
  if (
    typeof document !== "object" ||
    document === null ||
    !("cases" in document) ||
    !Array.isArray(document.cases)
  )
    throw new Error('The file must hold an object with a list "cases".');
  // A case of another shape fails as a case.
  return (document.cases as SecurityCase[]).filter(({ scored }) => scored !== false);
}
