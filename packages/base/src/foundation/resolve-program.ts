// @io
import {
  accessSync,
  closeSync,
  constants,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import { posix } from "node:path";

export type ResolvedProgram =
  | { readonly type: "found"; readonly file: string }
  | { readonly type: "missing" }
  /** There is one, and it is not known to be the program of that name: it may choose what it runs by the folder. */
  | { readonly type: "unsure"; readonly reason: string; readonly script?: string };

interface ResolveOptions {
  /** A search path of real folders, as `searchPathOutside` gives it. */
  readonly searchPath: string;
  /** No program in these folders is taken. */
  readonly folders: readonly string[];
}

/** Where programs are looked for. */
interface ProgramSearch {
  /** The first file that a name leads to. */
  readonly first: (name: string) => string | undefined;
  /** The real folders in which no program is taken. */
  readonly avoided: readonly string[];
}

/**
 * Finds the file that a program's name leads to, and whether it is that program: a binary, or a script that the system
 * brought. Version managers put scripts, links to themselves or copies of themselves in its place, which look into the
 * folder for what to run.
 */
export function resolveProgram(name: string, { searchPath, folders }: ResolveOptions): ResolvedProgram {
  const first = (wanted: string): string | undefined => firstIn(wanted, searchPath);
  return resolveIn(name, { first, avoided: folders.map((folder) => realOf(folder) ?? folder) });
}

/**
 * Finds programs on a search path that `searchPathOutside` would make real first, but looks only at the folders up to
 * and including the program's. It remembers what it has looked up, so it serves one call.
 */
export function createProgramFinder(
  path: string | undefined,
  folders: readonly string[],
): (name: string) => ResolvedProgram {
  const entries = new Set((path ?? "").split(":").filter((entry) => entry.startsWith("/")));
  const places = new Map<string, string | undefined>();
  const found = new Map<string, ResolvedProgram>();
  const avoided = folders.map((folder) => realOf(folder) ?? folder);
  const placeOf = (entry: string): string | undefined => {
    if (!places.has(entry)) {
      const real = realOf(entry);
      const isAvoided =
        real === undefined || [...folders, ...avoided].some((folder) => isBelow(real, folder));
      places.set(entry, isAvoided ? undefined : real);
    }
    return places.get(entry);
  };
  const first = (name: string): string | undefined => {
    for (const entry of entries) {
      const place = isRunnable(`${entry}/${name}`) ? placeOf(entry) : undefined;
      if (place !== undefined) return posix.join(place, name);
    }
    // Where no folder of the path is left, programs are found in those of the system.
    return firstIn(name, searchPathOutside(path, folders));
  };
  return (name) => {
    const known = found.get(name) ?? resolveIn(name, { first, avoided });
    found.set(name, known);
    return known;
  };
}

function resolveIn(name: string, search: ProgramSearch): ResolvedProgram {
  const file = search.first(name);
  if (file === undefined) return { type: "missing" };
  return ambiguityOf(name, file, search) ?? { type: "found", file };
}

function firstIn(name: string, searchPath: string): string | undefined {
  return searchPath
    .split(":")
    .map((folder) => posix.join(folder, name))
    .find(isRunnable);
}

/**
 * The program of this name that the runtime starts for itself: the first that is surely it, whatever precedes it;
 * where there is none, a person's own script of that name.
 */
export function findOwnProgram(name: string, { searchPath, folders }: ResolveOptions): string | undefined {
  let script: string | undefined;
  for (const folder of searchPath.split(":")) {
    const found = resolveProgram(name, { searchPath: folder, folders });
    if (found.type === "found") return found.file;
    if (found.type === "unsure") script ??= found.script;
  }
  return script;
}

/** A search path without the folders in which version managers put their shims. */
export function withoutShims(searchPath: string): string {
  const kept = searchPath.split(":").filter((folder) => !isShimFolder(folder));
  return kept.join(":");
}

function isShimFolder(folder: string): boolean {
  return folder.split("/").some((part) => shimFolder.test(part));
}

/** Why a file is not known to be the program of this name. */
function ambiguityOf(name: string, file: string, search: ProgramSearch): ResolvedProgram | undefined {
  const unsure = (reason: string) => ({ type: "unsure", reason }) as const;
  const passed = linksFrom(file);
  const real = realOf(file);
  if (passed === undefined || real === undefined) return unsure(`${file} leads nowhere`);
  const places = [...passed, real];
  const inside = places.find((place) => search.avoided.some((folder) => isBelow(place, folder)));
  if (inside !== undefined) return unsure(`${name} is ${inside}, a file of the project`);
  const shim = places.find((place) => isShimFolder(posix.dirname(place)));
  if (shim !== undefined)
    return unsure(`${name} is ${shim}, which runs a different program depending on the folder`);
  const base = posix.basename(real);
  if (!isNamed(name, base)) return unsure(`${name} is ${real}, a program of another name`);
  const start = beginningOf(real);
  if (start === undefined) return unsure(`${real} cannot be read`);
  if (start.startsWith("#!")) {
    const reason = ambiguityOfScript(name, real, { start, search });
    return reason === undefined ? undefined : { ...unsure(reason), script: file };
  }
  return isShared(real, base) ? unsure(`${name} is ${real}, one program under several names`) : undefined;
}

/** Folders in which version managers put their shims. */
const shimFolder = /^\.?(?:shims?|proxies)$/i;

/** Programs that are several by the name they are called by, or that replace one of a standard name, and obey no folder. */
const namesakes: ReadonlyMap<string, RegExp> = new Map([
  ["awk", /^(?:[mgn]awk|original-awk|busybox|toybox|bwk)$/],
  ["npm", /^npm-cli\.js$/],
  ["npx", /^npx-cli\.js$/],
  ["zipinfo", /^unzip$/],
  ["xzcat", /^xz$/],
  ["bzcat", /^bzip2$/],
  ["zcat", /^gzip$/],
  ["egrep", /^grep$/],
  ["fgrep", /^grep$/],
  ["fd", /^fdfind$/],
  ["which", /^which\.debianutils$/],
  ["hostname", /^hostname$/],
  ["pgrep", /^pkill$/],
  ["cc", /(?:^|-)(?:gcc|clang)(?:-[\d.]+)?$/],
  ["c++", /(?:^|-)(?:g\+\+|clang(?:\+\+)?)(?:-[\d.]+)?$/],
  ["clang++", /^clang(?:-[\d.]+)?$/],
  ["g++", /(?:^|-)g\+\+(?:-[\d.]+)?$/],
  ["java", /^java$/],
  ["make", /^gmake$/],
  ["nodejs", /^node$/],
  ["node", /^nodejs$/],
  ["psql", /^pg_wrapper$/],
  ["mysql", /^mariadb$/],
  ["ld", /(?:^|-)ld(?:\.\w+)?$/],
]);
const multiple = /^(?:busybox|toybox|coreutils|gnu-coreutils|uutils|uutils-coreutils)$/;

function isNamed(name: string, base: string): boolean {
  if (base === name || multiple.test(base)) return true;
  const escaped = name.replace(/[^\w-]/g, "\\$&");
  // `python3.11` for python3, `x86_64-linux-gnu-gcc-12` for gcc, `jq-1.7`.
  if (new RegExp(`^(?:[\\w.]+-)*${escaped}(?:[-.]?\\d[\\w.]*)?$`).test(base)) return true;
  return namesakes.get(name)?.test(base) === true;
}

/** What shell scripts of the system start by its name alone, so that the search path decides what runs. */
const startedByScript: ReadonlyMap<string, readonly string[]> = new Map([
  ["zcat", ["gzip"]],
  ["gunzip", ["gzip"]],
  ["bzcat", ["bzip2"]],
  ["bunzip2", ["bzip2"]],
  ["xzcat", ["xz"]],
  ["egrep", ["grep"]],
  ["fgrep", ["grep"]],
  ["which", []],
]);

/** Scripts that belong to the system, and those of npm, whose interpreter must then be one that is known. */
function ambiguityOfScript(
  name: string,
  real: string,
  { start, search }: { readonly start: string; readonly search: ProgramSearch },
): string | undefined {
  const [interpreter = "", ...rest] = (start.slice(2).split("\n")[0] ?? "").trim().split(/\s+/);
  const isSystems = /^\/(?:usr\/)?s?bin\//.test(real) || /^\/(?:nix|gnu)\/store\//.test(real);
  if (isSystems && /^\/(?:usr\/bin|bin|nix\/store\/.+|gnu\/store\/.+)\/[\w.+-]+$/.test(interpreter)) {
    const started = startedByScript.get(name);
    const isShell = /^(?:ba|da|k|z)?sh$/.test(posix.basename(interpreter));
    if (started !== undefined) {
      for (const name of started) {
        const found = resolveIn(name, search);
        if (found.type === "unsure") return found.reason;
      }
      return undefined;
    }
    if (!isShell && posix.basename(interpreter) !== "env") return undefined;
  }
  const isNpm = /\/node_modules\/npm\/bin\/np[mx]-cli\.js$/.test(real);
  if (isNpm && /^\/(?:usr\/)?bin\/env$/.test(interpreter) && rest.length === 1 && rest[0] === "node") {
    const node = resolveIn("node", search);
    if (node.type !== "missing") return node.type === "found" ? undefined : node.reason;
  }
  return `${name} is ${real}, a script, which may run a different program depending on the folder`;
}

/** Whether the same file has other names beside this one, as copies of a version manager have. */
function isShared(real: string, base: string): boolean {
  try {
    const own = statSync(real);
    if (own.nlink < 2 || multiple.test(base)) return false;
    const folder = posix.dirname(real);
    if (systemFolder.test(folder)) return false;
    return readdirSync(folder).some((other) => {
      if (other === base || isNamed(other, base) || isNamed(base, other)) return false;
      const { ino, dev } = statSync(posix.join(folder, other), { throwIfNoEntry: false }) ?? {};
      return ino === own.ino && dev === own.dev;
    });
  } catch {
    return true;
  }
}

/** Folders that only the administrator fills; one file under several names is usual there. */
const systemFolder = /^\/(?:usr\/)?(?:s?bin|lib|libexec)(?:\/|$)/;

/** The links that a path goes through, itself included; undefined where they go round in circles. */
function linksFrom(file: string): readonly string[] | undefined {
  const passed = [file];
  for (let at = file; passed.length < 40; ) {
    const target = targetOf(at);
    if (target === undefined) return passed;
    at = posix.resolve(realOf(posix.dirname(at)) ?? posix.dirname(at), target);
    passed.push(at);
  }
  return undefined;
}

/** Where a link leads; looked at first, because what is no link is not read without throwing. */
function targetOf(path: string): string | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
      ? readlinkSync(path)
      : undefined;
  } catch {
    return undefined;
  }
}

function isRunnable(file: string): boolean {
  try {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) return false;
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

function beginningOf(file: string): string | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, "r");
    const bytes = Buffer.alloc(256);
    return bytes.subarray(0, readSync(descriptor, bytes, 0, 256, 0)).toString("latin1");
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

/** Where programs are found when no folder of the caller's own is left. */
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * A search path of real folders: without those that depend on where a program runs, or that lie in one of these folders,
 * by whatever links or detours they are named.
 */
export function searchPathOutside(path: string | undefined, folders: readonly string[]): string {
  const avoided = folders.flatMap((folder) => [folder, realFolder(folder) ?? folder]);
  const kept = (path ?? "").split(":").flatMap((entry) => {
    const real = entry.startsWith("/") ? (realFolder(entry) ?? notYetThere(entry)) : undefined;
    return real === undefined || avoided.some((folder) => isBelow(real, folder)) ? [] : [real];
  });
  return kept.length === 0 ? systemPath : [...new Set(kept)].join(":");
}

function realFolder(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

/** Where a folder would be that is not there; nothing for a link that leads nowhere. */
function notYetThere(path: string): string | undefined {
  const plain = posix.normalize(path);
  try {
    if (lstatSync(plain, { throwIfNoEntry: false }) !== undefined) return undefined;
  } catch {
    return undefined;
  }
  const parent = posix.dirname(plain);
  const above = realFolder(parent) ?? (parent === plain ? undefined : notYetThere(parent));
  return above === undefined ? undefined : posix.join(above, posix.basename(plain));
}
