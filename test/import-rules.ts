import { posix } from "node:path";
import { appExceptions, appImports, importTable } from "./import-table.ts";
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

const appFolder = "packages/hosts/src/";

/** What a file of a program imports beyond the runtime and its own exception. */
export function forbiddenAppImports(file: ProjectFile): string[] {
  if (!file.path.startsWith(appFolder)) return [];
  const allowed = [...appImports, ...(appExceptions.get(exceptionOf(file.path)) ?? [])];
  return ownImports(file)
    .filter(({ target }) => !allowed.includes(folderOf(target)))
    .map(({ line, specifier }) => `${file.path}:${line} may not import ${specifier}`);
}

/** Exceptions that no import needs any more, as `row folder`. */
export function unusedAppExceptions(files: readonly ProjectFile[]): string[] {
  const used = new Set(
    files.flatMap((file) =>
      ownImports(file).map(({ target }) => `${exceptionOf(file.path)} ${folderOf(target)}`),
    ),
  );
  return [...appExceptions]
    .flatMap(([row, folders]) => folders.map((folder) => `${row} ${folder}`))
    .filter((each) => !used.has(each));
}

/** The row of a file: its own, or that of the folder of its program. */
function exceptionOf(path: string): string {
  const own = path.slice(appFolder.length);
  const folder = own.split("/").slice(0, 2).join("/");
  return appExceptions.has(folder) ? folder : own;
}

/** The folder of src that a file belongs to. */
export function folderOf(path: string): string {
  const [, folder = "", ...rest] = path.split("/");
  return rest.length === 0 ? "entry" : folder;
}
