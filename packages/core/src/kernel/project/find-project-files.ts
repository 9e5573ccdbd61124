// @io
import { appendFile, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Paths } from "@retinue/config/settings/paths.ts";
import { runRipgrep } from "../../tools/run-ripgrep.ts";

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

/** Adds a note as a list item to the instructions of the project or of the person, and says to which file. */
export async function appendMemory(
  note: string,
  scope: "project" | "user",
  { projectRoot, configDirectory }: Pick<Paths, "projectRoot" | "configDirectory">,
): Promise<string> {
  const file = scope === "project" ? join(projectRoot, "CLAUDE.md") : join(configDirectory, "CLAUDE.md");
  await mkdir(dirname(file), { recursive: true });
  const before = await readFile(file, "utf8").catch(() => "");
  const lead = before === "" || before.endsWith("\n") ? "" : "\n";
  await appendFile(file, `${lead}- ${note.trim().replaceAll("\n", "\n  ")}\n`);
  return file;
}
