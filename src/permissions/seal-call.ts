// @io
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { basename, posix } from "node:path";
import { type PermissionRequest, touchedPaths } from "./call-facts.ts";
import { absolutePath, findRealLocation } from "./gather-path-facts.ts";
import type { ShellUnit } from "./shell/shell-analysis.ts";
import { managers, runners, shells } from "./shell/wrapper-specs.ts";

/** What an answer is bound to besides the words of a call: an answer covers what it was given for and nothing else. */
export interface CallSeal {
  /** Every form of the paths that the call touches, those of its commands and programs too. */
  readonly paths: readonly string[];
  /** The files whose text its commands run, each as `<digest> <path>`. */
  readonly scripts: readonly string[];
}

export interface SealedPlace {
  /** The folder the call starts in; absolute and real. */
  readonly directory: string;
  readonly home: string;
}

/** Takes down what a call touches and runs at this moment. Never throws. */
export async function sealCall(request: PermissionRequest, place: SealedPlace): Promise<CallSeal> {
  const { facts } = request;
  if (facts?.shell === undefined) return { paths: [...request.paths], scripts: [] };
  const { analysis, listed = [] } = facts.shell;
  const touched = [...touchedPaths(facts), ...listed].flatMap(({ forms }) => forms);
  const named = analysis.units.filter(runsFiles).flatMap((unit) => scriptCandidates(unit, place));
  const [programs, scripts] = await Promise.all([
    Promise.all(analysis.units.map((unit) => programOf(unit, place))),
    Promise.all([...new Set(named)].slice(0, maxScripts).map(digestFile)),
  ]);
  const isKnown = <Value>(value: Value | undefined): value is Value => value !== undefined;
  return {
    paths: [...new Set([...touched, ...programs.filter(isKnown)])],
    scripts: scripts.filter(isKnown).sort(),
  };
}

/** What of a later seal an earlier one does not have, as one text for people; undefined where it has all of it. */
export function findUnsealed(now: CallSeal, sealed: CallSeal): string | undefined {
  const known = new Set(sealed.paths);
  const path = now.paths.find((form) => !known.has(form));
  if (path !== undefined) return `it would touch ${path} now`;
  const script = now.scripts.find((line) => !sealed.scripts.includes(line));
  return script === undefined ? undefined : `${script.slice(script.indexOf(" ") + 1)} was changed`;
}

/** The same in every copy of a folder, so that an answer holds on the worker that carries the call out. */
export function digestSeal({ paths, scripts }: CallSeal, directory: string): string {
  const relative = (path: string): string =>
    path === directory || path.startsWith(`${directory}/`) ? `.${path.slice(directory.length)}` : path;
  const files = scripts.map((line) => {
    const at = line.indexOf(" ") + 1;
    return `${line.slice(0, at)}${relative(line.slice(at))}`;
  });
  const text = JSON.stringify([paths.map(relative).sort(), files.sort()]);
  return createHash("sha256").update(text).digest("hex");
}

const maxScripts = 64;
/** Larger files are known by their size, their time and their place on the disk. */
const maxHashed = 8 * 1024 * 1024;

/** Files that task runners obey without being told. */
const taskFiles: ReadonlyMap<string, readonly string[]> = new Map([
  ...["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"].map((name): [string, string[]] => [
    name,
    ["package.json"],
  ]),
  ...["make", "gmake"].map((name): [string, string[]] => [name, ["GNUmakefile", "makefile", "Makefile"]]),
  ["just", ["justfile", "Justfile", ".justfile"]],
  ["rake", ["Rakefile", "rakefile"]],
  ["task", ["Taskfile.yml", "Taskfile.yaml"]],
  ["tox", ["tox.ini", "pyproject.toml"]],
  ["cargo", ["Cargo.toml", "build.rs"]],
  ["gradle", ["build.gradle", "build.gradle.kts"]],
  ["mvn", ["pom.xml"]],
  ["docker", ["Dockerfile", "compose.yaml", "docker-compose.yml"]],
]);

/** Whether a command may run the text of files among its words: everything but what is known to use them as data. */
function runsFiles({ readOnly, namesFiles, exactOnly, words }: ShellUnit): boolean {
  const name = words[0]?.text ?? "";
  const base = basename(name);
  return (
    !readOnly &&
    (namesFiles !== undefined ||
      exactOnly !== undefined ||
      name.includes("/") ||
      base === "source" ||
      base === "." ||
      shells.has(base) ||
      runners.has(base) ||
      managers.has(base) ||
      taskFiles.has(base))
  );
}

function scriptCandidates({ words, directories }: ShellUnit, place: SealedPlace): readonly string[] {
  const texts = words.filter(({ literal, text }) => literal && text.length < 4_096).map(({ text }) => text);
  const values = texts.flatMap((text) => {
    const value = /^-[^=]*=(.+)$/s.exec(text)?.[1] ?? /^@(.+)$/s.exec(text)?.[1];
    return value === undefined ? [] : [value];
  });
  // A program without a slash is found by PATH, which is not a matter of this folder.
  const [program = "", ...rest] = texts;
  const own = taskFiles.get(basename(program)) ?? [];
  const named = [...(program.includes("/") ? [program] : []), ...rest, ...values, ...own];
  return directories
    .filter((directory) => directory !== "unknown")
    .flatMap((directory) => named.map((path) => placed(path, directory, place)));
}

async function programOf({ words, directories }: ShellUnit, place: SealedPlace): Promise<string | undefined> {
  const [program] = words;
  const [directory = ""] = directories;
  if (program?.text.includes("/") !== true || directory === "unknown") return undefined;
  return findRealLocation(placed(program.text, directory, place));
}

function placed(path: string, directory: string, { directory: start, home }: SealedPlace): string {
  const environment = { directory: start, home, platform: "linux" };
  const base = directory === "" ? start : absolutePath({ path: directory, use: "read" }, environment);
  return posix.normalize(absolutePath({ path, use: "read", directory: base }, environment));
}

/** `<digest> <path>` of a regular file; undefined for everything else. */
async function digestFile(path: string): Promise<string | undefined> {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = fstatSync(descriptor);
    const { size, mtimeMs, ino } = stats;
    if (!stats.isFile()) return undefined;
    const digest =
      size > maxHashed
        ? `size:${size}:${mtimeMs}:${ino}`
        : createHash("sha256").update(readFileSync(descriptor)).digest("hex");
    return `${digest} ${path}`;
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
