// @io
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  type Stats,
  statSync,
} from "node:fs";
import { posix } from "node:path";
import { type PermissionRequest, touchedPaths } from "./call-facts.ts";
import { absolutePath, findRealLocation } from "./gather-path-facts.ts";
import type { ShellUnit } from "./shell/model.ts";
import { steersPrograms } from "./steers-programs.ts";

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
  const runs = analysis.opaque !== undefined || analysis.units.some(mayRunFiles);
  const candidates = runs ? scriptCandidates(request.command ?? "", analysis.units, place) : [];
  const [programs, scripts] = await Promise.all([
    Promise.all(analysis.units.map((unit) => programOf(unit, place))),
    Promise.all(regularFiles(candidates).map((path, at) => digestFile(path, at < maxScripts))),
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

/** Files whose contents count; further ones are known like large ones. */
const maxScripts = 128;
/** Names that are looked for on the disk, for the whole call. */
const maxCandidates = 20_000;
/** `PATH_MAX` of Linux; macOS and other systems take less. */
const maxPathLength = 4_096;
/** Larger files are known by their size, their time and their place on the disk. */
const maxHashed = 8 * 1024 * 1024;

/** Programs that use the files among their words as data, though they change some. */
const dataPrograms: ReadonlySet<string> = new Set(
  `cp mv mkdir touch rm rmdir ln link unlink chmod chown chgrp tee truncate mktemp curl wget gh echo printf kill sleep cd
  pushd popd export set unset read test true false cat head tail grep sort uniq wc tar zip unzip gzip gunzip rsync scp`.split(
    /\s+/,
  ),
);
/** Of git, what runs programs or obeys the text of a file. */
const gitRuns =
  /^(?:apply|am|bisect|foreach|filter-branch|difftool|mergetool|-c|--config-env|--exec|-x)(?:=|$)/;

/** Whether a command may run or obey the text of files: everything but what is known to use them as data. */
function mayRunFiles({ readOnly, words, exactOnly }: ShellUnit): boolean {
  if (readOnly) return false;
  const name = words[0]?.text ?? "";
  if (name === "git") return words.some(({ text }) => gitRuns.test(text));
  return exactOnly !== undefined || !dataPrograms.has(name);
}

/**
 * Every file that the call names in any way, in quoted texts and values too, and what programs obey unasked in the folders
 * that it names or runs in. What is not there costs nothing, so that no table of programs is needed.
 */
function scriptCandidates(
  command: string,
  units: readonly ShellUnit[],
  place: SealedPlace,
): readonly string[] {
  const words = units.flatMap((unit) => unit.words).map(({ text }) => text);
  const tokens = [...words, ...words.flatMap(tokensOf), ...tokensOf(command)];
  const names = new Set(tokens.filter((text) => text !== "" && text.length < 1_024).flatMap(namesFrom));
  const folders = new Set(
    units.flatMap(({ directories }) => directories).filter((directory) => directory !== "unknown"),
  );
  folders.add("");
  const candidates: string[] = [];
  for (const folder of folders) {
    const itself = placed(".", folder, place);
    // No file can be opened by a longer path.
    if (itself.length > maxPathLength) continue;
    for (const path of [...names].map((name) => placed(name, folder, place)).concat(itself)) {
      if (candidates.length === maxCandidates) return candidates;
      candidates.push(path);
    }
  }
  return candidates;
}

/** Parts of a text between spaces, quotes and signs of the shell. */
function tokensOf(text: string): readonly string[] {
  return text.slice(0, 20_000).split(/[\s'"`<>|&;(){}=,]+/);
}

/** A token as a path: as it is, behind the letter of an option, from the working folder, as a module of Python. */
function namesFrom(token: string): readonly string[] {
  const plain = token.replace(/^(?:\$PWD|\$\{PWD\}|~\+)\//, "").replace(/^\/(?=\.{1,2}\/)/, "");
  const glued = /^-[A-Za-z](.+)$/s.exec(plain)?.[1];
  const attached = /^@(.+)$/s.exec(plain)?.[1];
  const parts = plain.includes(":") ? plain.split(":").filter((part) => part !== "") : [];
  const isModule = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$/.test(plain);
  const module = plain.replaceAll(".", "/");
  return [
    plain,
    ...(glued === undefined ? [] : [glued]),
    ...(attached === undefined ? [] : [attached]),
    ...parts,
    ...(isModule ? [`${module}.py`] : []),
  ];
}

/** Of these paths the regular files, and of the folders what programs obey in them. */
function regularFiles(paths: readonly string[]): readonly string[] {
  const found = new Set<string>();
  for (const path of new Set(paths)) {
    const stats = statOf(path);
    if (stats?.isFile() === true) found.add(path);
    if (stats?.isDirectory() === true) for (const name of obeyedIn(path)) found.add(posix.join(path, name));
  }
  return [...found];
}

/** Names without an extension, and kinds of files, in which tools look for what to do. */
const obeyed =
  /^(?:[^.]+|__main__\.py|main\.(?:go|rs|py|ts|js)|.*\.(?:mk|gradle|kts|sbt|cmake|mill|sc|toml|jsonc?|ya?ml|xml|ini|cfg|conf|config|properties|[cm]?[jt]s|py|rb|php|exs|clj|edn|go|rs|zig|nix|tf|hcl|bazel|bzl|build|ninja|txt|groovy|hs|pl|swift|r|jl|lua|csproj|props|targets|gemspec|podspec))$/i;
const hiddenOnes = /^\.(?:pre-commit-config\.ya?ml|lefthook\.ya?ml|justfile|npmrc|pnpmfile\.cjs|envrc)$/;

function obeyedIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => {
        if (hiddenOnes.test(name) || /^(?:__main__\.py|main\.(?:go|rs|py|ts|js))$/.test(name)) return true;
        return !name.startsWith(".") && obeyed.test(name) && steersPrograms(name) !== undefined;
      })
      .sort()
      .slice(0, maxScripts / 2);
  } catch {
    return [];
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
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
async function digestFile(path: string, isHashed: boolean): Promise<string | undefined> {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = fstatSync(descriptor);
    const { size, ctimeMs, ino } = stats;
    if (!stats.isFile()) return undefined;
    const digest =
      size > maxHashed || !isHashed
        ? `size:${size}:${ctimeMs}:${ino}`
        : createHash("sha256").update(readFileSync(descriptor)).digest("hex");
    return `${digest} ${path}`;
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
