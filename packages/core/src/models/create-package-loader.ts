// @io
import { readFileSync } from "node:fs";
import { createRequire, findPackageJSON } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { isRecord } from "@retinue/base/foundation/json-record.ts";

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
    const from = join(directory, "package.json");
    try {
      return createRequire(from).resolve(name);
    } catch (error) {
      const found =
        error instanceof Error && "code" in error && error.code === "ERR_PACKAGE_PATH_NOT_EXPORTED"
          ? importEntry(from, name)
          : undefined;
      if (found !== undefined) return found;
      // Not installed for this directory; the next may have it.
    }
  }
  return undefined;
}

/** The file that an import of the package means, where it has none for `require`. */
function importEntry(from: string, name: string): string | undefined {
  const manifest = findPackageJSON(name, pathToFileURL(from));
  if (manifest === undefined) return undefined;
  const read: unknown = JSON.parse(readFileSync(manifest, "utf8"));
  const exported = isRecord(read) ? read["exports"] : undefined;
  const target = targetOf(isRecord(exported) && "." in exported ? exported["."] : exported);
  return target === undefined ? undefined : join(dirname(manifest), target);
}

function targetOf(exported: unknown): string | undefined {
  if (typeof exported === "string") return exported;
  if (!isRecord(exported)) return undefined;
  const condition = Object.keys(exported).find((key) => ["node", "import", "default"].includes(key));
  return condition === undefined ? undefined : targetOf(exported[condition]);
}
