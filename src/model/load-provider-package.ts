import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Imports a package by name, as it is installed beside this program or for one of the directories. */
export type LoadPackage = (name: string) => Promise<unknown>;

/** The name is never written as a literal, so that bundlers leave the import alone. */
export function createPackageLoader(directories: readonly string[] = []): LoadPackage {
  return async (name) => {
    try {
      return await import(name);
    } catch (error) {
      const found = isNotFound(error, name) ? findIn(directories, name) : undefined;
      if (found === undefined) throw error;
      return import(pathToFileURL(found).href);
    }
  };
}

/** Whether the error says that the package itself is not there, and not something that it needs. */
export function isNotFound(error: unknown, name: string): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  const codes: readonly unknown[] = ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"];
  return codes.includes(error.code) && error.message.includes(`'${name}'`);
}

function findIn(directories: readonly string[], name: string): string | undefined {
  for (const directory of directories) {
    try {
      return createRequire(join(directory, "package.json")).resolve(name);
    } catch {
      // Not installed for this directory; the next may have it.
    }
  }
  return undefined;
}
