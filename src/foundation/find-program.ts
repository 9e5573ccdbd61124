import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";

const defaultPath = ["/usr/local/bin", "/usr/bin", "/bin"];

/** Why a program cannot be started, in the system's word, or undefined where it can. */
export function whyNotRunnable(
  file: string,
  { directory, path }: { readonly directory: string; readonly path: string | undefined },
): "ENOENT" | "EACCES" | undefined {
  const places = file.includes("/")
    ? [resolve(directory, file)]
    : (path?.split(delimiter) ?? defaultPath).map((folder) =>
        join(isAbsolute(folder) ? folder : resolve(directory, folder), file),
      );
  const answers = places.map(judge);
  if (answers.includes(undefined)) return undefined;
  return answers.includes("EACCES") ? "EACCES" : "ENOENT";
}

function judge(file: string): "ENOENT" | "EACCES" | undefined {
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    if (found === undefined) return "ENOENT";
    if (!found.isFile()) return "EACCES";
    accessSync(file, constants.X_OK);
    return undefined;
  } catch {
    return "EACCES";
  }
}
