// @io

import { type Stats, statSync } from "node:fs";
import { posix } from "node:path";
import { matchesName } from "../covers-path.ts";
import { listFolder } from "../list-folder.ts";
import type { ShellAnalysis, Surroundings } from "./model.ts";

/** Where a command is to run. */
export interface ShellPlace extends Omit<Surroundings, "matches"> {
  /** The folder the command starts in; absolute and real. */
  readonly directory: string;
}

const maxPasses = 4;

/** Loaded once; asking for a loaded module again is not free. */
let parser: Promise<[typeof import("unbash"), typeof import("./analyze-with.ts")]> | undefined;

/** Understands a Bash command: its grammar is loaded at the first call, and its file patterns are looked up. Never throws. */
export async function loadAnalysis(command: string, place: ShellPlace): Promise<ShellAnalysis> {
  const kept = recent.get(keyOf(command, place));
  if (kept !== undefined) return kept;
  parser ??= Promise.all([import("unbash"), import("./analyze-with.ts")]);
  const [grammar, { analyzeWith }] = await parser;
  const found = new Map<string, readonly string[] | "too-many">();
  const { directory: _, ...around } = place;
  const surroundings: Surroundings = {
    ...around,
    matches: (request) => found.get(`${request.directory}\0${request.pattern}`),
  };
  let draft = analyzeWith(grammar, command, surroundings);
  // A pattern may be in a folder or a loop that another pattern names.
  for (let pass = 1; draft.globs.length > 0 && pass < maxPasses; pass += 1) {
    const requests = draft.globs;
    let matches = [...found.values()].reduce((sum, list) => sum + list.length, 0);
    for (const request of requests) {
      const key = `${request.directory}\0${request.pattern}`;
      if (found.has(key)) continue;
      if (found.size >= maxPatterns || matches > maxMatchesOfAll) found.set(key, "too-many");
      else {
        const { pattern, directory } = request;
        const { directory: start, home } = place;
        const from =
          directory === "~" || directory.startsWith("~/") ? `${home}${directory.slice(1)}` : directory;
        const folder = posix.resolve(start, from === "" ? "." : from);
        found.set(`${directory}\0${pattern}`, (await findGlobMatches(pattern, folder)) ?? "too-many");
      }
      matches += found.get(key)?.length ?? 0;
    }
    draft = analyzeWith(grammar, command, surroundings);
  }
  const { analysis, globs } = draft;
  if (globs.length > 0)
    return { ...withoutJudged(analysis), opaque: "its file patterns depend on each other" };
  if (found.size === 0) {
    if (recent.size >= keptCount) recent.clear();
    if (command.length <= keptLength) recent.set(keyOf(command, place), analysis);
  }
  return analysis;
}

function withoutJudged({ judged: _, ...rest }: ShellAnalysis): ShellAnalysis {
  return rest;
}

/** More patterns than this, or more matches of all together, are too many to be looked up. */
const maxPatterns = 100;
const maxMatchesOfAll = 4_000;

/** Only saves time: without file patterns an analysis depends on nothing but the text and what surrounds it. */
const recent = new Map<string, ShellAnalysis>();
const keptCount = 256;
const keptLength = 4_000;

function keyOf(command: string, { directory: _, ...around }: ShellPlace): string {
  return `${JSON.stringify(around)}\0${command}`;
}

const maxMatches = 200;

/** The files that a pattern matches from a folder on, in order, as bash would write them; undefined where they are too many. */
async function findGlobMatches(pattern: string, folder: string): Promise<readonly string[] | undefined> {
  const segments = pattern.split("/");
  const isAbsolute = pattern.startsWith("/");
  const onlyFolders = segments.length > 1 && segments.at(-1) === "";
  const names = segments.filter((segment, at) => segment !== "" || (at === 0 && !isAbsolute));
  let found: readonly string[] = [isAbsolute ? "/" : ""];
  for (const name of names) {
    const next = await Promise.all(found.map((prefix) => matchIn(prefix, name, folder)));
    found = next.flat();
    if (found.length > maxMatches) return undefined;
  }
  const kept = onlyFolders ? foldersOf(found, folder) : found;
  return [...kept].sort((left, right) => (left < right ? -1 : 1));
}

async function matchIn(prefix: string, name: string, folder: string): Promise<readonly string[]> {
  const join = (entry: string): string =>
    prefix === "" || prefix === "/" ? `${prefix}${entry}` : `${prefix}/${entry}`;
  const place = posix.resolve(folder, prefix === "" ? "." : prefix);
  if (!/[*?[]/.test(name.replace(/\\[\s\S]/g, ""))) {
    const literal = name.replace(/\\([\s\S])/g, "$1");
    return statOf(posix.join(place, literal)) === undefined ? [] : [join(literal)];
  }
  const entries = (await listFolder(place)).map((entry) => entry.name);
  const showsHidden = name.startsWith(".") || name.startsWith("\\.");
  return entries
    .filter((entry) => (showsHidden || !entry.startsWith(".")) && matchesName(name, entry))
    .map(join);
}

function foldersOf(paths: readonly string[], folder: string): readonly string[] {
  return paths.flatMap((path) =>
    statOf(posix.resolve(folder, path))?.isDirectory() === true ? [`${path}/`] : [],
  );
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
