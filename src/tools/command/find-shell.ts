// @io
import { access, constants } from "node:fs/promises";
import { isAbsolute, join } from "node:path";

export interface Shell {
  readonly file: string;
  /** What keeps a person's own start files out of it. */
  readonly options: readonly string[];
  /** What a model should know about it; absent for a bash. */
  readonly note?: string;
}

/** The shell that runs commands: a bash, whatever the person's own shell is; a plain sh where there is none. */
export async function findShell(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Shell | undefined> {
  const windows = process.platform === "win32";
  const bash = await firstRunnable(windows ? bashOnWindows(environment) : bashOnUnix(environment));
  if (bash !== undefined) return { file: bash, options: ["--norc", "--noprofile"] };
  const plain = windows ? undefined : await firstRunnable(["/bin/sh", "/usr/bin/sh"]);
  if (plain === undefined) return undefined;
  return { file: plain, options: [], note: "There is no bash on this machine; the command ran in sh." };
}

function bashOnUnix(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const known = ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin"];
  const own = (environment["PATH"] ?? "").split(":").filter(isAbsolute);
  return [...known, ...own].map((folder) => join(folder, "bash"));
}

function bashOnWindows(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const chosen = environment["CLAUDE_CODE_GIT_BASH_PATH"];
  const folders = [environment["ProgramFiles"], environment["LOCALAPPDATA"]];
  return [
    ...(chosen === undefined ? [] : [chosen]),
    ...folders.flatMap((folder) => (folder === undefined ? [] : [join(folder, "Git", "bin", "bash.exe")])),
  ];
}

async function firstRunnable(files: readonly string[]): Promise<string | undefined> {
  for (const file of files) {
    const isRunnable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isRunnable) return file;
  }
  return undefined;
}
