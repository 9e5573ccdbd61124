import { runRipgrep } from "../../../tools/run-ripgrep.ts";

const maxFiles = 20_000;
const timeLimitMs = 5_000;

/** The files of the project, from its folder on, without what git ignores. */
export async function findProjectFiles(directory: string, signal: AbortSignal): Promise<readonly string[]> {
  const files: string[] = [];
  let rest = "";
  await runRipgrep({
    arguments: ["--files", "--hidden", "--glob", "!.git", "--sort", "path"],
    directory,
    signal,
    timeLimitMs,
    take(text) {
      const lines = `${rest}${text}`.split("\n");
      rest = lines.pop() ?? "";
      files.push(...lines);
      return files.length >= maxFiles ? "enough" : "more";
    },
  });
  return files.slice(0, maxFiles);
}
