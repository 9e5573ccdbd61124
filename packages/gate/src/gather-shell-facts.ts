// @io
import { lstatSync, readFileSync, statSync } from "node:fs";
import { basename, posix } from "node:path";
import { parseJson } from "@retinue/base/foundation/json-record.ts";
import { createProgramFinder } from "@retinue/base/foundation/resolve-program.ts";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import type { PathFact, ShellFacts, UnitFacts } from "./call-facts.ts";
import { matchesName } from "./covers-path.ts";
import { followMadeLinks } from "./follow-made-links.ts";
import { gatherGitFiles } from "./gather-git-files.ts";
import { gatherNamedFiles, pathsInWord } from "./gather-named-files.ts";
import {
  absolutePath,
  copyFinderOf,
  findRealLocation,
  gatherPathFact,
  type PathEnvironment,
} from "./gather-path-facts.ts";
import {
  emptiedByFind,
  findEmptied,
  findRestricted,
  findSplitName,
  gatherReach,
  mayHold,
} from "./gather-reach.ts";
import {
  type AskOptions,
  askRepository,
  type Repository,
  type RepositoryFacts,
} from "./git/ask-repository.ts";
import { runOwnGit } from "./git/run-own-git.ts";
import { transportReason } from "./git/transport-reason.ts";
import { isInside, type PermissionPolicy, type PolicyRule } from "./permission-policy.ts";
import { matchesPath } from "./rules/matches-call.ts";
import { leftOutNote } from "./shell/create-unit.ts";
import { loadAnalysis, type ShellPlace } from "./shell/load-analysis.ts";
import type { PathOperand, ShellAnalysis, ShellUnit, UnreadableName } from "./shell/model.ts";
import { isBuiltin } from "./shell/programs/judge-builtin.ts";
import { steersPrograms } from "./steers-programs.ts";

/** Looks up what the commands of a shell call would touch. */
export async function gatherShellFacts(command: string, environment: PathEnvironment): Promise<ShellFacts> {
  const repositories = createRepositories(environment);
  const [root = environment.directory] = environment.policy.workingDirectories;
  const unreadable = unreadableNames(environment.policy);
  const place: ShellPlace = {
    home: environment.home,
    directory: environment.directory,
    ...(unreadable.length > 0 && { unreadable }),
  };
  const first = await loadAnalysis(command, place);
  const own = first.units.some(({ words }: ShellUnit) => basename(words[0]?.text ?? "") === "git")
    ? await repositories.find(root)
    : undefined;
  const repository = own?.type === "repository" ? own : undefined;
  const tracked = hasReadRules(environment) ? trackedPaths(repository, environment) : undefined;
  const filters = repository?.filters ?? [];
  const analysis =
    tracked === undefined && filters.length === 0
      ? first
      : await loadAnalysis(command, { ...place, ...tracked, filters });
  const [units, redirects, listed] = await Promise.all([
    Promise.all(
      analysis.units.map((unit) => gatherUnit(unit, { environment, root, repositories, analysis })),
    ),
    Promise.all(analysis.redirects.map((operand) => gatherOperand(operand, [], environment))),
    Promise.all(analysis.listed.map((operand) => gatherOperand(operand, [], environment))),
  ]);
  const emptied = await findEmptied(
    command,
    units.flatMap(({ facts: { paths } }) => paths),
  );
  const found = {
    units: units.map(({ facts }, at) =>
      at === 0 ? { ...facts, paths: [...facts.paths, ...emptied] } : facts,
    ),
    redirects: redirects.flat(),
    ...(listed.length > 0 && { listed: listed.flat() }),
  };
  const notes = await keepNotes(analysis, environment);
  const { directory, home } = environment;
  const replaced = units.map((unit) => unit.replaced);
  return {
    analysis: { ...analysis, notes },
    ...followMadeLinks(found, analysis.units, { directory, home, replaced }),
    ...(tracked !== undefined && { rulesOnTracked: true }),
  };
}

/** That a search leaves files out is reported only where there are any. */
async function keepNotes(
  { notes, units }: ShellAnalysis,
  environment: PathEnvironment,
): Promise<ShellAnalysis["notes"]> {
  if (notes?.some((note) => note.startsWith(leftOutNote)) !== true) return notes;
  const searched = units.flatMap(({ operands }) =>
    operands.filter(({ leavesOut }) => leavesOut !== undefined),
  );
  for (const { leavesOut = [], ...operand } of searched)
    for (const { forms } of await gatherPaths(operand, "read", environment))
      if (await mayHold(forms.at(-1) ?? "", leavesOut)) return notes;
  return notes.filter((note) => !note.startsWith(leftOutNote));
}

function hasReadRules({ policy: { deny, ask } }: PathEnvironment): boolean {
  return [...deny, ...ask].some(
    ({ rule }) => rule.canonicalTool === "Read" && rule.specifier.type === "path",
  );
}

/** The paths that rules keep from being read in the session's repository, if there are any. */
function trackedPaths(
  own: Repository | undefined,
  environment: PathEnvironment,
): { readonly repository: string; readonly exclusions: readonly string[] } | undefined {
  const repository = own?.top ?? own?.gitDirectory;
  if (repository === undefined) return undefined;
  const trees = copyFinderOf(environment).of(posix.join(repository, ".git"));
  const exclusions = gitExclusions(
    environment.policy,
    repository,
    trees.map(({ tree }) => tree),
  );
  return exclusions.length === 0 ? undefined : { repository, exclusions };
}

interface UnitContext {
  readonly environment: PathEnvironment;
  readonly root: string;
  readonly repositories: Repositories;
  readonly analysis: ShellAnalysis;
}

interface GatheredUnit {
  readonly facts: UnitFacts;
  /** The files that git replaces, absolute: any of them may become a link. */
  readonly replaced: readonly string[];
}

async function gatherUnit(unit: ShellUnit, context: UnitContext): Promise<GatheredUnit> {
  const { environment } = context;
  const sources = unit.operands.filter(({ use }) => use === "read");
  const operands = await Promise.all(
    unit.operands.map((operand) => gatherOperand(operand, sources, environment)),
  );
  const { root, repositories, analysis } = context;
  const repository = unit.tree === undefined ? undefined : await repositories.find(root);
  const [texts, named, listed, program, place, transport, changeable] = await Promise.all([
    gatherTexts(unit, environment),
    gatherNamedFiles(unit, environment),
    gatherGitFiles(unit, { environment, repository, analysis }),
    gatherProgram(unit, environment),
    gatherPlace(unit, context),
    gatherTransport(unit, context),
    gatherChangeable(unit, environment),
  ]);
  const made = basename(unit.words[0]?.text ?? "") === "mkdir" ? { isFolder: true } : {};
  const paths = [
    ...operands.flat().map((path) => ({ ...path, ...made })),
    ...texts,
    ...named,
    ...listed.facts,
  ];
  const emptied = emptiedByFind(unit, paths, environment);
  const facts = {
    paths: [...paths, ...emptied],
    ...program,
    ...place,
    ...transport,
    ...(changeable.length > 0 && { mayChange: changeable }),
  };
  return { facts, replaced: listed.replaced };
}

/** Of the files that a command may change for all that is known of it, those that rules keep from being edited. */
async function gatherChangeable(
  { mayChange = [] }: ShellUnit,
  environment: PathEnvironment,
): Promise<readonly PathFact[]> {
  const { policy } = environment;
  const restricting = mayChange.length === 0 ? [] : [...policy.deny, ...policy.ask].filter(isAboutEdits);
  if (restricting.length === 0) return [];
  const named = await Promise.all(
    mayChange.flatMap((operand) =>
      namedBy(operand).map((path) => gatherPaths({ ...operand, path }, "write", environment)),
    ),
  );
  const found = named.flat().map(async (fact) => {
    const isRestricted =
      fact.unknown !== undefined ||
      restricting.some((rule) => matchesPath(rule, fact, { use: "restrict", policy }));
    return isRestricted ? [fact] : findRestricted(fact, restricting, environment);
  });
  const matched = mayChange.flatMap(patternsOf).map(async ({ pattern, ...operand }) => {
    const folders = await gatherPaths(operand, "write", environment);
    return Promise.all(folders.map((fact) => findRestricted(fact, restricting, environment, pattern)));
  });
  return [...(await Promise.all(found)), ...(await Promise.all(matched)).flat()].flat();
}

/** File patterns in a word that reaches the program as it is: the program may expand them itself. */
function patternsOf(operand: PathOperand): readonly (PathOperand & { readonly pattern: string })[] {
  if (!operand.literal || !/[*?[]/.test(operand.path)) return [];
  return operand.path
    .split(/[\s'"`()<>|&{}=,:;@]+/)
    .filter((part) => /[*?[]/.test(part))
    .map((part) => {
      const at = part.lastIndexOf("/", part.search(/[*?[]/));
      return { ...operand, path: at === -1 ? "." : part.slice(0, at) || "/", pattern: part.slice(at + 1) };
    });
}

function isAboutEdits({ rule: { canonicalTool, specifier } }: PolicyRule): boolean {
  return specifier.type === "path" && toolFacts.get(canonicalTool)?.restrictsUse === "write";
}

/** What of a word may be a path; `./...` is all below a folder. */
function namedBy({ path, literal }: PathOperand): readonly string[] {
  return literal ? pathsInWord(path).map((each) => each.replace(/\/\.\.\.$/, "")) : [path];
}

/** Where a git command that exchanges commits leads, as git itself reads its settings. */
async function gatherTransport(
  { transport, directories: [directory = ""] }: ShellUnit,
  { environment, root, repositories }: UnitContext,
): Promise<Pick<UnitFacts, "transport">> {
  if (transport === undefined) return {};
  const place = absolutePath({ path: directory === "" ? "." : directory, use: "read" }, environment);
  const repository = await repositories.find(directory === "" ? root : place);
  const reason = await transportReason(transport, {
    repository,
    isThere: (path) => exists(posix.resolve(place, path)),
    submodules: () => repositories.submodules(repository),
  });
  return reason === undefined ? {} : { transport: reason };
}

/** What a program that is not known to read files is given may still be a file that rules forbid. */
async function gatherTexts(
  { words, operands, readOnly, namesFiles, urls, exactOnly }: ShellUnit,
  environment: PathEnvironment,
): Promise<readonly PathFact[]> {
  const [program, ...rest] = words;
  if (operands.length > 0 || readOnly || program === undefined || namesFiles !== undefined) return [];
  if (
    takesText.has(program.text) ||
    !environment.policy.deny.some(({ rule }) => rule.specifier.type === "path")
  )
    return [];
  // Where every option is known, so are the files.
  if (urls !== undefined && exactOnly === undefined) return [];
  const named = rest.filter(({ text, literal }) => literal && text !== "" && !text.startsWith("-"));
  const paths = named.flatMap(({ text }) => pathsIn(text, environment));
  return Promise.all(paths.map((path) => gatherPathFact({ path, use: "read" }, environment)));
}

/** A word with a scheme is an address: a file only with that of files, or where there is a folder of its name. */
function pathsIn(text: string, { directory }: PathEnvironment): readonly string[] {
  const [, scheme, rest = ""] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is.exec(text) ?? [];
  if (scheme === undefined) return [text];
  if (scheme.toLowerCase() !== "file") return exists(posix.join(directory, `${scheme}:`)) ? [text] : [];
  const decoded = rest.replace(/%[0-9a-f]{2}/gi, (code) =>
    String.fromCharCode(Number.parseInt(code.slice(1), 16)),
  );
  return [text, decoded, decoded.replace(/^[^/]*/, "")].filter((path) => path !== "");
}

/** Commands whose words are more often texts than files. */
const takesText: ReadonlySet<string> = new Set("echo printf git export declare".split(" "));

/** A path with all it reaches; `sources` are what a copy brings to its destination. */
async function gatherOperand(
  operand: PathOperand,
  sources: readonly PathOperand[],
  environment: PathEnvironment,
): Promise<readonly PathFact[]> {
  const { use } = operand;
  if (use !== "copy") {
    const found = await gatherPaths(operand, use, environment);
    const facts =
      operand.isSelection === true ? found.map((fact) => ({ ...fact, isSelection: true })) : found;
    const reached = await Promise.all(
      facts.map((fact) => gatherReach(fact, operand, environment, { names: operand.names })),
    );
    const split = operand.isSplit === true ? await findSplitName(facts) : [];
    return [...facts, ...reached.flat(), ...split];
  }
  const targets = await gatherPaths(operand, "write", environment);
  const origins = await Promise.all(
    sources.map(async (source) => {
      const [from] = await gatherPaths(source, "read", environment);
      return { source, from, kind: isDirectory(from?.forms.at(-1)) ? { isFolder: true } : {} };
    }),
  );
  const facts = await Promise.all(
    targets.map(async (target) => {
      const isFolder = operand.path.endsWith("/") || isDirectory(target.forms.at(-1));
      const arriving = isFolder ? origins : [];
      const joined = await Promise.all(
        arriving.map(async ({ source, kind }) => {
          const path = `${target.forms[0]}/${posix.basename(source.path)}`;
          return { ...(await gatherPathFact({ path, use: "write" }, environment)), ...kind };
        }),
      );
      const copied = await Promise.all(
        origins.map(async ({ source, from }) => {
          // Only a move leaves a link a link; a copy of one file takes what it leads to.
          if (isLink(from?.forms[0]) && operand.below !== undefined)
            return [{ ...target, unknown: "a link that is moved may lead elsewhere" }];
          const to = isFolder ? `${target.forms[0]}/${posix.basename(source.path)}` : target.forms[0];
          return from === undefined || to === undefined || source.below === undefined
            ? []
            : gatherReach(from, source, environment, { to });
        }),
      );
      const own = isFolder ? { isFolder } : (origins[0]?.kind ?? {});
      return [{ ...target, ...own }, ...joined, ...copied.flat()];
    }),
  );
  return facts.flat();
}

function isLink(path: string | undefined): boolean {
  try {
    return path !== undefined && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  } catch {
    return false;
  }
}

function isDirectory(path: string | undefined): boolean {
  if (path === undefined) return false;
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}

async function gatherPaths(
  { path, literal, directory }: PathOperand,
  use: PathFact["use"],
  environment: PathEnvironment,
): Promise<readonly PathFact[]> {
  const isRelative = !path.startsWith("/") && path !== "~" && !path.startsWith("~/");
  const base =
    directory === "" || directory === "unknown"
      ? undefined
      : absolutePath({ path: directory, use }, environment);
  const written = { path, use, directory: base };
  if (isRelative && directory === "unknown")
    return [await guess(written, environment, "the folder it starts in is not known")];
  if (literal) return [await gatherPathFact(written, environment)];
  const known = guessExpansions(path, base ?? environment.directory);
  if (known.length > 0)
    return Promise.all(
      known.map((each) =>
        guess({ ...written, path: each }, environment, "it is only known when the command runs"),
      ),
    );
  const isExpanded = /[$`]/.test(path);
  const unset = path.replace(/\$(?:\w+|\{\w+(?::?[-=+?]([^}]*))?\})/g, "$1");
  // Variables that are not set vanish, and `"$X"/*` is then all there is.
  const guesses = isExpanded && unset.startsWith("/") ? [written, { ...written, path: unset }] : [written];
  return Promise.all(
    guesses.map((each) => guess(each, environment, "it is only known when the command runs")),
  );
}

/** What a path most likely becomes: where the command runs, what braces list, what `xargs` puts in place of its sign. */
function guessExpansions(path: string, directory: string): readonly string[] {
  const here = path.replaceAll(
    /\$\(\s*(?:pwd|git rev-parse --show-toplevel)[^()]*\)|`\s*pwd[^`]*`/g,
    directory,
  );
  const [, before = "", list, after = ""] = /^([^{}$]*)\{([^{}]*,[^{}]*)\}(.*)$/s.exec(here) ?? [];
  if (list !== undefined) return list.split(",").map((each) => `${before}${each}${after}`);
  if (here === "{}") return ["."];
  return here === path ? [] : [here];
}

async function guess(
  written: Parameters<typeof gatherPathFact>[0],
  environment: PathEnvironment,
  unknown: string,
): Promise<PathFact> {
  return { ...(await gatherPathFact(written, environment)), unknown };
}

/** A program called by a path may be a link to one that rules name. */
async function gatherProgram(
  unit: ShellUnit,
  environment: PathEnvironment,
): Promise<Pick<UnitFacts, "otherTexts" | "programUnknown" | "program">> {
  const [program, ...rest] = unit.words;
  if (program === undefined) return { otherTexts: [] };
  if (!program.text.includes("/")) return { otherTexts: [], ...doubtfulProgram(unit, environment) };
  const path = absolutePath({ path: program.text, use: "read" }, environment);
  const real = await findRealLocation(path);
  const isThere = exists(path);
  const isUnknown = isThere && real !== undefined ? {} : { programUnknown: true as const };
  if (real === undefined || basename(real) === basename(program.text))
    return { otherTexts: [], ...isUnknown };
  return { otherTexts: [[basename(real), ...rest.map(({ text }) => text)].join(" ")], ...isUnknown };
}

type Place = Pick<UnitFacts, "elsewhere" | "movedTo" | "isPartOfProject" | "repository" | "configuration">;

/** Whether a program that needs no question is what its name says, on the search path that it gets. */
function doubtfulProgram(
  { words, readOnly }: ShellUnit,
  environment: PathEnvironment,
): Pick<UnitFacts, "program"> {
  const name = words[0]?.text ?? "";
  if (!readOnly || isBuiltin(name)) return {};
  const { policy, searchPath = process.env["PATH"] } = environment;
  const find = finders.get(environment) ?? createProgramFinder(searchPath, policy.workingDirectories);
  finders.set(environment, find);
  const found = find(name);
  return found.type === "unsure" ? { program: found.reason } : {};
}

/** One for all commands of a call. */
const finders = new WeakMap<PathEnvironment, ReturnType<typeof createProgramFinder>>();

const movers: ReadonlySet<string> = new Set(["cd", "pushd", "popd", "chdir"]);

/** Where a command runs: programs act by the files of the folder they are in, git by the repository around it. */
async function gatherPlace(
  unit: ShellUnit,
  { environment, root, repositories, analysis }: UnitContext,
): Promise<Place> {
  const { words, directories } = unit;
  const name = basename(words[0]?.text ?? "");
  if (movers.has(name)) return {};
  // What else the call does could lay out another repository there first.
  const isChanging = analysis.units.some((other) => other !== unit && !other.readOnly);
  if (directories.includes("unknown"))
    return {
      elsewhere: "the folder that the commands run in is not known",
      movedTo: "a folder that is not known",
      ...(name === "git" && { repository: "git would run in a folder that is not known" }),
    };
  let place: Place = {};
  let isPart = true;
  for (const directory of directories) {
    const isStart = directory === "";
    const fact = isStart ? undefined : await gatherPathFact({ path: directory, use: "read" }, environment);
    const real = fact?.forms.at(-1) ?? environment.directory;
    const outside = fact?.forms.find((form) => !isInside(form, environment.policy.workingDirectories));
    if (outside !== undefined)
      place = { ...place, elsewhere: `commands would run in ${outside}, outside the working directories` };
    if (real !== root) place = { ...place, movedTo: real };
    isPart &&= real === root || (managers.has(name) && (await isWorkspaceOf(root, real, repositories)));
    if (name === "git" && !isStart && isChanging)
      place = { ...place, repository: "git would run in a folder that the same call may change" };
    if (name === "git" && !isSame(await repositories.find(real), await repositories.find(root)))
      place = { ...place, repository: "git would run in another repository, by its settings" };
  }
  if (isPart && place.movedTo !== undefined) place = { ...place, isPartOfProject: true };
  const steering = name === "git" ? steeringOf(await repositories.find(root)) : undefined;
  return steering === undefined ? place : { ...place, configuration: steering };
}

/** Why git may not be let read a repository without a question. */
export function steeringOf(facts: RepositoryFacts): string | undefined {
  if (facts.type === "unclear")
    return `git could not report the configuration of this repository: ${facts.reason}`;
  return facts.type === "none" || facts.steering === undefined
    ? undefined
    : `the setting ${facts.steering} of this repository may start programs or read files`;
}

function isSame(left: RepositoryFacts, right: RepositoryFacts): boolean {
  if (left.type !== "repository" || right.type !== "repository")
    return left === right || (left.type === "none" && right.type === "none");
  return left.gitDirectory === right.gitDirectory && left.top === right.top;
}

/** Programs that run what the package of a folder names; the workspaces of a repository are one project to them. */
const managers: ReadonlySet<string> = new Set(["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"]);

/** Whether the package of the project names a folder as one of its workspaces, in the same repository. */
async function isWorkspaceOf(root: string, folder: string, repositories: Repositories): Promise<boolean> {
  const relative = posix.relative(root, folder);
  const isPlain =
    isInside(folder, [root]) &&
    isDirectory(folder) &&
    exists(posix.join(folder, "package.json")) &&
    steersPrograms(relative, { isFolder: true }) === undefined;
  if (!isPlain || !namesWorkspace(root, relative)) return false;
  for (let at = folder; at !== root; at = posix.dirname(at)) if (exists(posix.join(at, ".git"))) return false;
  const own = await repositories.find(root);
  return own.type === "repository" && isSame(own, await repositories.find(folder));
}

/** Reads the workspaces as package managers do: paths and patterns with stars, and `!` for what is left out. */
function namesWorkspace(root: string, folder: string): boolean {
  const patterns = [...packageWorkspaces(root), ...pnpmWorkspaces(root)].map((pattern) =>
    pattern.replace(/^(!?)(?:\.\/)*/, "$1").replace(/\/+$/, ""),
  );
  const [left, listed] = [
    patterns.filter((pattern) => pattern.startsWith("!")).map((pattern) => pattern.slice(1)),
    patterns.filter((pattern) => !pattern.startsWith("!")),
  ];
  const isIn = (list: readonly string[]): boolean => list.some((pattern) => matchesFolder(pattern, folder));
  return isIn(listed) && !isIn(left);
}

/** `*` matches any part of one name, `**` any number of folders; no other sign means anything here. */
function matchesFolder(pattern: string, folder: string): boolean {
  const [names, parts] = [folder.split("/"), pattern.split("/")];
  const fits = (name: number, part: number): boolean => {
    const wanted = parts[part];
    if (wanted === undefined) return name === names.length;
    if (wanted === "**") return fits(name, part + 1) || (name < names.length && fits(name + 1, part));
    const [before = "", ...rest] = wanted.split("*");
    const after = rest.at(-1) ?? "";
    const given = names[name];
    if (given === undefined || rest.length > 1) return false;
    const isSame =
      rest.length === 0
        ? given === wanted
        : given.length >= wanted.length - 1 && given.startsWith(before) && given.endsWith(after);
    return isSame && fits(name + 1, part + 1);
  };
  return (
    parts.length <= 20 &&
    names.length <= 20 &&
    parts.filter((part) => part === "**").length <= 1 &&
    fits(0, 0)
  );
}

const maxManifest = 1_000_000;

function readManifest(file: string): string {
  try {
    return statSync(file).size > maxManifest ? "" : readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function packageWorkspaces(root: string): readonly string[] {
  const { workspaces } = Object(parseJson(readManifest(posix.join(root, "package.json"))));
  const list: unknown = Array.isArray(workspaces) ? workspaces : Object(workspaces)["packages"];
  return Array.isArray(list) ? list.filter((entry) => typeof entry === "string") : [];
}

/** The list `packages` of the file; any other form of YAML names none. */
function pnpmWorkspaces(root: string): readonly string[] {
  const text = readManifest(posix.join(root, "pnpm-workspace.yaml"));
  const list = /^packages:[ \t]*\r?\n((?:[ \t]*(?:-[^\n]*|#[^\n]*)?\r?\n?)*)/m.exec(text)?.[1] ?? "";
  return [...list.matchAll(/^[ \t]*-[ \t]*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"'#][^\n#]*))/gm)].map(
    ([, double, single, plain]) => (double ?? single ?? plain ?? "").trim(),
  );
}

interface Repositories {
  /** What git says about a folder, asked once. */
  readonly find: (folder: string) => Promise<RepositoryFacts>;
  /** The addresses of its submodules; undefined where git cannot read them. */
  readonly submodules: (facts: RepositoryFacts) => Promise<readonly string[] | undefined>;
}

/** How git is asked about the folders of commands. */
export function repositoryOptions({
  home,
  policy,
  searchPath = process.env["PATH"],
}: Pick<PathEnvironment, "home" | "policy" | "searchPath">): AskOptions {
  return { environment: { PATH: searchPath, HOME: home }, folders: policy.workingDirectories };
}

function createRepositories({ home, policy, searchPath, askRepository: ask }: PathEnvironment): Repositories {
  const known = new Map<string, Promise<RepositoryFacts>>();
  const asking = repositoryOptions({ home, policy, searchPath });
  return {
    find(folder) {
      const found = known.get(folder) ?? ask?.(folder) ?? askRepository(folder, asking);
      known.set(folder, found);
      return found;
    },
    async submodules(facts) {
      if (facts.type !== "repository" || facts.top === undefined) return undefined;
      const words = ["config", "--file", ".gitmodules", "-z", "--get-regexp", "^submodule\\..*\\.url$"];
      const { stdout, exitCode } = await runOwnGit({ ...asking, directory: facts.top, words });
      if (exitCode !== 0) return exitCode === 1 ? [] : undefined;
      return stdout.split("\0").flatMap((entry) => entry.split("\n").slice(1, 2));
    },
  };
}

function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

/**
 * The paths that rules keep from being read, as pathspecs that leave them out of what git shows of a repository.
 * Empty where no rule can match a path in it, or in another working tree of it.
 */
export function gitExclusions(
  policy: Pick<PermissionPolicy, "deny" | "ask" | "home" | "workingDirectories" | "platform">,
  repository: string,
  otherTrees: readonly string[] = [],
): readonly string[] {
  const magic =
    policy.platform === "darwin" || policy.platform === "win32"
      ? "top,exclude,glob,icase"
      : "top,exclude,glob";
  const patterns = [...policy.deny, ...policy.ask].flatMap((rule) => [
    ...patternsIn(rule, policy, repository),
    // A rule about the whole of another tree, or what is around it, does not match places in it.
    ...otherTrees.flatMap((tree) => patternsIn(rule, policy, tree).filter((pattern) => pattern !== "**")),
  ]);
  return [...new Set(patterns)].flatMap((pattern) => [`:(${magic})${pattern}`, `:(${magic})${pattern}/**`]);
}

/**
 * The names by which everything that rules keep from being read can be left out of a search, at any depth and so perhaps
 * more than the rules match. Empty where there are no such rules, or where one of them cannot be expressed by names.
 */
export function unreadableNames({
  deny,
  ask,
  platform,
}: Pick<PermissionPolicy, "deny" | "ask" | "platform">): readonly UnreadableName[] {
  // Programs compare names letter by letter, and here two names may be one file.
  if (platform === "darwin" || platform === "win32") return [];
  const names: UnreadableName[] = [];
  for (const { rule } of [...deny, ...ask]) {
    if (rule.canonicalTool !== "Read" || rule.specifier.type !== "path") continue;
    const segments = rule.specifier.pattern.split("/").filter((segment) => segment !== "" && segment !== ".");
    const last = segments.findLastIndex((segment) => !/^\*+$/.test(segment));
    const name = segments[last];
    if (name === undefined || !/^[\w.@%+=,~*?-]+$/.test(name) || name === "..") return [];
    names.push({ name, ...(last < segments.length - 1 && { isFolder: true as const }) });
  }
  return names;
}

function patternsIn(
  { rule, anchor }: PolicyRule,
  { home, workingDirectories }: Pick<PermissionPolicy, "home" | "workingDirectories">,
  repository: string,
): readonly string[] {
  const { specifier } = rule;
  if (rule.canonicalTool !== "Read" || specifier.type !== "path") return [];
  const base = { root: "/", home, settings: anchor, cwd: workingDirectories[0] ?? repository }[
    specifier.anchor
  ];
  const segments = posix
    .normalize(specifier.pattern)
    .split("/")
    .filter((segment) => segment !== "" && segment !== ".");
  // A name alone, or a folder with all it holds, is meant at any depth.
  const floats = segments.length === 1 || (segments.length === 2 && segments[1] === "**");
  const name = segments.join("/").replace(/\/\*\*$/, "");
  if (segments[0] === ".." || name === "") return ["**"];
  if (isBelow(base, repository)) {
    const inside = posix.relative(repository, base);
    const start = inside === "" ? "" : `${inside}/`;
    return floats ? [`${start}**/${name}`, `${start}${name}`] : [`${start}${name}`];
  }
  if (!isBelow(repository, base)) return [];
  if (floats) return [`**/${name}`, name];
  return remaining(segments, posix.relative(base, repository).split("/"));
}

/** What is left of a pattern when the first folders of a path have been taken off. */
function remaining(pattern: readonly string[], folders: readonly string[]): readonly string[] {
  const [first, ...rest] = pattern;
  const [folder, ...deeper] = folders;
  if (first === undefined) return ["**"];
  if (folder === undefined) return [pattern.join("/").replace(/\/\*\*$/, "")];
  if (first === "**") return [`**/${rest.join("/")}`.replace(/\/$/, ""), ...remaining(rest, folders)];
  return matchesName(first, folder) ? remaining(rest, deeper) : [];
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
