import { posix } from "node:path";
import { importTable } from "./import-table.ts";
import type { ProjectFile } from "./project-files.ts";
import { type ModuleImport, readImports } from "./read-imports.ts";

/** An import of another file of the repository; the target's path is from the root. */
export interface OwnImport extends ModuleImport {
  readonly target: string;
}

export function ownImports({ path, text }: ProjectFile): OwnImport[] {
  return readImports(text)
    .filter(({ specifier }) => specifier.startsWith("."))
    .map((found) => ({ ...found, target: posix.join(posix.dirname(path), found.specifier) }));
}

/** What a source file imports against the table, as `file:line what`; `besides` are folders allowed to this file alone. */
export function forbiddenImports(file: ProjectFile, besides: readonly string[] = []): string[] {
  const folder = folderOf(file.path);
  const allowed = [folder, ...(importTable.get(folder) ?? []), ...besides];
  return ownImports(file)
    .filter(({ target }) => !target.startsWith("src/") || !allowed.includes(folderOf(target)))
    .map(({ line, specifier }) => `${file.path}:${line} ${folder} may not import ${specifier}`);
}

/** The folder of src that a file belongs to. */
export function folderOf(path: string): string {
  const [, folder = "", ...rest] = path.split("/");
  return rest.length === 0 ? "entry" : folder;
}
