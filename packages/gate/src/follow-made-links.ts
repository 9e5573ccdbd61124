import { posix } from "node:path";
import type { PathFact, ShellFacts, UnitFacts } from "./call-facts.ts";
import type { ShellUnit } from "./shell/model.ts";

/** A place where a command of the call puts a link, or what may be one, and where that may lead. */
interface MadeLink {
  readonly place: string;
  readonly targets: readonly string[];
  readonly unit: number;
  /** It is a folder that may hold links; it is none itself, so it can be listed and entered. */
  readonly isFolder?: true;
}

/** Where the words of a call start. */
export interface LinkPlaces {
  readonly directory: string;
  readonly home: string;
  /** For each unit, the files that it replaces by others which are not known. */
  readonly replaced: readonly (readonly string[])[];
}

const reason = "another command of the call creates a link there; use a separate call";
const maxSteps = 8;

/**
 * Paths are looked up before anything runs. Where one command of a call makes a link, what others use at or below that
 * place is what the link leads to, as far as that can be known, and never certain.
 */
export function followMadeLinks<Facts extends Pick<ShellFacts, "units" | "redirects" | "listed">>(
  facts: Facts,
  units: readonly ShellUnit[],
  places: LinkPlaces,
): Facts {
  const made = [
    ...units.flatMap((unit, at) => linksOf(unit, at, places)),
    ...places.replaced.flatMap((paths, unit) => paths.map((place) => ({ place, targets: [], unit }))),
    ...units.flatMap((unit, at) => unpackedBy(unit, facts.units[at]?.paths ?? [], at)),
  ];
  const links = withCarried(made, units, facts.units);
  if (links.length === 0) return facts;
  const byPlace = Map.groupBy(withoutRepeated(links), ({ place }) => place);
  const follow = (path: PathFact, unit: number): PathFact => followPath(path, unit, byPlace);
  return {
    ...facts,
    units: facts.units.map((unit, at) => ({
      ...unit,
      paths: unit.paths.map((path) => follow(path, at)),
      ...movedBehindLink(units[at], at, { links: byPlace, places }),
    })),
    redirects: facts.redirects.map((path) => follow(path, -1)),
    listed: facts.listed?.map((path) => follow(path, -1)),
  };
}

/** Of links that lead to the same from the same place, two are enough: one of them was made by another command than any. */
function withoutRepeated(links: readonly MadeLink[]): readonly MadeLink[] {
  const makers = new Map<string, Set<number>>();
  return links.filter(({ place, targets, isFolder, unit }) => {
    const key = JSON.stringify([place, targets.slice(0, maxForms), isFolder]);
    const known = makers.get(key) ?? new Set();
    makers.set(key, known);
    if (known.size >= 2 || known.has(unit)) return false;
    known.add(unit);
    return true;
  });
}

type LinksByPlace = ReadonlyMap<string, readonly MadeLink[]>;

/** More places than this that a path may lead to are too many to list; the path is not known in any case. */
const maxForms = 50;

function followPath(path: PathFact, unit: number, links: LinksByPlace): PathFact {
  const forms = new Set([...path.forms, ...(path.passed ?? [])]);
  let isFollowed = false;
  for (let step = 0; step < maxSteps && forms.size < maxForms; step += 1) {
    const before = forms.size;
    for (const form of [...forms])
      for (const link of linksAbove(form, links)) {
        if (link.unit === unit) continue;
        if (link.isFolder === true && path.use === "read" && form === link.place) continue;
        isFollowed = true;
        if (forms.size >= maxForms) break;
        for (const target of link.targets.slice(0, maxForms))
          forms.add(posix.join(target, posix.relative(link.place, form)));
      }
    if (forms.size === before) break;
  }
  if (!isFollowed) return path;
  return { ...path, forms: [...forms], unknown: path.unknown ?? reason, isBehindLink: true };
}

/** The links that are made at a place or above it. */
function linksAbove(path: string, links: LinksByPlace): readonly MadeLink[] {
  return placesAbove(path).flatMap((place) => links.get(place) ?? []);
}

/** A path and the folders that it is in. */
function placesAbove(path: string): readonly string[] {
  const places = [path];
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1))
    places.push(path.slice(0, at));
  return path.startsWith("/") && path !== "/" ? [...places, "/"] : places;
}

function movedBehindLink(
  unit: ShellUnit | undefined,
  at: number,
  { links, places }: { readonly links: LinksByPlace; readonly places: LinkPlaces },
): Pick<UnitFacts, "elsewhere"> {
  const folders = unit?.directories.filter((folder) => folder !== "" && folder !== "unknown") ?? [];
  const isBehind = folders.some((folder) =>
    passedBy(absolute(folder, places.directory, places)).some((form) =>
      linksAbove(form, links).some((link) => link.unit !== at && link.isFolder !== true),
    ),
  );
  return isBehind ? { elsewhere: `commands would run in a folder that is not known: ${reason}` } : {};
}

const carriers: ReadonlySet<string> = new Set("mv cp rsync git install".split(" "));

/** Links that other commands of the call bring to further places, alone or with the folder they are in. */
function withCarried(
  made: readonly MadeLink[],
  units: readonly ShellUnit[],
  facts: readonly UnitFacts[],
): readonly MadeLink[] {
  let links = made;
  for (let step = 0; step < maxSteps; step += 1) {
    const found = units.flatMap(({ words }, unit) => {
      const paths = facts[unit]?.paths ?? [];
      if (!carriers.has(posix.basename(words[0]?.text ?? ""))) return [];
      const sources = new Set(paths.filter(({ use }) => use !== "write").flatMap(({ forms }) => forms));
      const above = new Set([...sources].flatMap(placesAbove));
      const carried = links.filter(
        ({ unit: maker, place }) =>
          maker !== unit && (above.has(place) || placesAbove(place).some((folder) => sources.has(folder))),
      );
      const isUnknown = paths.some(({ use, unknown, isUnlisted }) => {
        return use === "write" && unknown !== undefined && isUnlisted !== true;
      });
      if (carried.length === 0 && !isUnknown) return [];
      const targets = carried.flatMap((link) => link.targets).slice(0, maxForms);
      return writtenBy(paths).map((place): MadeLink => ({ place, targets, unit }));
    });
    const known = new Set(links.map(({ place, unit }) => `${unit} ${place}`));
    const more = found.filter(({ place, unit }) => !known.has(`${unit} ${place}`));
    if (more.length === 0) break;
    links = [...links, ...more];
  }
  return links;
}

function writtenBy(paths: readonly PathFact[]): readonly string[] {
  return [...new Set(paths.flatMap(({ use, forms }) => (use === "write" ? forms : [])))];
}

/** Archives and other repositories may hold links. */
function unpackedBy({ words }: ShellUnit, paths: readonly PathFact[], unit: number): readonly MadeLink[] {
  const [program = "", ...rest] = words.map(({ text }) => text);
  const name = posix.basename(program);
  const isUnpacking =
    /^(?:(?:g|bsd)?tar|unzip|cpio|7z)$/.test(name) ||
    (name === "git" && rest.some((text) => text === "clone" || text === "worktree"));
  return isUnpacking
    ? writtenBy(paths).map((place): MadeLink => ({ place, targets: [], unit, isFolder: true }))
    : [];
}

/** Programs that make links: `ln`, and `cp` with the options for it. */
function linksOf(unit: ShellUnit, at: number, places: LinkPlaces): readonly MadeLink[] {
  const [program, ...words] = unit.words.map(({ text }) => text);
  const name = posix.basename(program ?? "");
  const isCopying = name === "cp" && words.some((text) => /^-[A-Za-z]*[sl]|^--(?:sy|l)/.test(text));
  if (name !== "ln" && name !== "link" && !isCopying) return [];
  const { sources, target } = splitOperands(words);
  return unit.directories.flatMap((folder) => {
    const start = folder === "unknown" ? places.directory : absolute(folder, places.directory, places);
    const end = withoutEnd(posix.normalize(absolute(target ?? ".", start, places)));
    const inside = sources.map((source) => posix.join(end, posix.basename(source)));
    const leads = (source: string, place: string): readonly string[] =>
      [start, posix.dirname(place)].map((from) =>
        withoutEnd(posix.normalize(absolute(source, from, places))),
      );
    const whole = { place: end, unit: at, targets: sources.flatMap((source) => leads(source, end)) };
    const single = inside.map((place, index) => ({
      place,
      unit: at,
      targets: leads(sources[index] ?? "", place),
    }));
    return target === undefined ? single : [whole, ...single];
  });
}

/** What is linked, and the place for it: the last operand, the value of `-t`, or the folder it runs in. */
function splitOperands(words: readonly string[]): {
  readonly sources: readonly string[];
  readonly target: string | undefined;
} {
  const end = words.indexOf("--");
  const options = end === -1 ? words : words.slice(0, end);
  const at = options.findIndex((text) => /^-[A-Za-z]*t$|^--target-directory$/.test(text));
  const glued = options.map((text) => /^(?:-[A-Za-z]*t|--t[a-z-]*=)(.+)$/.exec(text)?.[1]);
  const named = at === -1 ? glued.find((text) => text !== undefined) : words[at + 1];
  const operands = [
    ...options.filter((text, index) => !text.startsWith("-") && (at === -1 || index !== at + 1)),
    ...words.slice(options.length + 1),
  ];
  if (named !== undefined || operands.length === 1) return { sources: operands, target: named };
  return { sources: operands.slice(0, -1), target: operands.at(-1) };
}

function absolute(path: string, from: string, { home }: Pick<LinkPlaces, "home">): string {
  if (path === "~" || path.startsWith("~/")) return `${home}${path.slice(1)}`;
  return path.startsWith("/") ? path : `${from}/${path}`;
}

/** What a path goes through before each `..`, and where it ends. */
export function passedBy(path: string): readonly string[] {
  const names = path.split("/");
  const before = names.flatMap((name, at) =>
    name === ".." ? [posix.normalize(names.slice(0, at).join("/") || "/")] : [],
  );
  return [...before, posix.normalize(path)].map(withoutEnd);
}

function withoutEnd(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}
