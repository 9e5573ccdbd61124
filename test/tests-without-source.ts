import { posix } from "node:path";

/** The tests among these files that have no source of their name: `x.test.ts` and `x.part.test.ts` belong to `x.ts` in the same folder. */
export function testsWithoutSource(paths: readonly string[]): string[] {
  const known = new Set(paths);
  return paths.filter((path) => {
    if (!/\.test\.tsx?$/.test(path)) return false;
    const name = posix.basename(path).replace(/(\.[a-z0-9-]+)?\.test\.tsx?$/, "");
    return [".ts", ".tsx"].every((end) => !known.has(posix.join(posix.dirname(path), name + end)));
  });
}

/** Names of tests that were there before the rule; their folders may move. The list only gets shorter. */
export const toBeRenamed: ReadonlySet<string> = new Set([
  "add-seen-lines",
  "alias-table",
  "bash-limits",
  "bounded-answers",
  "choose-cut",
  "connect-http",
  "connect-servers",
  "cool-down",
  "create-sandbox",
  "line-reader",
  "model-limits",
  "model-reference",
  "notebook-edit-tool",
  "offline-step",
  "page-cache",
  "person-tools",
  "read-listing",
  "real-servers",
  "repeats-of",
  "repetition",
  "resolve-tool-name",
  "run-spaced",
  "sandbox-settings",
  "scarce-descriptors",
  "split-entries",
  "task-tools",
  "web-address",
  "with-retry",
  "write-in-turn",
  "write-tool",
]);
