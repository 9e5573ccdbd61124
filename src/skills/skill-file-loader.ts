// @io
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { unreadable } from "../definitions/find-agent-files.ts";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { findSkillFiles, type SkillFile } from "./find-skill-files.ts";
import { largestSkill, type ReadSkill, readSkillFile, refuseLargeSkill } from "./read-skill-file.ts";
import type { Skill } from "./skill.ts";
import type { SkillPlace } from "./skill-places.ts";

export interface LoadedSkills {
  /** In the order of the places, the stronger first. */
  readonly skills: readonly Skill[];
  readonly diagnostics: readonly Diagnostic[];
  /** Every file looked at, also those that hold no skill. */
  readonly files: readonly string[];
}

export interface SkillFileLoader {
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
          if (files.size > 0 && files.size % filesPerSlice === 0) await nextTick();
          files.add(seen);
          const { reading } = readCached(entry, place, cache, fresh);
          diagnostics.push(...reading.diagnostics);
          if (reading.skill !== undefined) skills.push(reading.skill);
        }
      }
      cache = fresh;
      return { skills, diagnostics, files: [...files].map((seen) => seen.slice(seen.lastIndexOf("\0") + 1)) };
    },
  };
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
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
  const stamp = stampOf(entry.real);
  const known = cache.get(key);
  const read = known?.stamp === stamp ? known : { stamp, reading: readEntry(entry, place) };
  fresh.set(key, read);
  return read;
}

function stampOf(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? "gone" : `${stats.mtimeMs} ${stats.ctimeMs} ${stats.size} ${stats.ino}`;
}

function readEntry({ file, real, name }: SkillFile, place: SkillPlace): ReadSkill {
  const { scope, kind, plugin } = place;
  try {
    const text = readRegularFile(real);
    if (text === undefined) return refuseLargeSkill(file);
    const options = { file, scope, kind, ...(plugin === undefined ? {} : { plugin }) };
    return readSkillFile(text, { ...options, ...(name === undefined ? {} : { name }) });
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
