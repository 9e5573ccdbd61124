import { evaluateCase } from "./adapter.ts";
import { withFixture } from "./fixture.ts";
import type { Answer, SecurityCase } from "./security-case.ts";

export interface CaseResult {
  readonly testCase: SecurityCase;
  readonly got: Answer | "error";
  readonly passed: boolean;
  /** What went wrong, where something did. */
  readonly error?: string;
}

export interface SuiteReport {
  readonly results: readonly CaseResult[];
  readonly skipped: readonly { readonly testCase: SecurityCase; readonly because: string }[];
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
  const skipped: { testCase: SecurityCase; because: string }[] = [];
  for (const testCase of cases) {
    try {
      const verdict = await withFixture(testCase, (roots) => evaluateCase(testCase, roots));
      if (typeof verdict === "object") skipped.push({ testCase, because: verdict.skipped });
      else results.push({ testCase, got: verdict, passed: testCase.accept.includes(verdict) });
    } catch (error) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
      results.push({ testCase, got: "error", passed: false, error: message });
    }
  }
  return { results, skipped };
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
  // The shape of each case is that of the suite; one that differs fails as a case.
  return (document.cases as SecurityCase[]).filter(({ scored }) => scored !== false);
}
