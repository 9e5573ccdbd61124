import { lstat, readdir } from "node:fs/promises";
import { basename, posix } from "node:path";
import type { PathFact, ShellFacts, UnitFacts } from "./call-facts.ts";
import { isInside } from "./containment.ts";
import { findRealLocation } from "./find-real-location.ts";
import { absolutePath, gatherPathFact, literalPath, type PathWorld } from "./gather-path-facts.ts";
import { matchesName } from "./path-pattern.ts";
import type { PathOperand, ShellAnalysis, ShellUnit } from "./shell-analysis.ts";

/** Looks up what the commands of a shell call would touch. */
export async function gatherShellFacts(analysis: ShellAnalysis, world: PathWorld): Promise<ShellFacts> {
  const [units, redirects, moves] = await Promise.all([
    Promise.all(analysis.units.map((unit) => gatherUnit(unit, world))),
    Promise.all(analysis.redirects.map((operand) => gatherOperand(operand, false, world))),
    gatherMoves(analysis.units, world),
  ]);
  return { analysis, units, redirects: redirects.flat(), ...moves };
}

async function gatherUnit(unit: ShellUnit, world: PathWorld): Promise<UnitFacts> {
  const globs = new Set(unit.words.filter(({ glob }) => glob).map(({ text }) => text));
  const operands = await Promise.all(
    unit.operands.map((operand) => gatherOperand(operand, globs.has(operand.path), world)),
  );
  const paths = [...operands.flat(), ...(await gatherNamedFiles(unit, world))];
  const inside = readsWholeFolders(unit) ? await gatherForbiddenInside(paths, world) : [];
  return {
    paths: [...paths, ...inside, ...emptied(unit, paths, world)],
    otherTexts: await gatherProgramNames(unit, world),
  };
}

/** What a program that is not known to read files is given may still be a file that rules forbid. */
async function gatherNamedFiles(
  { words, operands, readOnly }: ShellUnit,
  world: PathWorld,
): Promise<readonly PathFact[]> {
  const [program, ...rest] = words;
  if (operands.length > 0 || readOnly || program === undefined) return [];
  if (takesText.has(program.text) || !world.deny.some(({ rule }) => rule.specifier.type === "path"))
    return [];
  const named = rest.filter(({ text, literal }) => literal && text !== "" && !text.startsWith("-"));
  return Promise.all(named.map(({ text }) => gatherPathFact({ path: text, use: "read" }, world)));
}

/** Commands whose words are more often texts than files. */
const takesText: ReadonlySet<string> = new Set("echo printf git gh npm pnpm yarn export declare".split(" "));

/** `find -delete` empties the folder it starts in; below the work that is a matter of rules. */
function emptied({ words }: ShellUnit, paths: readonly PathFact[], world: PathWorld): readonly PathFact[] {
  if (basename(words[0]?.text ?? "") !== "find" || !words.some(({ text }) => text === "-delete")) return [];
  const outside = paths.filter(({ forms }) => !forms.every((form) => isInside(form, [world.directory])));
  return outside.map((path) => ({ ...path, use: "remove" }));
}

async function gatherOperand(
  operand: PathOperand,
  isGlob: boolean,
  world: PathWorld,
): Promise<readonly PathFact[]> {
  const { path, use, literal, directory } = operand;
  const isRelative = !path.startsWith("/") && path !== "~" && !path.startsWith("~/");
  const base =
    directory === "" || directory === "unknown" ? undefined : absolutePath({ path: directory, use }, world);
  const written = { path, use, ...(base === undefined ? {} : { directory: base }) };
  if (isRelative && directory === "unknown")
    return [await guess(written, world, "the folder it starts in is not known")];
  const isExpanded = /[$`]/.test(path);
  if (isGlob && !isExpanded) return gatherGlob(written, world);
  if (literal) return [await gatherPathFact(written, world)];
  const unset = path.replace(/\$(?:\w+|\{\w+(?::?[-=+?]([^}]*))?\})/g, "$1");
  // Variables that are not set vanish, and `"$X"/*` is then all there is.
  const guesses = isExpanded && unset.startsWith("/") ? [written, { ...written, path: unset }] : [written];
  return Promise.all(guesses.map((each) => guess(each, world, "it is only known when the command runs")));
}

async function guess(
  written: Parameters<typeof gatherPathFact>[0],
  world: PathWorld,
  unknown: string,
): Promise<PathFact> {
  return { ...(await gatherPathFact(written, world)), unknown };
}

const mostMatches = 200;

/** A glob is what it matches now, and itself: the pattern shows the folder it works in, matches show links. */
async function gatherGlob(
  written: Parameters<typeof gatherPathFact>[0],
  world: PathWorld,
): Promise<readonly PathFact[]> {
  const absolute = absolutePath(written, world);
  const segments = absolute.split("/");
  const first = segments.findIndex((segment) => /[*?[]/.test(segment));
  const itself = await gatherPathFact(written, world);
  const folder = segments.slice(0, first).join("/") || "/";
  const matches = await expand([folder], segments.slice(first));
  if (matches === undefined || /[{}()]/.test(absolute) || segments.includes("**"))
    return [itself, { ...itself, unknown: "it matches more than can be looked at" }];
  const facts = await Promise.all(matches.map((path) => gatherPathFact({ path, use: written.use }, world)));
  return [itself, ...facts];
}

async function expand(
  folders: readonly string[],
  segments: readonly string[],
): Promise<readonly string[] | undefined> {
  const [pattern, ...rest] = segments;
  if (pattern === undefined) return folders;
  if (pattern === "" || pattern === ".") return expand(folders, rest);
  const found: string[] = [];
  for (const folder of folders) {
    if (!/[*?[]/.test(pattern)) {
      found.push(posix.join(folder, pattern));
      continue;
    }
    const names = await readdir(folder).catch(() => []);
    for (const name of names) {
      if (name.startsWith(".") && !pattern.startsWith(".")) continue;
      if (matchesName(pattern, name)) found.push(posix.join(folder, name));
    }
    if (found.length > mostMatches) return undefined;
  }
  return expand(found, rest);
}

/** A program called by a path may be a link to one that rules speak of. */
async function gatherProgramNames(unit: ShellUnit, world: PathWorld): Promise<readonly string[]> {
  const [program, ...rest] = unit.words;
  if (program === undefined || !program.text.includes("/")) return [];
  const real = await findRealLocation(absolutePath({ path: program.text, use: "read" }, world));
  if (real === undefined || basename(real) === basename(program.text)) return [];
  return [[basename(real), ...rest.map(({ text }) => text)].join(" ")];
}

/** Commands that take the contents of all files below a folder they are given. */
function readsWholeFolders({ words }: ShellUnit): boolean {
  const name = basename(words[0]?.text ?? "");
  if (alwaysWhole.has(name)) return true;
  const options = words.slice(1).map(({ text }) => text);
  if (name === "rg") return options.some((text) => /^(?:--hidden|--unrestricted|-u+|-\.)$/.test(text));
  return (
    wholeWithOption.has(name) &&
    options.some((text) => /^(?:--recursive|--archive|-[A-Za-z]*[rRa])/.test(text))
  );
}

const alwaysWhole: ReadonlySet<string> = new Set("tar bsdtar zip 7z 7za rsync scp cpio pax".split(" "));
const wholeWithOption: ReadonlySet<string> = new Set("cp grep egrep fgrep zgrep diff".split(" "));

async function gatherForbiddenInside(
  paths: readonly PathFact[],
  world: PathWorld,
): Promise<readonly PathFact[]> {
  const found: PathFact[] = [];
  const folders = paths.filter(({ use }) => use === "read").flatMap(({ forms }) => forms);
  for (const rule of world.deny) {
    const literal = literalPath(rule, world);
    if (literal === undefined) continue;
    const isBareName = rule.rule.specifier.type === "path" && !rule.rule.specifier.pattern.includes("/");
    const candidates = isBareName
      ? [literal, ...folders.map((folder) => posix.join(folder, basename(literal)))]
      : [literal];
    for (const path of candidates) {
      const isBelow = folders.some((folder) => path.startsWith(folder === "/" ? "/" : `${folder}/`));
      if (isBelow && (await lstat(path).catch(() => undefined)) !== undefined)
        found.push({ forms: [path], use: "read" });
    }
  }
  return found;
}

const movers: ReadonlySet<string> = new Set(["cd", "pushd", "popd", "chdir"]);

interface Moves {
  readonly moves: readonly PathFact[];
  readonly elsewhere?: string;
}

/** Programs act by the files of the folder they stand in, git by the repository around it. */
async function gatherMoves(units: readonly ShellUnit[], world: PathWorld): Promise<Moves> {
  const moving = units.filter(({ words }) => movers.has(words[0]?.text ?? ""));
  if (moving.length === 0 || moving.length === units.length) return { moves: [] };
  const runsGit = units.some(({ words }) => basename(words[0]?.text ?? "") === "git");
  const start = runsGit ? await findRepository(world.directory) : undefined;
  const moves: PathFact[] = [];
  let at: string = world.directory;
  for (const { words } of moving) {
    const target = words.slice(1).find(({ text }) => text !== "--" && !/^-[LPe@]+$/.test(text)) ?? home;
    const goesBack = words[0]?.text === "popd" || target.text === "-";
    if (goesBack && moves.length > 0) continue;
    if (goesBack || !target.literal || target.glob || /^[-+]\d+$/.test(target.text))
      return { moves, elsewhere: "the folder that the commands run in is not known" };
    const move = await gatherPathFact({ path: target.text, use: "read", directory: at }, world);
    moves.push(move);
    at = move.forms.at(-1) ?? at;
    if (runsGit && (await findRepository(at)) !== start)
      return { moves, elsewhere: "git would run in another repository, by its settings" };
  }
  const relative = units.find(({ words }) => /^[^/]+\//.test(words[0]?.text ?? ""));
  return relative === undefined
    ? { moves }
    : { moves, elsewhere: "a program is named by where it lies, after moving" };
}

const home = { text: "~", literal: true, glob: false };

/** The folder of the repository around a place, bare ones too. */
async function findRepository(folder: string): Promise<string | undefined> {
  const isThere = async (name: string): Promise<boolean> =>
    (await lstat(name).catch(() => undefined)) !== undefined;
  for (let at = folder; ; at = posix.dirname(at)) {
    if (await isThere(posix.join(at, ".git"))) return at;
    if ((await isThere(posix.join(at, "HEAD"))) && (await isThere(posix.join(at, "objects")))) return at;
    if (at === posix.dirname(at)) return undefined;
  }
}
