// @io
import { type Dirent, lstatSync, statSync } from "node:fs";
import { posix } from "node:path";
import type { PathFact } from "./call-facts.ts";
import { coversPath, matchesName } from "./covers-path.ts";
import {
  copyFinderOf,
  entriesLeft,
  gatherPathFact,
  hooksFolderOf,
  kindOf,
  literalPath,
  type PathEnvironment,
} from "./gather-path-facts.ts";
import { isHook } from "./git/find-hooks-folder.ts";
import { listFolder } from "./list-folder.ts";
import { isInside, type PolicyRule } from "./permission-policy.ts";
import { protectionOf } from "./protection-of.ts";
import { matchesPath } from "./rules/matches-call.ts";
import type { PathOperand, ShellUnit, UnreadableName } from "./shell/model.ts";
import { whyNotAccepted } from "./why-not-accepted.ts";

const maxEntries = 4_000;
const maxLinks = 50;
/** Folders of installed packages hold files of protected names that steer nothing. */
const packages = ["node_modules"];

/**
 * What lies below a folder that a command uses whole and that rules or guards match: one file for each kind, or a
 * path that is not known where there is too much to look at. `to` is where a copy brings it; of files with other names than
 * `names` nothing is used.
 */
export function gatherReach(
  fact: PathFact,
  operand: Pick<PathOperand, "below" | "leavesOut">,
  environment: PathEnvironment,
  more: { readonly to?: string; readonly names?: readonly string[] | undefined } = {},
): Promise<readonly PathFact[]> {
  const left = JSON.stringify([operand.leavesOut, more.names]);
  const key = [fact.use, operand.below, left, more.to, fact.forms.at(-1)].join("\0");
  return lookOnce(environment, key, () => lookBelow(fact, operand, environment, more));
}

/** The same folder may be named many times in one call. */
function lookOnce(
  environment: PathEnvironment,
  key: string,
  look: () => Promise<readonly PathFact[]>,
): Promise<readonly PathFact[]> {
  const known = reached.get(environment) ?? new Map<string, Promise<readonly PathFact[]>>();
  reached.set(environment, known);
  const found = known.get(key) ?? look();
  known.set(key, found);
  return found;
}

const reached = new WeakMap<PathEnvironment, Map<string, Promise<readonly PathFact[]>>>();

async function lookBelow(
  fact: PathFact,
  { below, leavesOut }: Pick<PathOperand, "below" | "leavesOut">,
  environment: PathEnvironment,
  { to, names }: { readonly to?: string; readonly names?: readonly string[] | undefined },
): Promise<readonly PathFact[]> {
  const folder = fact.forms.at(-1);
  if (below === undefined || folder === undefined || !isFolder(folder)) return [];
  const visible = below === "visible";
  const links =
    below === "follow" || to !== undefined ? await findLinks(fact, folder, { environment, to, names }) : [];
  const onlyShared = fact.use === "read" && areLeftOut(fact, leavesOut);
  const reached =
    to === undefined ? await findForbidden(fact, folder, { environment, visible, onlyShared, names }) : [];
  const changes = fact.use !== "read" || to !== undefined;
  if (!changes) return [...links, ...reached];
  const copied =
    to === undefined
      ? []
      : await findForbidden({ ...fact, use: "write" }, folder, { environment, visible, to });
  return [...links, ...reached, ...copied, ...(await findProtected(folder, environment, { to, names }))];
}

/** A name below a folder that is taken for several when it is printed and read again; what results from it is not known. */
export async function findSplitName(facts: readonly PathFact[]): Promise<readonly PathFact[]> {
  const found = await Promise.all(
    facts.map(async (fact): Promise<readonly PathFact[]> => {
      const isOdd = (path: string): boolean => /[\s'"\\]/.test(path);
      const [folder = ""] = fact.forms;
      const { found: name, isIncomplete } = await findBelow(folder, {
        matches: (path) => isOdd(posix.relative(folder, path)),
      });
      if (name === undefined && isIncomplete !== true) return [];
      return [{ ...fact, unknown: "names of files below it may be taken for several" }];
    }),
  );
  return found.flat();
}

/** Whether a command leaves out all that rules forbid, by names; it does not leave out the folder that it begins in. */
function areLeftOut({ forms }: PathFact, leavesOut: PathOperand["leavesOut"]): boolean {
  if (leavesOut === undefined) return false;
  const names = forms.flatMap((form) => form.split("/"));
  return !leavesOut.some(
    ({ name, isFolder }) => isFolder === true && names.some((own) => matchesName(name, own)),
  );
}

/** Whether something of one of these names may be below a folder. */
export async function mayHold(folder: string, names: readonly UnreadableName[]): Promise<boolean> {
  const { found, isIncomplete } = await findBelow(folder, {
    matches: (path) => names.some(({ name }) => matchesName(name, posix.basename(path))),
  });
  return found !== undefined || isIncomplete === true;
}

/** Folders of which a command with a file pattern removes everything that shows, or everything that does not: `rm -rf *`. */
export async function findEmptied(command: string, paths: readonly PathFact[]): Promise<readonly PathFact[]> {
  const removed = command.includes("*") ? paths.filter(({ use }) => use === "remove") : [];
  const names = Map.groupBy(
    removed.map(({ forms: [path = ""] }) => path),
    (path) => posix.dirname(path),
  );
  const emptied = [...names].map(async ([folder, gone]): Promise<readonly PathFact[]> => {
    const entries = await listFolder(folder);
    const areGone = (own: readonly Dirent[], fewest: number): boolean =>
      own.length >= fewest && own.every(({ name }) => gone.includes(posix.join(folder, name)));
    const shown = entries.filter(({ name }) => !name.startsWith("."));
    const isEmptied =
      areGone(shown, 1) ||
      areGone(
        entries.filter((entry) => !shown.includes(entry)),
        1,
      ) ||
      // `rm -rf */` leaves the files.
      areGone(
        shown.filter((entry) => entry.isDirectory()),
        2,
      );
    return isEmptied ? [{ forms: [folder], use: "remove" }] : [];
  });
  return (await Promise.all(emptied)).flat();
}

/** `find -delete` empties the folder it starts in; below the work that is a matter of rules. */
export function emptiedByFind(
  { words }: ShellUnit,
  paths: readonly PathFact[],
  { directory }: PathEnvironment,
): readonly PathFact[] {
  if (posix.basename(words[0]?.text ?? "") !== "find" || !words.some(({ text }) => text === "-delete"))
    return [];
  const isWhole = words.every(({ text }) => !text.startsWith("-") || unselecting.has(text));
  const outside = paths.filter(({ forms }) => isWhole || !forms.every((form) => isInside(form, [directory])));
  return outside.map((path) => ({ ...path, use: "remove" }));
}

/** Options of `find` that choose no files, or all that are no folders, so that everything is deleted. */
const unselecting: ReadonlySet<string> = new Set(
  "-delete -depth -mindepth -type -xdev -mount -print -H -L -P".split(" "),
);

function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}

function hasOneName(path: string): boolean {
  try {
    const entry = lstatSync(path);
    return !entry.isFile() || entry.nlink === 1;
  } catch {
    return false;
  }
}

/**
 * The first file below a folder that one of these rules keeps from being written; packages of others hold none. The rules are
 * the same for all that a call names.
 */
export async function findRestricted(
  { forms }: PathFact,
  rules: readonly PolicyRule[],
  environment: PathEnvironment,
  pattern?: string,
): Promise<readonly PathFact[]> {
  const folder = forms.at(-1);
  if (folder === undefined || !isFolder(folder)) return [];
  const fact: PathFact = { forms, use: "write" };
  const key = ["restricted", folder, pattern].join("\0");
  return lookOnce(environment, key, () =>
    findForbidden(fact, folder, { environment, visible: false, only: rules, skip: packages, pattern }),
  );
}

async function findForbidden(
  { use }: PathFact,
  folder: string,
  {
    environment,
    visible,
    to,
    names,
    onlyShared = false,
    only,
    skip,
    pattern,
  }: {
    readonly environment: PathEnvironment;
    readonly visible: boolean;
    readonly to?: string;
    readonly names?: readonly string[] | undefined;
    /** The command leaves out what is forbidden by its name, so that only files with other names are left to find. */
    readonly onlyShared?: boolean;
    /** Only these rules count; absent means all that deny or ask. */
    readonly only?: readonly PolicyRule[];
    readonly skip?: readonly string[];
    /** Only what this file pattern matches below the folder counts. */
    readonly pattern?: string | undefined;
  },
): Promise<readonly PathFact[]> {
  const place = (path: string): string => placeOf(path, folder, to);
  const placed = (path: string): PathFact => ({
    forms: [path],
    copies: copyFinderOf(environment).of(path),
    use,
  });
  const rules = (only ?? [...environment.policy.deny, ...environment.policy.ask]).filter((rule) =>
    canMatchInTrees(rule, to ?? folder, environment),
  );
  if (rules.length === 0) return [];
  const { found, isIncomplete } = await findBelow(folder, {
    visible,
    environment,
    skip,
    matches: (path) =>
      isNamed(path, names) &&
      (pattern === undefined || coversPath(pattern, folder, path, { foldsCase: true, floats: false })) &&
      rules.some((rule) =>
        matchesPath(rule, placed(place(path)), { use: "restrict", policy: environment.policy }),
      ) &&
      !(onlyShared && hasOneName(path)),
  });
  if (found !== undefined) return [placed(place(found))];
  return isIncomplete === true && !onlyShared
    ? [
        {
          forms: [to ?? folder],
          use,
          unknown: "there are too many files below it to compare them with rules",
        },
      ]
    : [];
}

/** Where links below a folder lead: a program follows them, or a copy brings them to a place where they lead elsewhere. */
async function findLinks(
  { use }: PathFact,
  folder: string,
  {
    environment,
    to,
    names,
  }: {
    readonly environment: PathEnvironment;
    readonly to: string | undefined;
    readonly names: readonly string[] | undefined;
  },
): Promise<readonly PathFact[]> {
  const links: string[] = [];
  const { isIncomplete } = await findBelow(folder, {
    environment,
    matches: (path, isLink) => {
      if (isLink && isNamed(path, names)) links.push(path);
      return links.length > maxLinks;
    },
  });
  if (to !== undefined && links.length > 0)
    return [{ forms: [to], use: "write", unknown: "it contains links, which may lead elsewhere from there" }];
  if (isIncomplete === true || links.length > maxLinks)
    return [{ forms: [folder], use, unknown: "there are too many files below it to look at" }];
  return Promise.all(links.map((path) => gatherPathFact({ path, use }, environment)));
}

function isNamed(path: string, names: readonly string[] | undefined): boolean {
  const name = posix.basename(path).toLowerCase();
  return names === undefined || names.some((pattern) => matchesName(pattern.toLowerCase(), name));
}

/** Where a copy brings what lies below a folder. */
function placeOf(path: string, folder: string, to: string | undefined): string {
  return to === undefined ? path : posix.join(to, posix.relative(folder, path));
}

async function findProtected(
  folder: string,
  environment: PathEnvironment,
  { to, names }: { readonly to: string | undefined; readonly names: readonly string[] | undefined },
): Promise<readonly PathFact[]> {
  const place = (path: string): string => placeOf(path, folder, to);
  const hooks = await hooksFolderOf(environment);
  const isRun = (path: string): boolean => hooks !== undefined && isHook(path, hooks);
  let steering: PathFact | undefined;
  const { found, isIncomplete } = await findBelow(folder, {
    environment,
    skip: packages,
    matches: (path, isLink, isDirectory) => {
      const brought: PathFact = {
        forms: [place(path)],
        use: "write",
        ...(isDirectory ? { isFolder: true } : kindOf(path)),
      };
      // What a copy brings counts as written where it lands.
      if (
        to !== undefined &&
        steering === undefined &&
        !isLink &&
        whyNotAccepted(brought, environment.policy) !== undefined
      )
        steering = brought;
      const isGuarded = protectionOf(place(path), environment.policy) !== undefined || isRun(place(path));
      return isNamed(path, names) && isGuarded;
    },
  });
  if (found !== undefined)
    return [{ forms: [place(found)], use: "write", ...(isRun(place(found)) && { isHook: true }) }];
  if (steering !== undefined) return [steering];
  return isIncomplete === true
    ? [{ forms: [to ?? folder], use: "write", unknown: "there are too many files below it to look at" }]
    : [];
}

/** Whether a rule can match a file below a folder, also by what it rules about another working tree. */
function canMatchInTrees(rule: PolicyRule, folder: string, environment: PathEnvironment): boolean {
  const finder = copyFinderOf(environment);
  const main = finder.mainTree(folder);
  const folders = [
    folder,
    ...finder.of(folder).map(({ path }) => path),
    ...(main === undefined ? [] : [main]),
  ];
  return folders.some((place) =>
    (environment.policy.workingDirectories.length === 0
      ? [place]
      : environment.policy.workingDirectories
    ).some((start) => canMatchBelow(rule, place, { environment, start })),
  );
}

/** Whether a rule about files can match one below a folder, where its relative paths begin at `start`. */
function canMatchBelow(
  { rule, anchor }: PolicyRule,
  folder: string,
  { environment, start: cwd }: { readonly environment: PathEnvironment; readonly start: string },
): boolean {
  const { specifier } = rule;
  if (specifier.type !== "path") return false;
  const literal = literalPath({ rule, anchor }, { ...environment, directory: cwd });
  const base = { root: "/", home: environment.home, settings: anchor, cwd }[specifier.anchor];
  const segments = specifier.pattern.split("/");
  const first = segments.findIndex((segment) => /[*?[\\]/.test(segment));
  // A name alone is meant at any depth below its base.
  const start =
    segments.filter((segment) => segment !== "" && segment !== ".").length === 1 || first === 0
      ? base
      : (literal ?? posix.join(base, segments.slice(0, first).join("/")));
  return isBelow(start, folder) || isBelow(folder, start);
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}

interface BelowOptions {
  /** Whether an entry is one that is looked for. */
  readonly matches: (path: string, isLink: boolean, isDirectory: boolean) => boolean;
  /** Names that begin with a dot are left out. */
  readonly visible?: boolean;
  /** Folders of these names are not entered. */
  readonly skip?: readonly string[];
  /** Present where what is looked at counts for the call. */
  readonly environment?: PathEnvironment;
}

interface Below {
  readonly found?: string;
  /** There was more than could be looked at. */
  readonly isIncomplete?: true;
}

/** Looks for one entry below a folder; links are not followed, and what cannot be read holds nothing. */
async function findBelow(folder: string, options: BelowOptions): Promise<Below> {
  const { matches, visible = false, skip = [], environment } = options;
  const waiting = [folder];
  const limit = environment === undefined ? maxEntries : Math.min(maxEntries, entriesLeft(environment));
  let seen = 0;
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    if (seen >= limit) return { isIncomplete: true };
    const entries = await listFolder(at);
    if (environment !== undefined) entriesLeft(environment, Math.min(entries.length, limit - seen) + 1);
    for (const entry of entries) {
      seen += 1;
      if (seen > limit) return { isIncomplete: true };
      if (visible && entry.name.startsWith(".")) continue;
      const path = posix.join(at, entry.name);
      if (matches(path, entry.isSymbolicLink(), entry.isDirectory())) return { found: path };
      if (entry.isDirectory() && !skip.includes(entry.name)) waiting.push(path);
    }
  }
  return {};
}
