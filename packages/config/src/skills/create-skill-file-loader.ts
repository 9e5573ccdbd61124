// @io
import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { unreadable } from "../discovery/find-agent-files.ts";
import { isWithin } from "../plugins/plugin.ts";
import { largestSkill, type ReadSkill, readSkillFile, refuseLargeSkill } from "./read-skill-file.ts";
import type { Skill, SkillPlugin, SkillScope, SkillSource } from "./skill.ts";

export interface LoadedSkills {
  /** In the order of the places, the stronger first. */
  readonly skills: readonly Skill[];
  readonly diagnostics: readonly Diagnostic[];
  /** Every file looked at, also those that hold no skill. */
  readonly files: readonly string[];
}

/** A folder or file that may hold skills or commands. Nothing here says that it exists. */
export interface SkillPlace {
  readonly scope: SkillScope;
  readonly kind: SkillSource["kind"];
  readonly path: string;
  /** Links that lead out of this folder are not followed; absent where the person's own files are. */
  readonly within?: string;
  readonly plugin?: SkillPlugin;
  /** Its folder is not trusted by itself. */
  readonly untrusted?: true;
  /** A manifest names it, so that its absence is worth a word. */
  readonly isNamed?: true;
  /** Folders in it that carry a plugin's mark are plugins, not skills. */
  readonly mayHoldPlugins?: true;
  /** Only the file itself counts, not the folders beside it. */
  readonly isRoot?: true;
}

interface SkillFileLoader {
  load(places: readonly SkillPlace[]): Promise<LoadedSkills>;
}

interface CachedSkill {
  readonly stamp: string;
  readonly reading: ReadSkill;
}

/** Let other work of the host continue while many files are read. */
const filesPerSlice = 64;

/** Reads skill files and keeps what it parsed, so that the next load only reads what changed on disk. */
export function createSkillFileLoader(): SkillFileLoader {
  let cache = new Map<string, CachedSkill>();
  return {
    async load(places) {
      const fresh = new Map<string, CachedSkill>();
      const skills: Skill[] = [];
      const diagnostics: Diagnostic[] = [];
      const files = new Set<string>();
      for (const place of places) {
        const found = findSkillFiles(place);
        diagnostics.push(...found.diagnostics);
        for (const entry of found.files) {
          const seen = `${place.plugin?.root ?? ""}\0${place.plugin?.name ?? ""}\0${entry.real}`;
          if (files.has(seen)) continue;
          if (files.size > 0 && files.size % filesPerSlice === 0)
            await new Promise((resolve) => setImmediate(resolve));
          files.add(seen);
          const { reading } = readCached(entry, place, cache, fresh);
          diagnostics.push(...reading.diagnostics);
          if (reading.skill !== undefined) skills.push(placed(reading.skill, place));
        }
      }
      cache = fresh;
      return { skills, diagnostics, files: [...files].map((seen) => seen.slice(seen.lastIndexOf("\0") + 1)) };
    },
  };
}

function placed(skill: Skill, { untrusted }: SkillPlace): Skill {
  return untrusted === undefined ? skill : { ...skill, source: { ...skill.source, untrusted } };
}

function readCached(
  entry: SkillFile,
  place: SkillPlace,
  cache: ReadonlyMap<string, CachedSkill>,
  fresh: Map<string, CachedSkill>,
): CachedSkill {
  const key = [
    place.scope,
    place.plugin?.name ?? "",
    place.plugin?.marketplace ?? "",
    entry.name ?? "",
    entry.file,
    entry.real,
  ].join("\0");
  const stats = statSync(entry.real, { throwIfNoEntry: false });
  const stamp = stats === undefined ? "gone" : `${stats.mtimeMs} ${stats.ctimeMs} ${stats.size} ${stats.ino}`;
  const known = cache.get(key);
  const read = known?.stamp === stamp ? known : { stamp, reading: readEntry(entry, place) };
  fresh.set(key, read);
  return read;
}

function readEntry({ file, real, name }: SkillFile, place: SkillPlace): ReadSkill {
  const { scope, kind, plugin } = place;
  try {
    const text = readRegularFile(real);
    if (text === undefined) return refuseLargeSkill(file);
    const options = { file, scope, kind, plugin };
    return readSkillFile(text, { ...options, name });
  } catch (error) {
    return { diagnostics: [unreadable(file, error)], written: new Map() };
  }
}

/** Never waits for a pipe and never reads more than a skill may hold, whatever the file became since it was found. */
function readRegularFile(file: string): string | undefined {
  const handle = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats: Stats = fstatSync(handle);
    if (!stats.isFile()) throw new Error("it is not a regular file");
    if (stats.size > largestSkill) return undefined;
    const buffer = Buffer.alloc(stats.size);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(handle, buffer, length, buffer.length - length, length);
    }
    return buffer.toString("utf8", 0, length);
  } finally {
    closeSync(handle);
  }
}

interface SkillFile {
  /** As a person would write it. */
  readonly file: string;
  /** The same file with all links resolved; this one is read. */
  readonly real: string;
  /** Where the folder's name is not what it is called by: `git/commit.md` is the command `git:commit`. */
  readonly name?: string;
}

/** More than anyone keeps in one place; a link into a whole disk would exceed it. */
const maxFiles = 2000;
const maxEntries = 50_000;
const deepest = 8;

/** The SKILL.md files or command files of a place, in a stable order. A missing place has none. */
function findSkillFiles(place: SkillPlace): {
  readonly files: readonly SkillFile[];
  readonly diagnostics: readonly Diagnostic[];
} {
  const walk: Walk = {
    place,
    limit: limitOf(place),
    files: [],
    diagnostics: [],
    visited: new Set(),
    entries: 0,
  };
  const spot = followSpot(place.path, walk);
  if (spot === undefined && place.isNamed === true && !exists(place.path))
    walk.diagnostics.push(missing(place));
  if (spot?.type === "file" && isOwnFile(place.path, place)) addFile(spot, [], walk);
  if (spot?.type !== "directory") return walk;
  if (place.isRoot === true) addSkillOf(spot, walk);
  else if (place.kind === "command") walkCommands(spot, [], walk);
  else if (!(place.isNamed === true && addSkillOf(spot, walk))) walkSkills(spot, 0, walk);
  return walk;
}

interface Walk {
  readonly place: SkillPlace;
  /** The real path that everything must lie in; undefined where links may lead anywhere. */
  readonly limit: string | undefined;
  readonly files: SkillFile[];
  readonly diagnostics: Diagnostic[];
  /** Real paths of folders, so that a link to a parent ends. */
  readonly visited: Set<string>;
  entries: number;
}

/** What a path is once links are followed. Only links are looked up, so that hundreds of skills cost little. */
interface Spot {
  readonly path: string;
  readonly real: string;
  readonly type: "file" | "directory" | "other";
}

/** A place that itself is a link out of the project has no inside. */
function limitOf({ within }: SkillPlace): string | undefined {
  return within === undefined ? undefined : (realPath(within) ?? within);
}

function walkSkills(directory: Spot, depth: number, walk: Walk): void {
  for (const entry of entriesOf(directory, walk)) {
    const child = spotOf(directory, entry, walk);
    if (child?.type !== "directory") continue;
    if (walk.place.mayHoldPlugins === true && exists(join(child.path, ".claude-plugin"))) continue;
    if (addSkillOf(child, walk) || isFull(directory.path, depth + 1, walk)) continue;
    walkSkills(child, depth + 1, walk);
  }
}

function walkCommands(directory: Spot, folders: readonly string[], walk: Walk): void {
  for (const entry of entriesOf(directory, walk)) {
    const child = spotOf(directory, entry, walk);
    if (child?.type === "file" && /\.md$/i.test(entry.name)) addFile(child, folders, walk);
    if (isFull(directory.path, folders.length + 1, walk)) return;
    if (child?.type === "directory") walkCommands(child, [...folders, entry.name], walk);
  }
}

/** False where the folder holds no SKILL.md. */
function addSkillOf(folder: Spot, walk: Walk): boolean {
  const entry = readNames(folder.path, walk).find(({ name }) => /^skill\.md$/i.test(name));
  if (entry === undefined) return false;
  const spot = spotOf(folder, entry, walk);
  const file = join(folder.path, entry.name);
  if (spot?.type === "file") addFile(spot, [], walk);
  else if (exists(file) && !walk.diagnostics.some((diagnostic) => diagnostic.file === file)) {
    walk.diagnostics.push(notAFile(file));
  }
  return true;
}

function addFile({ path: file, real }: Spot, folders: readonly string[], walk: Walk): void {
  // Content goes into a prompt, so a link may not make another kind of file a skill.
  if (!isOwnFile(real, walk.place)) {
    walk.diagnostics.push(linkToOther(file));
    return;
  }
  const name = nameOf(file, folders, walk.place);
  walk.files.push({ file, real, name });
}

/** The root of a plugin is often named after a version, so a skill there is called like the plugin. */
function nameOf(file: string, folders: readonly string[], { kind, plugin }: SkillPlace): string | undefined {
  if (kind === "command") return [...folders, basename(file).replace(/\.md$/i, "")].join(":");
  return plugin !== undefined && dirname(file) === plugin.root ? plugin.name : undefined;
}

function isOwnFile(path: string, { kind }: SkillPlace): boolean {
  return kind === "skill" ? /^skill\.md$/i.test(basename(path)) : /\.md$/i.test(path);
}

/** Folders are entered once, and not without end. */
function entriesOf(directory: Spot, walk: Walk): readonly Dirent[] {
  if (walk.visited.has(directory.real)) return [];
  walk.visited.add(directory.real);
  return readNames(directory.path, walk)
    .filter(({ name }) => !name.startsWith(".") && name !== "node_modules")
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function readNames(directory: string, walk: Walk): readonly Dirent[] {
  if (walk.entries >= maxEntries) return [];
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    walk.entries += entries.length;
    return entries;
  } catch (error) {
    walk.diagnostics.push(unreadable(directory, error));
    return [];
  }
}

function isFull(directory: string, depth: number, walk: Walk): boolean {
  const isOver = walk.files.length >= maxFiles || walk.entries >= maxEntries;
  if (!isOver && depth < deepest) return false;
  if (!walk.diagnostics.some(({ code }) => code === "too-many-files")) {
    const what = isOver ? `more than ${maxFiles} skills` : `folders nested more than ${deepest} deep`;
    walk.diagnostics.push({
      severity: "warning",
      code: "too-many-files",
      message: `There are ${what} here; the rest was not read.`,
      advice: "Keep only skills in this folder.",
      file: directory,
    });
  }
  return true;
}

function spotOf(directory: Spot, entry: Dirent, walk: Walk): Spot | undefined {
  const path = join(directory.path, entry.name);
  const real = join(directory.real, entry.name);
  if (entry.isFile()) return { path, real, type: "file" };
  if (entry.isDirectory()) return { path, real, type: "directory" };
  return followSpot(path, walk);
}

/** Undefined when there is nothing, or when a link leads out of the limit. */
function followSpot(path: string, walk: Walk): Spot | undefined {
  const real = realPath(path);
  if (real === undefined) return undefined;
  if (walk.limit !== undefined && !isWithin(walk.limit, real)) {
    walk.diagnostics.push(outside(path, walk.place));
    return undefined;
  }
  try {
    const stats = statSync(real);
    if (stats.isFile()) return { path, real, type: "file" };
    return { path, real, type: stats.isDirectory() ? "directory" : "other" };
  } catch {
    return undefined;
  }
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function outside(file: string, { scope }: SkillPlace): Diagnostic {
  const what = scope === "plugin" ? "plugin" : "project";
  return {
    severity: "warning",
    code: scope === "plugin" ? "link-outside-plugin" : "link-outside-project",
    file,
    message: `This link leads out of the ${what} and was not followed.`,
    advice: `Copy the skill into the ${what}.`,
  };
}

function linkToOther(file: string): Diagnostic {
  return {
    severity: "warning",
    code: "link-to-other-file",
    file,
    message: "This link leads to a file of another name and was not followed.",
    advice: "Link the folder of the skill, or copy the file.",
  };
}

function notAFile(file: string): Diagnostic {
  return {
    severity: "error",
    code: "unreadable-file",
    file,
    message: "This is not a regular file and was not read.",
    advice: "Put a text file in its place.",
  };
}

function missing({ path, kind }: SkillPlace): Diagnostic {
  return {
    severity: "warning",
    code: "plugin-path-missing",
    file: path,
    message: `The plugin's manifest lists this path under \`${kind}s\`, but it does not exist.`,
    advice: "Fix the path in `.claude-plugin/plugin.json`, or add the file.",
  };
}
