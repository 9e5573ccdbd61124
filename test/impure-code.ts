import { readImports } from "./read-imports.ts";
import { readCode } from "./source-tokens.ts";

/** Verbs that announce I/O when they begin a file's name. */
const actingVerbs = ["discover", "load", "gather", "connect", "run", "drive", "find", "watch", "write"];

/** Folders that exist to touch the world. */
const actingFolders = ["src/apps/", "src/storage/", "src/tools/builtin/", "src/cluster/", "src/testing/"];

/** Files that touch the world under another name, each with its reason. */
export const actingFiles: ReadonlyMap<string, string> = new Map([
  ["src/foundation/end-process-group.ts", "ends the processes that a command has started"],
  ["src/settings/trust.ts", "reads and writes the folder trust that people already have on disk"],
  ["src/journal/cleanup.ts", "removes transcripts that are past their time"],
  ["src/runtime/create-runtime.ts", "the composition root: takes the process's own defaults"],
]);

/** Whether a source file may touch files, processes, the network, the clock or chance. */
export function mayAct(path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1, path.lastIndexOf("."));
  return (
    actingFiles.has(path) ||
    actingFolders.some((folder) => path.startsWith(folder)) ||
    actingVerbs.some((verb) => name === verb || name.startsWith(`${verb}-`))
  );
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
