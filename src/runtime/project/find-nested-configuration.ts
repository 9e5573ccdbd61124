import { createPathReader } from "../../tools/grep-record.ts";
import { runRipgrep } from "../../tools/run-ripgrep.ts";

export interface NestedConfiguration {
  /** Absolute paths, sorted. */
  readonly files: readonly string[];
  /** The search was ended before it was done. */
  readonly isCut: boolean;
}

const maxFiles = 200;
const timeLimitMs = 5_000;
const names = ["settings.json", "settings.local.json"];

/** Settings and server lists in folders below the project, which count when work begins there. */
export async function findNestedConfiguration(root: string): Promise<NestedConfiguration> {
  const files: string[] = [];
  const readPaths = createPathReader();
  const patterns = [...names.map((name) => `**/.claude/${name}`), "**/.mcp.json"];
  const ending = await runRipgrep({
    arguments: [
      ...["--files", "--null", "--hidden", "--no-ignore", "--no-messages"],
      ...patterns.map((pattern) => `--glob=${pattern}`),
      ...["--glob=!**/node_modules", "--glob=!**/.git", "--", root],
    ],
    directory: root,
    signal: new AbortController().signal,
    timeLimitMs,
    take(text) {
      files.push(...readPaths(text));
      return files.length >= maxFiles ? "enough" : "more";
    },
  });
  return { files: files.sort(), isCut: ending.type !== "finished" };
}
