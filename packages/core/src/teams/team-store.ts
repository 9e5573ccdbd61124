// @io
import { randomUUID } from "node:crypto";
import { appendFileSync, type FSWatcher, mkdirSync, readFileSync, rmSync, statSync, watch } from "node:fs";
import { join } from "node:path";
import { errorCode, fileError } from "@retinue/base/foundation/file-error.ts";
import { type JsonRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { type OwnerLock, withFileLock } from "@retinue/base/storage/owner-lock.ts";
import { type BoardStore, createBoardStore } from "./board-store.ts";
import {
  type InboxEntry,
  type InboxReading,
  type Mail,
  mailEntry,
  type OutgoingMail,
  readInbox,
  readInboxEntries,
  withRead,
} from "./mail.ts";
import { readTeamConfig, type TeamConfig } from "./team-config.ts";

/** Where teams and their tasks are kept. */
export interface TeamPlaces {
  readonly teams: string;
  readonly tasks: string;
}

/** One team on disk: config, inboxes and board. Several processes may have it open. */
export interface TeamStore {
  readonly name: string;
  readonly directory: string;
  readonly board: BoardStore;
  /** The config as it is now; undefined when the team does not exist. */
  config(): TeamConfig | undefined;
  /**
   * Changes the config in one step for all processes; the change sees undefined when there is none, and leaves everything as it
   * is by returning undefined. Gives the config as it is then.
   */
  update(change: ConfigChange): Promise<TeamConfig | undefined>;
  /** Puts mail into an inbox, behind what is in it. */
  send(to: string, mail: OutgoingMail): Promise<void>;
  inbox(name: string): InboxReading;
  /** Marks mail as read, and moves entries that are no mail aside; gives the file they are in. */
  markRead(name: string, keys: ReadonlySet<string>): Promise<MovedAside | undefined>;
  /** Calls back whenever inboxes, board or config may have changed; the result ends it. */
  watch(onChange: () => void): () => void;
}

type ConfigChange = (config: TeamConfig | undefined) => TeamConfig | undefined;

export interface MovedAside {
  readonly file: string;
  readonly count: number;
}

/** Read mail beyond this many goes to a history file, so that sending stays fast. */
const maxKept = 200;

export function openTeamStore(places: TeamPlaces, name: string, list: string = name): TeamStore {
  const directory = join(places.teams, name);
  const inboxes = join(directory, "inboxes");
  const configFile = join(directory, "config.json");
  const inboxFile = (member: string): string => join(inboxes, `${member}.json`);
  const local = new Set<() => void>();
  const loadConfig = createFileReader(configFile, (text) => readConfigText(text, configFile, name));
  const loadInbox = createInboxReader(inboxFile);
  const board = createBoardStore(join(places.tasks, list));
  const notify = (): void => {
    for (const listener of local) listener();
  };

  function rewrite(member: string, lock: OwnerLock, entries: readonly unknown[]): void {
    if (!lock.isHeld()) throw fileError("write", inboxes, new Error("the lock was taken over"));
    replaceWholeFile(inboxFile(member), `${JSON.stringify(entries, undefined, 2)}\n`);
  }

  return {
    name,
    directory,
    board: notifying(board, notify),
    config: loadConfig,
    async update(change) {
      const config = await changeConfig(configFile, loadConfig, change);
      notify();
      return config;
    },
    async send(to, mail) {
      await withFileLock(join(inboxes, to), (lock) => {
        const entries = listEntries(inboxFile(to), join(inboxes, `${to}.invalid.jsonl`));
        rewrite(to, lock, [...entries, mailEntry(mail, { id: randomUUID(), now: new Date() })]);
      });
      notify();
    },
    inbox: loadInbox,
    async markRead(member, keys) {
      const aside = await withFileLock(join(inboxes, member), (lock) => {
        const { entries: before, invalid } = readInboxEntries(loadText(inboxFile(member)) ?? "");
        const entries = before.map((one) => withRead(one, keys));
        const isChanged = invalid.length > 0 || entries.some((one, index) => one !== before[index]);
        if (!isChanged && archivable(entries) === 0) return undefined;
        const moved = moveAside(join(inboxes, `${member}.invalid.jsonl`), invalid);
        rewrite(member, lock, archive(join(inboxes, `${member}.history.jsonl`), entries));
        return moved;
      });
      notify();
      return aside;
    },
    watch(onChange) {
      local.add(onChange);
      const stop = watchFolders([directory, inboxes, board.directory], onChange);
      return () => {
        local.delete(onChange);
        stop();
      };
    },
  };
}

function changeConfig(
  file: string,
  load: () => TeamConfig | undefined,
  change: ConfigChange,
): Promise<TeamConfig | undefined> {
  return withFileLock(file, (lock) => {
    const before = load();
    const next = change(before);
    if (next === undefined || next === before) return before;
    if (!lock.isHeld()) throw fileError("write", file, new Error("the lock was taken over"));
    replaceWholeFile(file, `${JSON.stringify(next, undefined, 2)}\n`);
    return next;
  });
}

export type OpenTeam = (places: TeamPlaces, name: string, list?: string) => TeamStore;

/** Opens each team once, so that all agents of a process are notified of a change in the moment it is made. */
export function createTeamStores(): OpenTeam {
  const stores = new Map<string, TeamStore>();
  return (places, name, list = name) => {
    const key = JSON.stringify([places.teams, places.tasks, name, list]);
    const store = stores.get(key) ?? openTeamStore(places, name, list);
    stores.set(key, store);
    return store;
  };
}

/** Listeners of this process need not wait for the file system. */
function notifying(board: BoardStore, notify: () => void): BoardStore {
  const after = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work;
    notify();
    return result;
  };
  return {
    ...board,
    create: (draft, approve) => after(board.create(draft, approve)),
    change: (id, change, options) => after(board.change(id, change, options)),
    release: (owner) => after(board.release(owner)),
  };
}

function readConfigText(text: string | undefined, file: string, name: string): TeamConfig | undefined {
  if (text === undefined) return undefined;
  const config = readTeamConfig(parseJson(text), name);
  if (typeof config !== "string") return config;
  throw new RetinueError("team-unreadable", `${file} is not the config of a team: ${config}.`, {
    advice: `Fix it, or remove the team with \`retinue teams clean ${name} --force\`.`,
  });
}

/** With a file for it, what is no list of mail is kept there before it is replaced. */
function listEntries(file: string, invalidFile?: string): readonly unknown[] {
  const text = loadText(file) ?? "";
  const value = parseJson(text);
  if (Array.isArray(value)) return value;
  if (invalidFile !== undefined && text.trim() !== "") moveAside(invalidFile, [value ?? text]);
  return [];
}

/** Keeps what is no mail where a person can look at it, before it leaves the inbox. */
function moveAside(file: string, invalid: readonly unknown[]): MovedAside | undefined {
  if (invalid.length === 0) return undefined;
  appendFileSync(file, invalid.map((entry) => `${JSON.stringify(entry)}\n`).join(""), { mode: 0o600 });
  return { file, count: invalid.length };
}

/** How many of the oldest entries may move to the history: they are read, and there is more than a reader looks at. */
function archivable(entries: readonly InboxEntry[]): number {
  const firstUnread = entries.findIndex(({ mail }) => !mail.read);
  const movable = firstUnread === -1 ? entries.length : firstUnread;
  return movable <= maxKept ? 0 : movable - maxKept / 2;
}

/** Moves old mail to the history; gives the entries that stay. */
function archive(file: string, entries: readonly InboxEntry[]): readonly JsonRecord[] {
  const all = entries.map(({ entry }) => entry);
  const old = all.slice(0, archivable(entries));
  if (old.length > 0)
    appendFileSync(file, old.map((entry) => `${JSON.stringify(entry)}\n`).join(""), { mode: 0o600 });
  return all.slice(old.length);
}

/** All mail of a member, also what was moved to the history; oldest first. */
export function loadMailHistory(store: TeamStore, member: string): readonly Mail[] {
  const text = loadText(join(store.directory, "inboxes", `${member}.history.jsonl`)) ?? "";
  const old = text.split("\n").flatMap((line) => readInbox(`[${line}]`).mail);
  return [...old, ...store.inbox(member).mail];
}

function createInboxReader(fileOf: (member: string) => string): (member: string) => InboxReading {
  const readers = new Map<string, () => InboxReading>();
  return (member) => {
    const known = readers.get(member);
    if (known !== undefined) return known();
    const reader = createFileReader(fileOf(member), (text = "") => readInbox(text));
    readers.set(member, reader);
    return reader();
  };
}

/**
 * Reads a file only when it has changed since the last time. It is looked at after every change of the team, and each
 * change replaces one file as a whole, so its number and times show it.
 */
function createFileReader<Value>(file: string, read: (text: string | undefined) => Value): () => Value {
  let known: { readonly mark: string; readonly value: Value } | undefined;
  return () => {
    const status = statSync(file, { throwIfNoEntry: false });
    const mark =
      status === undefined ? "absent" : [status.ino, status.mtimeMs, status.ctimeMs, status.size].join(" ");
    if (known?.mark === mark) return known.value;
    const value = read(loadText(file));
    known = { mark, value };
    return value;
  };
}

function loadText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw fileError("read", file, error);
  }
}

/** Some file systems report no changes, so the folders are also looked at this often. */
const pollMs = 2000;

function watchFolders(folders: readonly string[], onChange: () => void): () => void {
  const watchers: FSWatcher[] = [];
  for (const folder of folders) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        if (name === null || isRecordFile(name)) onChange();
      });
      // Without it the timer still looks.
      watcher.on("error", () => undefined);
      watchers.push(watcher);
    } catch {
      // The system may have no more watchers to give.
    }
  }
  const marks = (): string =>
    folders.map((folder) => statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0).join(" ");
  let seen = marks();
  const timer = setInterval(() => {
    const now = marks();
    if (now !== seen) onChange();
    seen = now;
  }, pollMs).unref();
  return () => {
    clearInterval(timer);
    for (const watcher of watchers) watcher.close();
  };
}

/** Locks and temporary files come and go with every change. */
function isRecordFile(name: string): boolean {
  return name.endsWith(".json") && !name.endsWith(".tmp");
}

/** Removes the team and its tasks for good. */
export function removeTeamFiles(store: TeamStore): void {
  rmSync(store.directory, { recursive: true, force: true, maxRetries: 3 });
  rmSync(store.board.directory, { recursive: true, force: true, maxRetries: 3 });
}
