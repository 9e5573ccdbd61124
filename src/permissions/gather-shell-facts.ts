// @io
import { lstatSync, readFileSync, statSync } from "node:fs";
import { basename, posix } from "node:path";
import type { PathFact, ShellFacts, UnitFacts } from "./call-facts.ts";
import { followMadeLinks } from "./follow-made-links.ts";
import { gatherGitFiles } from "./gather-git-files.ts";
import { gatherNamedFiles } from "./gather-named-files.ts";
import {
  absolutePath,
  copyFinderOf,
  findRealLocation,
  gatherPathFact,
  type PathEnvironment,
} from "./gather-path-facts.ts";
import { emptiedByFind, findEmptied, findSplitName, gatherReach } from "./gather-reach.ts";
import { gitExclusions } from "./git-exclusions.ts";
import { isInside } from "./permission-policy.ts";
import { loadAnalysis } from "./shell/load-analysis.ts";
import type { PathOperand, ShellAnalysis, ShellUnit } from "./shell/shell-analysis.ts";
import { steersPrograms } from "./steers-programs.ts";

/** Looks up what the commands of a shell call would touch. */
export async function gatherShellFacts(command: string, environment: PathEnvironment): Promise<ShellFacts> {
  const repositories = createRepositories();
  const [root = environment.directory] = environment.policy.workingDirectories;
  const tracked = hasReadRules(environment) ? trackedPaths(root, repositories, environment) : undefined;
  const analysis = await loadAnalysis(command, {
    home: environment.home,
    directory: environment.directory,
    ...tracked,
  });
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
  const { directory, home } = environment;
  const replaced = units.map((unit) => unit.replaced);
  return {
    analysis,
    ...followMadeLinks(found, analysis.units, { directory, home, replaced }),
    ...(tracked !== undefined && { rulesOnTracked: true }),
  };
}

function hasReadRules({ policy: { deny, ask } }: PathEnvironment): boolean {
  return [...deny, ...ask].some(
    ({ rule }) => rule.canonicalTool === "Read" && rule.specifier.type === "path",
  );
}

/** The paths that rules keep from being read in the session's repository, if there are any. */
function trackedPaths(
  root: string,
  repositories: Repositories,
  environment: PathEnvironment,
): { readonly repository: string; readonly exclusions: readonly string[] } | undefined {
  const repository = repositories.find(root);
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
  const repository = unit.tree === undefined ? undefined : repositories.find(root);
  const [texts, named, listed, program, place] = await Promise.all([
    gatherTexts(unit, environment),
    gatherNamedFiles(unit, environment),
    gatherGitFiles(unit, { environment, repository, analysis }),
    gatherProgram(unit, environment),
    gatherPlace(unit, context),
  ]);
  const made = basename(unit.words[0]?.text ?? "") === "mkdir" ? { isFolder: true } : {};
  const paths = [
    ...operands.flat().map((path) => ({ ...path, ...made })),
    ...texts,
    ...named,
    ...listed.facts,
  ];
  const emptied = emptiedByFind(unit, paths, environment);
  const facts = { paths: [...paths, ...emptied], ...program, ...place };
  return { facts, replaced: listed.replaced };
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
      facts.map((fact) => gatherReach(fact, operand.below, environment, { names: operand.names })),
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
            : gatherReach(from, source.below, environment, { to });
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
  const written = { path, use, ...(base === undefined ? {} : { directory: base }) };
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

/** A program called by a path may be a link to one that rules speak of. */
async function gatherProgram(
  unit: ShellUnit,
  environment: PathEnvironment,
): Promise<Pick<UnitFacts, "otherTexts" | "programUnknown">> {
  const [program, ...rest] = unit.words;
  if (program === undefined || !program.text.includes("/")) return { otherTexts: [] };
  const path = absolutePath({ path: program.text, use: "read" }, environment);
  const real = await findRealLocation(path);
  const isThere = exists(path);
  const isUnknown = isThere && real !== undefined ? {} : { programUnknown: true as const };
  if (real === undefined || basename(real) === basename(program.text))
    return { otherTexts: [], ...isUnknown };
  return { otherTexts: [[basename(real), ...rest.map(({ text }) => text)].join(" ")], ...isUnknown };
}

type Place = Pick<UnitFacts, "elsewhere" | "movedTo" | "isPartOfProject" | "repository" | "configuration">;

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
    isPart &&= real === root || isPartOf(root, real, repositories);
    if (name === "git" && !isStart && isChanging)
      place = { ...place, repository: "git would run in a folder that the same call may change" };
    if (name === "git" && repositories.find(real) !== repositories.find(root))
      place = { ...place, repository: "git would run in another repository, by its settings" };
  }
  if (isPart && place.movedTo !== undefined) place = { ...place, isPartOfProject: true };
  const own = name === "git" ? repositories.find(root) : undefined;
  const steering = own === undefined ? undefined : findSteeringSetting(own);
  if (steering !== undefined)
    place = {
      ...place,
      configuration: `the setting ${steering} of this repository may start programs or read files`,
    };
  return place;
}

/** Whether a folder that is there belongs to the same repository as another, and holds no programs of others. */
function isPartOf(root: string, folder: string, repositories: Repositories): boolean {
  const own = repositories.find(root);
  return (
    own !== undefined &&
    isInside(folder, [root]) &&
    isDirectory(folder) &&
    repositories.find(folder) === own &&
    steersPrograms(posix.relative(root, folder), { isFolder: true }) === undefined
  );
}

interface Repositories {
  /** The folder of the repository around a place, bare ones too. */
  readonly find: (folder: string) => string | undefined;
}

function createRepositories(): Repositories {
  const known = new Map<string, string | undefined>();
  return {
    find(folder) {
      const found = known.has(folder) ? known.get(folder) : findRepository(folder);
      known.set(folder, found);
      return found;
    },
  };
}

function findRepository(folder: string): string | undefined {
  for (let at = folder; ; at = posix.dirname(at)) {
    if (exists(posix.join(at, ".git"))) return at;
    if (exists(posix.join(at, "HEAD")) && exists(posix.join(at, "objects"))) return at;
    if (at === posix.dirname(at)) return undefined;
  }
}

function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

/**
 * Settings of a repository that do nothing when git only reads: plain data, or programs that are switched off for such
 * calls. Compared in lower case, without subsections.
 */
const permittedSettings: readonly RegExp[] = [
  /^core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|autocrlf|eol|symlinks|quotepath|hookspath|fsmonitor|pager|editor|sshcommand|askpass|untrackedcache|preloadindex|fscache|longpaths|protecthfs|protectntfs|splitindex|compression|bigfilethreshold|abbrev|commentchar|safecrlf|whitespace|trustctime|checkstat|multipackindex|commitgraph|sparsecheckout|sparsecheckoutcone)$/,
  /^(?:remote|branch|user|author|committer|submodule|init|pull|push|fetch|rebase|commit|tag|color|lfs|http|url|gui|extensions|gc|maintenance|advice|feature|index|pack|receive|credential|gpg|alias|log|status|rerere|column|stash|worktree|checkout|clone|svn-remote|github|gitlab|hub|vscode-merge-base)\./,
  /^merge\.(?:conflictstyle|ff|tool|stat|renames|log|verbosity|autostash)$/,
  /^diff\.(?:renames|algorithm|colormoved|colormovedws|mnemonicprefix|noprefix|context|interhunkcontext|renamelimit|suppressblankempty|tool|textconv|command|xfuncname|binary|cachetextconv|wordregex|external|guitool|statgraphwidth|indentheuristic)$/,
];

/** The first setting of a repository's own configuration that is not known to be harmless, if there is one. */
export function findSteeringSetting(repository: string): string | undefined {
  const directory = findGitDirectory(repository);
  if (directory === undefined) return undefined;
  const common = read(posix.join(directory, "commondir"))?.trim();
  const shared = common === undefined || common === "" ? directory : posix.resolve(directory, common);
  const files = [posix.join(shared, "config"), posix.join(directory, "config.worktree")];
  for (const file of files) {
    const found = settingsIn(read(file) ?? "").find(
      (name) => !permittedSettings.some((pattern) => pattern.test(name)),
    );
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The same for the repository around a folder. */
export function findSteeringSettingAround(folder: string): string | undefined {
  const repository = findRepository(folder);
  return repository === undefined ? undefined : findSteeringSetting(repository);
}

function findGitDirectory(repository: string): string | undefined {
  const place = posix.join(repository, ".git");
  // A bare one, or git's own folder.
  if (!exists(place)) return repository;
  const link = read(place);
  if (link === undefined) return place;
  const target = /^gitdir: (.+)$/m.exec(link)?.[1]?.trim();
  return target === undefined ? undefined : posix.resolve(repository, target);
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** The names of all settings, as `section.key`; a line that is not understood is a name that no one knows. */
function settingsIn(text: string): readonly string[] {
  let section = "";
  const names: string[] = [];
  for (const line of text.replaceAll("\\\n", " ").split("\n")) {
    const trimmed = line.trim();
    if (trimmed === "" || /^[#;]/.test(trimmed)) continue;
    const header = /^\[\s*([\w.-]+)\s*(?:"(?:[^"\\]|\\.)*")?\s*\]\s*(.*)$/.exec(trimmed);
    const rest = header === null ? trimmed : (header[2] ?? "");
    if (header !== null) section = (header[1] ?? "").split(".")[0]?.toLowerCase() ?? "";
    if (rest === "" || /^[#;]/.test(rest)) continue;
    const key = /^([A-Za-z][\w-]*)\s*(?:=|$|[#;])/.exec(rest)?.[1];
    names.push(key === undefined ? `${section}.?` : `${section}.${key.toLowerCase()}`);
  }
  return names;
}
