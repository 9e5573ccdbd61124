import { existsSync, readdirSync } from "node:fs";
import { posix } from "node:path";
import { hostImports, importTable } from "./import-table.ts";
import { type ProjectFile, projectRoot, readProjectFile } from "./project-files.ts";
import { type ModuleImport, readImports } from "./read-imports.ts";

/** An import of another file of the repository; the target's path is from the root. */
export interface OwnImport extends ModuleImport {
  readonly target: string;
}

/** What each package of the repository declares that it needs. */
const packages: ReadonlyMap<string, readonly string[]> = new Map(
  readdirSync(`${projectRoot}/packages`)
    .filter((name) => existsSync(`${projectRoot}/packages/${name}/package.json`))
    .map((name) => {
      const manifest = JSON.parse(readProjectFile(`packages/${name}/package.json`));
      const needed = { ...manifest.dependencies, ...manifest.peerDependencies };
      return [name, Object.keys(needed).flatMap((key) => /^@retinue\/(.*)/.exec(key)?.[1] ?? [])];
    }),
);

export function ownImports({ path, text }: ProjectFile): OwnImport[] {
  return readImports(text).flatMap((found) => {
    const [, name, file] = /^@retinue\/([a-z]+)\/(.*)$/.exec(found.specifier) ?? [];
    if (name !== undefined) return [{ ...found, target: `packages/${name}/src/${file}` }];
    if (!found.specifier.startsWith(".")) return [];
    return [{ ...found, target: posix.join(posix.dirname(path), found.specifier) }];
  });
}

/**
 * What a source file imports against the table and against what its package declares, as `file:line what`; `besides` are
 * packages allowed to this file alone.
 */
export function forbiddenImports(file: ProjectFile, besides: readonly string[] = []): string[] {
  const own = packageOfFile(file.path);
  // The entries are what is published: they may name everything but the programs.
  const declared =
    own === "retinue" ? [...packages.keys()].filter((name) => name !== "hosts") : packages.get(own);
  const allowed = [own, ...(declared ?? []), ...besides];
  // Hosts use what every user of the library can use, which is not a package by name before it is built.
  if (own === "hosts") allowed.push("retinue");
  const folder = folderOf(file.path);
  const inside = [folder, ...(importTable.get(folder) ?? [])];
  return ownImports(file)
    .filter(({ target, specifier }) => {
      const other = packageOfFile(target);
      if (other !== own)
        return !allowed.includes(other) || (other !== "retinue" && specifier.startsWith("."));
      return importTable.has(folder) && !inside.includes(folderOf(target));
    })
    .map(({ line, specifier }) => `${file.path}:${line} ${folder} may not import ${specifier}`);
}

const hostFolder = "packages/hosts/src/";

/** What a file of a host imports of core beyond the kernel. */
export function forbiddenHostImports(file: ProjectFile): string[] {
  if (!file.path.startsWith(hostFolder)) return [];
  return ownImports(file)
    .filter(({ target }) => packageOfFile(target) !== "hosts" && isInner(target))
    .filter(({ target }) => !hostImports.includes(folderOf(target)))
    .map(({ line, specifier }) => `${file.path}:${line} may not import ${specifier}`);
}

/** Rights and configuration are the kernel's business as well. */
function isInner(path: string): boolean {
  return ["gate", "config", "core"].includes(packageOfFile(path));
}

/** `packages/core/src/loop/a.ts` is in `core/loop`, a file directly in `src` of a package in the package itself. */
export function folderOf(path: string): string {
  const [, name = "", , ...rest] = path.split("/");
  if (!path.startsWith("packages/")) return packageOfFile(path);
  return rest.length === 1 ? name : `${name}/${rest[0]}`;
}

/** The package a file belongs to; what is not in one and not an entry is its folder of the root. */
function packageOfFile(path: string): string {
  const [first = "", second = ""] = path.split("/");
  if (first === "packages") return second;
  return first === "src" ? "retinue" : first;
}
