// @io

import { lstat, readFile, realpath } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, kindOf } from "@retinue/base/foundation/json-record.ts";
import { parseGitPointer } from "@retinue/base/foundation/parse-git-pointer.ts";
import {
  byteOrderMark,
  parseJsonDocument,
  withoutByteOrderMark,
} from "@retinue/base/foundation/parse-json-document.ts";
import { applyEdits, modify } from "jsonc-parser";
import type { Paths } from "./paths.ts";
import { type UpdateFileOptions, updateFile } from "./update-file.ts";

export type TrustAnswer =
  | {
      readonly trusted: true;
      readonly folder: string;
      readonly why: string;
      /** Differences from its lock that a person has accepted, by their hashes. */
      readonly accepted?: readonly string[] | undefined;
      /** Its project had a lock while it was trusted. */
      readonly hasLock?: boolean | undefined;
    }
  | {
      readonly trusted: false;
      /** The folder whose trust would have to be granted. */
      readonly folder: string;
      readonly why: string;
      /** It was trusted, and its files are not those that were accepted: what is different. */
      readonly changed?: string | undefined;
      readonly diagnostic?: Diagnostic | undefined;
    };

export type TrustOutcome =
  | { readonly type: "stored"; readonly folder: string }
  | {
      readonly type: "refused";
      readonly folder: string;
      readonly why: string;
      readonly diagnostic?: Diagnostic | undefined;
    };

/** Which folders a person has accepted as theirs to run things from. */
export interface TrustStore {
  readonly isTrusted: (folder: string) => Promise<TrustAnswer>;
  /** With what is accepted of its lock; what was accepted before is forgotten. */
  readonly trust: (folder: string, lock?: AcceptedLock) => Promise<TrustOutcome>;
  /** Notes that the project of a trusted folder has a lock, so that it is missed when it is gone. Trusts nothing. */
  readonly noteLock: (folder: string) => Promise<TrustOutcome>;
  /** Takes trust back where it is: for the folder itself, or for the one above that covers it. */
  readonly untrust: (folder: string) => Promise<TrustOutcome>;
}

/** The state of a project's lock when its folder is trusted. */
export interface AcceptedLock {
  /** Differences from it that are accepted, by their hashes. */
  readonly accepted?: readonly string[] | undefined;
  /** Whether there is one. */
  readonly hasLock?: boolean | undefined;
}

export interface TrustStoreOptions extends UpdateFileOptions {
  readonly stateFile: string;
  readonly home: string;
}

/**
 * Trust is in the state file under the real path of a repository's root, or of the folder where there is none. It
 * covers the folders below, up to the next repository. Nothing here starts a program.
 */
const trustStoreShape = checks.shape({ stateFile: checks.filled, home: checks.filled }, [
  "stateFile",
  "home",
]);

export function createTrustStore(options: TrustStoreOptions): TrustStore {
  checkArgument("The options of createTrustStore()", trustStoreShape, options);
  const { stateFile, home, ...updating } = options;
  const isTrusted = async (folder: string): Promise<TrustAnswer> => {
    const root = await trustRoot(folder, home);
    const state = await readState(stateFile);
    if (state.diagnostic !== undefined) {
      return {
        trusted: false,
        folder: root,
        why: `${stateFile} cannot be read`,
        diagnostic: state.diagnostic,
      };
    }
    const by = await coveringFolder(root, state.folders, await realFolder(home));
    if (by === undefined)
      return { trusted: false, folder: root, why: `${root} has not been accepted as trusted` };
    return {
      trusted: true,
      folder: by,
      why: `${by} is accepted as trusted in ${stateFile}`,
      accepted: state.accepted.get(root) ?? [],
      // A worktree has the lock of its repository.
      hasLock: state.locked.get(root) ?? state.locked.get(by) ?? false,
    };
  };
  return {
    isTrusted,
    trust: async (folder, { accepted, hasLock = false } = {}) => {
      const root = await trustRoot(folder, home);
      if (isTooWide(root, await realFolder(home))) {
        const why = `${root} contains the whole home directory; trust for it is never stored, only given for one session`;
        return { type: "refused", folder: root, why };
      }
      return storeTrust(stateFile, { folder: root, trusted: true, accepted, hasLock }, updating);
    },
    noteLock: async (folder) =>
      storeTrust(stateFile, { folder: await trustRoot(folder, home), hasLock: true }, updating),
    untrust: async (folder) => {
      const answer = await isTrusted(folder);
      if (answer.trusted) return storeTrust(stateFile, { folder: answer.folder, trusted: false }, updating);
      const { folder: root, why, diagnostic } = answer;
      return diagnostic === undefined
        ? { type: "stored", folder: root }
        : { type: "refused", folder: root, why, diagnostic };
    },
  };
}

/** A home directory that is itself a repository does not make one project of all that lies in it. */
async function trustRoot(folder: string, home: string): Promise<string> {
  const real = await realFolder(folder);
  const root = (await findRepositoryRoot(real)) ?? real;
  return isTooWide(root, await realFolder(home)) ? real : root;
}

function isTooWide(folder: string, home: string): boolean {
  return ancestors(home).includes(folder);
}

async function coveringFolder(
  root: string,
  trusted: ReadonlySet<string>,
  home: string,
): Promise<string | undefined> {
  for (const folder of ancestors(root)) {
    if (isTooWide(folder, home)) return undefined;
    if (hasFolder(trusted, folder)) return folder;
    if (!(await isRepositoryRoot(folder))) continue;
    const owner = await findWorktreeOwner(folder);
    return owner !== undefined && !isTooWide(owner, home) && hasFolder(trusted, owner) ? owner : undefined;
  }
  return undefined;
}

/**
 * Of these folders, those that trust does not reach: neither that of the working folder, whether it is stored or given for one
 * session, nor one of their own that is stored. The person's own configuration is never among them.
 */
export async function findUntrustedFolders(
  folders: readonly string[],
  { cwd, home, stateFile, configDirectory }: TrustPlaces,
): Promise<ReadonlySet<string>> {
  if (folders.length === 0) return new Set();
  const store = createTrustStore({ stateFile, home });
  const [working, own, realHome] = await Promise.all([
    trustRoot(cwd, home),
    realFolder(configDirectory),
    realFolder(home),
  ]);
  const isReached = async (folder: string): Promise<boolean> => {
    if ((await realFolder(join(folder, ".claude"))) === own) return true;
    const root = await trustRoot(folder, home);
    if (root === working) return true;
    if ((await coveringFolder(root, new Set([working]), realHome)) !== undefined) return true;
    return (await store.isTrusted(folder)).trusted;
  };
  const reached = await Promise.all(folders.map(isReached));
  return new Set(folders.filter((_, index) => reached[index] !== true));
}

type TrustPlaces = Pick<Paths, "cwd" | "home" | "stateFile" | "configDirectory">;

/** On Windows, paths are in the file with either kind of slash. */
function hasFolder(folders: ReadonlySet<string>, folder: string): boolean {
  return folders.has(folder) || (/^[A-Za-z]:\\/.test(folder) && folders.has(folder.replaceAll("\\", "/")));
}

function ancestors(folder: string): readonly string[] {
  const found = [folder];
  for (let at = folder; dirname(at) !== at; ) {
    at = dirname(at);
    found.push(at);
  }
  return found;
}

async function readState(stateFile: string): ReturnType<typeof readKnown> {
  return readKnown(stateFile).catch((error: unknown) => ({
    ...noFolders,
    diagnostic: unreadable(stateFile, error),
  }));
}

/** What a state file has about folders. */
interface KnownFolders {
  readonly folders: ReadonlySet<string>;
  readonly accepted: ReadonlyMap<string, readonly string[]>;
  readonly locked: ReadonlyMap<string, boolean>;
  readonly diagnostic?: Diagnostic;
}

const noFolders: KnownFolders = { folders: new Set(), accepted: new Map(), locked: new Map() };

async function readKnown(stateFile: string): Promise<KnownFolders> {
  const text = await readFile(stateFile, "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  });
  return text.trim() === "" ? noFolders : readTrustedFolders(text, stateFile);
}

async function storeTrust(
  stateFile: string,
  wanted: TrustChange,
  updating: UpdateFileOptions,
): Promise<TrustOutcome> {
  const { folder } = wanted;
  let diagnostic: Diagnostic | undefined;
  try {
    const update = await updateFile(
      stateFile,
      (text) => {
        const added = changeTrustedFolder(text, wanted, stateFile);
        if (added.type === "text")
          return added.text === text ? { type: "unchanged" } : { type: "write", text: added.text };
        diagnostic = added.diagnostic;
        return { type: "refused", why: `${stateFile} is broken and was not touched` };
      },
      updating,
    );
    if (update.type !== "refused") return { type: "stored", folder };
    return { type: "refused", folder, why: update.why, diagnostic };
  } catch (error) {
    return {
      type: "refused",
      folder,
      why: `${stateFile} cannot be written`,
      diagnostic: unreadable(stateFile, error),
    };
  }
}

function unreadable(file: string, error: unknown): Diagnostic {
  return {
    severity: "error",
    code: "state-file-unusable",
    message: `The state file cannot be used: ${error instanceof Error ? error.message : String(error)}.`,
    advice: "Make the file readable and writable for yourself.",
    file,
  };
}

/** The trusted folders of a state file, as written there. A broken file trusts nothing, with the reason. */
function readTrustedFolders(text: string, file: string): KnownFolders {
  const document = parseJsonDocument(text, file);
  if (document.diagnostic !== undefined) return { ...noFolders, diagnostic: document.diagnostic };
  const state = document.value;
  if (!isRecord(state)) return { ...noFolders, diagnostic: wrongShape(file, "the file", state) };
  const projects = Object.hasOwn(state, "projects") ? state["projects"] : {};
  if (!isRecord(projects)) return { ...noFolders, diagnostic: wrongShape(file, '"projects"', projects) };
  const trusted = Object.entries(projects).filter(
    ([, project]) => isRecord(project) && Object.hasOwn(project, trustKey) && project[trustKey] === true,
  );
  const accepted = Object.entries(projects).flatMap(([folder, project]) => {
    const hashes =
      isRecord(project) && Object.hasOwn(project, acceptedKey) ? project[acceptedKey] : undefined;
    return isTexts(hashes) ? [[folder, hashes] as const] : [];
  });
  const locked = Object.entries(projects).flatMap(([folder, project]) => {
    const hasLock = isRecord(project) && Object.hasOwn(project, lockedKey) ? project[lockedKey] : undefined;
    return typeof hasLock === "boolean" ? [[folder, hasLock] as const] : [];
  });
  return {
    folders: new Set(trusted.map(([folder]) => folder)),
    accepted: new Map(accepted),
    locked: new Map(locked),
  };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

interface TrustChange extends AcceptedLock {
  readonly folder: string;
  /** Absent: as it is. */
  readonly trusted?: boolean;
}

/** The state with a folder's trust set or taken back; every other value stays as it was written. */
function changeTrustedFolder(
  text: string | undefined,
  { folder, trusted, accepted, hasLock }: TrustChange,
  file: string,
):
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "broken"; readonly diagnostic: Diagnostic } {
  const before = text === undefined || text.trim() === "" ? "{}\n" : withoutByteOrderMark(text);
  const { folders, locked, diagnostic } = readTrustedFolders(before, file);
  if (diagnostic !== undefined) return { type: "broken", diagnostic };
  if (trusted === false && !folders.has(folder)) return { type: "text", text: text ?? before };
  // readTrustedFolders has found an object with an object under "projects", if anything.
  const { projects } = JSON.parse(before) as { projects?: Record<string, unknown> };
  const project = projects !== undefined && Object.hasOwn(projects, folder) ? projects[folder] : {};
  if (!isRecord(project))
    return { type: "broken", diagnostic: wrongShape(file, "the entry of this folder", project) };
  const formattingOptions = { insertSpaces: true, tabSize: 2, eol: before.includes("\r\n") ? "\r\n" : "\n" };
  const edit = (source: string, key: string, value: unknown): string =>
    applyEdits(source, modify(source, ["projects", folder, key], value, { formattingOptions }));
  const changes: [key: string, value: unknown][] = [];
  if (trusted !== undefined) {
    changes.push([trustKey, trusted]);
    const isNoted = Object.hasOwn(project, acceptedKey) || (accepted ?? []).length > 0;
    if (isNoted) changes.push([acceptedKey, accepted?.length === 0 ? undefined : accepted]);
  }
  // That there is none is worth a word only where there was one, here or in the repository of a worktree.
  if (hasLock === true || (hasLock === false && locked.size > 0)) changes.push([lockedKey, hasLock]);
  const after = changes.reduce((source, [key, value]) => edit(source, key, value), before);
  // With a key written twice, the edit lands in the one that does not count.
  if (trusted !== undefined && readTrustedFolders(after, file).folders.has(folder) !== trusted) {
    return { type: "broken", diagnostic: wrongShape(file, "each key", "written twice") };
  }
  return { type: "text", text: text?.startsWith(byteOrderMark) === true ? byteOrderMark + after : after };
}

const trustKey = "hasTrustDialogAccepted";
const acceptedKey = "retinueAcceptedChanges";
/** Whether the project of a folder had a lock when it was trusted or last used. */
export const lockedKey = "retinueHasLock";

function wrongShape(file: string, part: string, value: unknown): Diagnostic {
  const found = typeof value === "string" ? value : kindOf(value);
  return {
    severity: "error",
    code: "state-file-broken",
    message: `In this state file ${part} must be an object, but it is ${found}; no folder counts as trusted.`,
    advice: "Fix the file, or move it away to start with an empty one.",
    file,
  };
}

/** The folder at or above this one that holds a `.git` directory or file. Starts no program. */
export async function findRepositoryRoot(folder: string): Promise<string | undefined> {
  let at = await realFolder(folder);
  while (!(await isRepositoryRoot(at))) {
    const parent = dirname(at);
    if (parent === at) return undefined;
    at = parent;
  }
  return at;
}

async function isRepositoryRoot(folder: string): Promise<boolean> {
  const entry = await lstat(join(folder, ".git")).catch(() => undefined);
  return entry !== undefined;
}

/** The path with all links followed; as given (but absolute) when it does not exist. */
export async function realFolder(folder: string): Promise<string> {
  return realpath(folder).catch(() => resolve(folder));
}

/**
 * The main repository of a linked worktree, or undefined. Only where that repository names this worktree in turn: a
 * `.git` file alone can be written by anyone.
 */
export async function findWorktreeOwner(root: string): Promise<string | undefined> {
  const linkFile = join(root, ".git");
  const link = await readPointer(linkFile, "gitdir: ");
  if (link === undefined) return undefined;
  const administration = await realFolder(isAbsolute(link) ? link : resolve(root, link));
  const back = await readPointer(join(administration, "gitdir"), "");
  if (back === undefined) return undefined;
  const named = isAbsolute(back) ? back : resolve(administration, back);
  if ((await realFolder(named)) !== (await realFolder(linkFile))) return undefined;
  const worktrees = dirname(administration);
  const repository = dirname(worktrees);
  const regular =
    worktrees === join(repository, "worktrees") && repository === join(dirname(repository), ".git");
  return regular ? dirname(repository) : undefined;
}

async function readPointer(file: string, sign: "gitdir: " | ""): Promise<string | undefined> {
  const entry = await lstat(file).catch(() => undefined);
  if (entry === undefined || !entry.isFile() || entry.size > 8192) return undefined;
  return parseGitPointer(await readFile(file, "utf8").catch(() => ""), sign);
}
