// @io

import {
  closeSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { posix } from "node:path";
import type { PathFact, PathUse } from "./call-facts.ts";
import { type CopyFinder, createCopyFinder } from "./create-copy-finder.ts";
import { passedBy } from "./follow-made-links.ts";
import type { RepositoryAsker } from "./git/create-repository-asker.ts";
import { findHooksFolder, type HooksFolder, isHook } from "./git/find-hooks-folder.ts";
import type { PermissionPolicy, PolicyRule } from "./permission-policy.ts";

/** Where paths of a call start, and what is compared with them. */
export interface PathEnvironment {
  /** Where relative paths start; absolute and real. */
  readonly directory: string;
  readonly home: string;
  readonly platform: string;
  /** Where commands look for programs; absent means that of this process. */
  readonly searchPath?: string | undefined;
  /** Asks git about folders; absent means anew for each call. */
  readonly askRepository?: RepositoryAsker | undefined;
  /** Its rules match files that must also be known under their other names. */
  readonly policy: Pick<
    PermissionPolicy,
    "deny" | "ask" | "home" | "workingDirectories" | "platform" | "trusted"
  >;
}

export interface WrittenPath {
  readonly path: string;
  readonly use: PathUse;
  /** Where it starts, if not where the call does. */
  readonly directory?: string;
}

/** What was looked up for one call already, and how much more may be. */
interface LookedUp {
  readonly facts: Map<string, Promise<PathFact>>;
  /** Entries of folders that were looked at. */
  entries: number;
}

const maxPaths = 1_000;
/** Hardly any system takes longer ones. */
const maxPathLength = 3_000;
const maxNames = 300;

const lookedUp = new WeakMap<PathEnvironment, LookedUp>();

function lookedUpFor(environment: PathEnvironment): LookedUp {
  const known = lookedUp.get(environment) ?? { facts: new Map(), entries: 0 };
  lookedUp.set(environment, known);
  return known;
}

const maxEntriesOfCall = 20_000;

/** How many more entries of folders may be looked at for a call; `seen` were looked at just now. */
export function entriesLeft(environment: PathEnvironment, seen = 0): number {
  const known = lookedUpFor(environment);
  known.entries += seen;
  return Math.max(0, maxEntriesOfCall - known.entries);
}

/** Finds every form of a path: without `..`, and with links followed. A call that names too many has some that are not known. */
export function gatherPathFact(written: WrittenPath, environment: PathEnvironment): Promise<PathFact> {
  const { facts } = lookedUpFor(environment);
  const key = [written.use, written.directory ?? "", written.path].join("\0");
  const known = facts.get(key);
  if (known !== undefined) return known;
  const start = written.directory ?? environment.directory;
  const isTooLong =
    written.path.length + start.length > maxPathLength || written.path.split("/").length > maxNames;
  if (isTooLong || facts.size >= maxPaths)
    return Promise.resolve(
      notLookedUp(written, environment, isTooLong ? "it is too long" : "there are too many"),
    );
  const found = lookUpPath(written, environment);
  facts.set(key, found);
  return found;
}

function notLookedUp(written: WrittenPath, environment: PathEnvironment, why: string): PathFact {
  const path = { ...written, path: written.path.slice(0, maxPathLength) };
  const form = withoutEnd(posix.normalize(absolutePath(path, environment)));
  return { forms: [form], use: written.use, unknown: `${why} to look it up` };
}

async function lookUpPath(written: WrittenPath, environment: PathEnvironment): Promise<PathFact> {
  const absolute = absolutePath(written, environment);
  const lexical = withoutEnd(posix.normalize(absolute));
  const hasDots = /(?:^|\/)\.\.?(?:\/|$)/.test(absolute);
  const [walked, real] = await Promise.all([
    findRealLocation(absolute),
    hasDots ? findRealLocation(lexical) : undefined,
  ]);
  const other = gatherOtherNames(lexical, written.use, environment);
  const isPart = written.use !== "read" && isRepositoryPart(lexical);
  const unknown =
    walked === undefined ? "its links form a loop" : unclearPathReason(written.path, environment);
  const forms = [lexical, walked, real, ...aliases(lexical, environment), ...other.names].filter(
    (form) => form !== undefined,
  );
  const isRun =
    written.use !== "read" &&
    (await isHookOf(environment, forms, written.use === "remove" ? lexical : undefined));
  const copies = forms.flatMap((form) => copyFinderOf(environment).of(form));
  return {
    forms: [...new Set(forms)],
    ...(hasDots ? { passed: passedBy(absolute) } : {}),
    ...(copies.length > 0 ? { copies } : {}),
    use: written.use,
    unknown,
    ...(other.isUnclear ? { hasOtherNames: true } : {}),
    ...(isPart ? { isRepositoryPart: true } : {}),
    ...(written.use === "read" ? {} : kindOf(lexical)),
    ...(isRun ? { isHook: true } : {}),
  };
}

/** Whether git runs one of these as a hook, or one below a folder that is removed. */
async function isHookOf(
  environment: PathEnvironment,
  forms: readonly string[],
  removed: string | undefined,
): Promise<boolean> {
  const found = await hooksFolderOf(environment);
  if (found === undefined) return false;
  return (
    forms.some((form) => isHook(form, found)) ||
    (removed !== undefined && found.folder.startsWith(`${removed}/`))
  );
}

/** Asked once for all paths of a call. */
export function hooksFolderOf(environment: PathEnvironment): Promise<HooksFolder | undefined> {
  const { home, policy, searchPath = process.env["PATH"], directory } = environment;
  const [root = directory] = policy.workingDirectories;
  const known =
    hooksFolders.get(environment) ??
    findHooksFolder({
      directory: root,
      environment: { PATH: searchPath, HOME: home },
      folders: policy.workingDirectories,
    });
  hooksFolders.set(environment, known);
  return known;
}

const hooksFolders = new WeakMap<PathEnvironment, Promise<HooksFolder | undefined>>();

/** What a path that is changed is now. */
export function kindOf(path: string): Pick<PathFact, "isFolder" | "isProgram"> {
  const stats = statOf(path);
  if (stats?.isDirectory() === true) return { isFolder: true };
  const isExecutable = stats?.isFile() === true && (stats.mode & 0o111) !== 0;
  return isExecutable && namesInterpreter(path) ? { isProgram: true } : {};
}

function namesInterpreter(path: string): boolean {
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    const start = Buffer.alloc(2);
    readSync(file, start, 0, 2, 0);
    return start.toString("latin1") === "#!";
  } catch {
    // What cannot be looked into may name one.
    return true;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** One for all paths of a call. */
export function copyFinderOf(environment: PathEnvironment): CopyFinder {
  const known = finders.get(environment) ?? createCopyFinder(environment.policy);
  finders.set(environment, known);
  return known;
}

const finders = new WeakMap<PathEnvironment, CopyFinder>();

const repositoryParts: ReadonlySet<string> = new Set(
  "config hooks objects refs packed-refs commondir info description worktrees modules".split(" "),
);

/** Git takes a folder with HEAD, objects and refs for a repository and obeys what lies beside them. */
function isRepositoryPart(path: string): boolean {
  const names = path.split("/");
  for (let at = 1; at < names.length; at += 1) {
    if (!repositoryParts.has(names[at]?.toLowerCase() ?? "")) continue;
    const head = `${names.slice(0, at).join("/")}/HEAD`;
    if (lstatSync(head, { throwIfNoEntry: false }) !== undefined) return true;
  }
  return false;
}

/** An absolute path that still has its `..`, because what they lead to depends on links. */
export function absolutePath(
  { path, directory }: WrittenPath,
  environment: Pick<PathEnvironment, "directory" | "home" | "platform">,
): string {
  const base = directory ?? environment.directory;
  const plain = environment.platform === "win32" ? fromWindows(path) : path;
  if (plain === "~" || plain.startsWith("~/")) return `${environment.home}${plain.slice(1)}`;
  // Another person's home, wherever that is; here it only has to be outside.
  if (/^~[A-Za-z_][\w.-]*(?:\/|$)/.test(plain)) return `/home/${plain.slice(1)}`;
  return plain.startsWith("/") ? plain : `${base}/${plain}`;
}

/** `C:\x` is compared as `/c/x`; names of other machines and of devices are below no folder of this one. */
function fromWindows(path: string): string {
  const slashed = path.replaceAll("\\", "/");
  if (slashed.startsWith("//")) return `/unc/${slashed.replace(/^\/+/, "")}`;
  const [, drive, rest = ""] = /^([A-Za-z]):(.*)$/.exec(slashed) ?? [];
  if (drive === undefined) return slashed;
  return rest.startsWith("/") ? `/${drive.toLowerCase()}${rest}` : `/${drive.toLowerCase()}/unknown/${rest}`;
}

/** Texts that some program takes for another place than the one they name. */
function unclearPathReason(path: string, { platform }: PathEnvironment): string | undefined {
  if (/^(?:\$\{?\w|%\w+%|[A-Za-z][A-Za-z+.-]+:\/\/)/.test(path)) return "it may be expanded to another place";
  const isDevice = (name: string): boolean => /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?$/i.test(name);
  return platform === "win32" && path.split(/[\\/]/).some(isDevice)
    ? "it is the name of a device"
    : undefined;
}

function withoutEnd(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

/** Places that are the same by convention of the system, seen from the process that will run the call. */
function aliases(path: string, { directory, platform }: PathEnvironment): readonly string[] {
  const [, kind, rest = ""] =
    /^\/proc\/(?:self|thread-self|\d+)(?:\/task\/\d+)?\/(root|cwd)(\/.*)?$/.exec(path) ?? [];
  if (kind !== undefined)
    return [withoutEnd(posix.normalize(kind === "root" ? rest || "/" : `${directory}${rest}`))];
  const [, user] = platform === "darwin" ? (/^\/system\/volumes\/data(\/.*)$/i.exec(path) ?? []) : [];
  return user === undefined ? [] : [user];
}

/** Hard links: the names under which a rule forbids the same file, as far as they can be reported from the rules. */
function gatherOtherNames(
  path: string,
  use: PathUse,
  environment: PathEnvironment,
): { readonly names: readonly string[]; readonly isUnclear: boolean } {
  // Only a file that is written, or that a rule forbids under another name, makes other names matter.
  const matters =
    use !== "read" || environment.policy.deny.some(({ rule }) => rule.specifier.type === "path");
  const own = matters ? statOf(path) : undefined;
  if (own === undefined || !own.isFile() || own.nlink < 2) return { names: [], isUnclear: false };
  const forbidden = environment.policy.deny.map((rule) => literalPath(rule, environment));
  const names: string[] = [];
  for (const name of forbidden) {
    if (typeof name !== "string") continue;
    const other = statOf(name);
    if (other?.ino === own.ino && other.dev === own.dev) names.push(name);
  }
  return { names, isUnclear: true };
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** The one file a rule names, where it names one. */
export function literalPath(
  { rule, anchor }: PolicyRule,
  { directory, home }: PathEnvironment,
): string | undefined {
  const { specifier } = rule;
  if (specifier.type !== "path" || /[*?[\\]/.test(specifier.pattern)) return undefined;
  const bases = { root: "/", home, settings: anchor, cwd: directory };
  return posix.join(bases[specifier.anchor], specifier.pattern);
}

/**
 * Where an absolute path leads when each link is followed before the next name or `..` is taken. What does not exist
 * is below its nearest real ancestor. Undefined where links go round in circles.
 */
export async function findRealLocation(path: string): Promise<string | undefined> {
  try {
    const place = path === "" ? "/" : path;
    // Looked at first, because following what is not there throws, which takes longer.
    if (lstatSync(place, { throwIfNoEntry: false }) !== undefined) return realpathSync.native(place);
  } catch {}
  return belowRealFolder(path) ?? walk(path);
}

/** The usual case of a file that is to be made: its folder is there, and nothing has its name. */
function belowRealFolder(path: string): string | undefined {
  const [, folder = "", name = ""] = /^(\/.*?)\/+([^/]+)$/.exec(path) ?? [];
  if (name === "" || name === "." || name === ".." || /(?:^|\/)\.\.(?:\/|$)/.test(folder)) return undefined;
  try {
    const real = realpathSync.native(folder);
    const entry = lstatSync(path, { throwIfNoEntry: false });
    return entry === undefined ? `${real === "/" ? "" : real}/${name}` : undefined;
  } catch {
    return undefined;
  }
}

function walk(path: string): string | undefined {
  const names = path.split("/").reverse();
  let at = "/";
  let links = 0;
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      at = at.slice(0, at.lastIndexOf("/")) || "/";
      continue;
    }
    const next = at === "/" ? `/${name}` : `${at}/${name}`;
    const target = linkTarget(next);
    if (target === undefined) at = next;
    else {
      links += 1;
      if (links > maxLinks) return undefined;
      if (target.startsWith("/")) at = "/";
      names.push(...target.split("/").reverse());
    }
  }
  return at;
}

const maxLinks = 40;

function linkTarget(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}
