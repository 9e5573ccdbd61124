import { readImports } from "./read-imports.ts";
import { readCode } from "./source-tokens.ts";

/** Folders that exist to do I/O. */
const ioFolders = [
  "packages/hosts/src/",
  "packages/base/src/storage/",
  "packages/core/src/tools/builtin/",
  "packages/testing/src/",
];

/** The first line of every other file that does I/O by itself. */
export const ioMark = "// @io";

/** Whether a source file may touch files, processes, the network, the clock or randomness. */
export function mayDoIo({ path, text }: { readonly path: string; readonly text: string }): boolean {
  return isIoFolder(path) || hasIoMark(text);
}

export function isIoFolder(path: string): boolean {
  return ioFolders.some((folder) => path.startsWith(folder));
}

export function hasIoMark(text: string): boolean {
  return text.startsWith(`${ioMark}\n`);
}

const actingModules = new Set(
  "fs child_process net http https http2 tls dns dgram os worker_threads cluster process readline".split(" "),
);

const actingMembers = new Set([
  "process.env",
  "process.cwd",
  "process.argv",
  "process.platform",
  "process.stdout",
  "process.stderr",
  "Date.now",
  "Math.random",
  "performance.now",
  "crypto.randomUUID",
]);

/** What a source text does besides computing, as `line: what`. Types cost nothing and are not counted. */
export function findImpureCode(source: string): string[] {
  const imports = readImports(source)
    .filter(({ kind, specifier }) => kind !== "types" && actingModules.has(moduleName(specifier)))
    .map(({ specifier, line }) => ({ what: `imports ${specifier}`, line }));
  const tokens = readCode(source);
  const uses = tokens.flatMap((token, at) => {
    if (token.type !== "word" || tokens[at - 1]?.text === ".") return [];
    const next = tokens.slice(at + 1, at + 4).map(({ text }) => text);
    const member = `${token.text}.${next[1]}`;
    if (next[0] === "." && actingMembers.has(member)) return [{ what: member, line: token.line }];
    if (token.text === "fetch" && next[0] === "(") return [{ what: "fetch()", line: token.line }];
    const readsClock = token.text === "new" && next.join("") === "Date()";
    return readsClock ? [{ what: "new Date()", line: token.line }] : [];
  });
  return [...imports, ...uses].map(({ what, line }) => `${line}: ${what}`);
}

/** `node:fs/promises` and `fs` are both `fs`. */
function moduleName(specifier: string): string {
  return specifier.replace("node:", "").split("/")[0] ?? "";
}
