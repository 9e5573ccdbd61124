import { posix } from "node:path";
import { isTest, type ProjectFile } from "./project-files.ts";
import { readImports } from "./read-imports.ts";

/** The rules of the project itself: a second or two for all of them, and any change can break one. */
const rules = ["architecture", "import-rules", "impure-code", "public-surface", "requirements"].map(
  (name) => `test/${name}.test.ts`,
);

/**
 * The tests to run while a change is in progress: those that changed, all beside the sources that changed, those beside other
 * sources that import what changed, and the rules. Suites over the whole repository take part only when they changed
 * themselves or import what changed in `test/`; the whole suite is for the end.
 */
export function quickTests(changed: readonly string[], files: readonly ProjectFile[]): string[] {
  const touched = new Set(changed);
  const rooms = new Set(changed.flatMap((path) => roomOf(path) ?? []));
  const chosen = files.filter(isTest).filter((file) => {
    const { path } = file;
    if (touched.has(path) || rules.includes(path)) return true;
    const room = roomOf(path);
    if (room !== undefined && rooms.has(room)) return true;
    const imported = importedBy(file).filter((target) => touched.has(target));
    return room === undefined ? imported.some((target) => target.startsWith("test/")) : imported.length > 0;
  });
  return chosen.map(({ path }) => path);
}

/** The folder of a file in `src`; what lies below it is another one. */
function roomOf(path: string): string | undefined {
  return /^(?:packages\/[^/]+\/)?src\//.test(path) ? posix.dirname(path) : undefined;
}

function importedBy({ path, text }: ProjectFile): string[] {
  return readImports(text).flatMap(({ specifier }) => {
    if (specifier.startsWith(".")) return [posix.join(posix.dirname(path), specifier)];
    const [, name, rest] = /^@retinue\/([^/]+)\/(.*)$/.exec(specifier) ?? [];
    return name === undefined ? [] : [`packages/${name}/src/${rest}`];
  });
}
