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
export const toBeRenamed: ReadonlySet<string> = new Set();
