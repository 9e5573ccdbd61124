// @io
import { mkdirSync, readdirSync, readFileSync, rmSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { errorCode, fileError } from "@retinue/base/foundation/file-error.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { type OwnerLock, withFileLock } from "@retinue/base/storage/owner-lock.ts";
import {
  type Actor,
  type Board,
  type BoardOutcome,
  type BoardTask,
  changeTask,
  readBoardTask,
  refuseBlockers,
  releaseTasks,
  type TaskChange,
} from "./board.ts";

export interface TaskDraft {
  readonly subject: string;
  readonly description: string;
  readonly activeForm?: string;
  readonly owner?: string;
  readonly blockedBy?: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export type TaskCreated =
  | { readonly type: "created"; readonly task: BoardTask }
  | { readonly type: "refused"; readonly reason: string };

/** Asks whether a task may be created or completed; a text refuses it. Called without a lock. */
export type ApproveTask = (task: BoardTask) => Promise<string | undefined>;

/** A team's shared list of tasks: one file for each, decisions under one lock. */
export interface BoardStore {
  readonly directory: string;
  read(): Board;
  /** Files that hold no task, each with what is wrong; they are left as they are. */
  invalid(): readonly { readonly file: string; readonly reason: string }[];
  create(draft: TaskDraft, approve?: ApproveTask): Promise<TaskCreated>;
  change(
    id: string,
    change: TaskChange,
    options: { readonly by: Actor; readonly approve?: ApproveTask },
  ): Promise<BoardOutcome>;
  /** Gives back what a member held that is gone. */
  release(owner: string): Promise<readonly BoardTask[]>;
}

export function createBoardStore(directory: string): BoardStore {
  const reader = createReader(directory);
  const locked = <T>(action: (lock: OwnerLock) => T): Promise<T> => {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    return withFileLock(`${directory}/`, action);
  };

  /** A process that lost its lock meanwhile must not write over the one that took it. */
  function write(tasks: readonly BoardTask[], lock: OwnerLock): void {
    if (!lock.isHeld()) throw fileError("write", directory, new Error("the lock was taken over"));
    for (const task of tasks)
      replaceWholeFile(join(directory, `${task.id}.json`), `${JSON.stringify(task, undefined, 2)}\n`);
  }

  return {
    directory,
    read: () => reader.read().board,
    invalid: () => reader.read().invalid,
    async create(draft, approve) {
      const { blockedBy = [] } = draft;
      const missing = refuseBlockers(reader.read().board, blockedBy);
      if (missing !== undefined) return { type: "refused", reason: missing };
      const id = await locked(() => reserveId(directory, reader.read().board));
      const task = taskOf(id, draft);
      const refusal = await approve?.(task);
      if (refusal !== undefined) return { type: "refused", reason: refusal };
      return locked((lock): TaskCreated => {
        const { board } = reader.read();
        const blockers = blockedBy.flatMap((other) => board.get(other) ?? []);
        // The task first: what blocks it is in its own file.
        write([task, ...blockers.map((other) => ({ ...other, blocks: [...other.blocks, id] }))], lock);
        return { type: "created", task };
      });
    },
    async change(id, change, { by, approve }) {
      if (approve !== undefined) {
        const preview = changeTask(reader.read().board, id, change, by);
        if (preview.type === "refused") return preview;
        const completes = preview.task.status === "completed" && preview.before.status !== "completed";
        const refusal = completes && !preview.deleted ? await approve(preview.task) : undefined;
        if (refusal !== undefined) return { type: "refused", reason: refusal };
      }
      return locked((lock) => {
        const outcome = changeTask(reader.read().board, id, change, by);
        if (outcome.type === "refused") return outcome;
        write(outcome.changed, lock);
        if (outcome.deleted) rmSync(join(directory, `${id}.json`), { force: true });
        return outcome;
      });
    },
    release: (owner) =>
      locked((lock) => {
        const released = releaseTasks(reader.read().board, owner);
        write(released, lock);
        return released;
      }),
  };
}

function taskOf(id: string, { blockedBy = [], owner, activeForm, metadata, ...texts }: TaskDraft): BoardTask {
  return {
    id,
    ...texts,
    ...(activeForm === undefined ? {} : { activeForm }),
    status: "pending",
    ...(owner === undefined ? {} : { owner }),
    blocks: [],
    blockedBy,
    ...(metadata === undefined ? {} : { metadata }),
  };
}

/** Ids grow and are never given out again, also after the task with the largest one was deleted. */
function reserveId(directory: string, board: Board): string {
  const file = join(directory, ".highwatermark");
  const used = Math.max(0, numberIn(file), ...[...board.keys()].map(Number));
  replaceWholeFile(file, String(used + 1));
  return String(used + 1);
}

function numberIn(file: string): number {
  try {
    const number = Number(readFileSync(file, "utf8").trim());
    return Number.isSafeInteger(number) && number > 0 ? number : 0;
  } catch {
    return 0;
  }
}

interface Reading {
  readonly board: Board;
  readonly invalid: readonly { readonly file: string; readonly reason: string }[];
}

/** Reads only files that changed since the last time: each is replaced as a whole, so its inode shows it. */
function createReader(directory: string) {
  const known = new Map<string, { readonly mark: string; readonly task: BoardTask | string }>();

  function load(name: string): BoardTask | string | undefined {
    const file = join(directory, name);
    const status = statSync(file, { throwIfNoEntry: false });
    if (status === undefined) return undefined;
    const before = known.get(name);
    if (before?.mark === markOf(status)) return before.task;
    const task = readTask(file, name.slice(0, -".json".length));
    if (task !== undefined) known.set(name, { mark: markOf(status), task });
    return task;
  }

  return {
    read(): Reading {
      const names = listNames(directory).filter((name) => /^[1-9]\d{0,14}\.json$/.test(name));
      const board = new Map<string, BoardTask>();
      const invalid: { file: string; reason: string }[] = [];
      for (const name of names) {
        const task = load(name);
        if (typeof task === "string") invalid.push({ file: join(directory, name), reason: task });
        else if (task !== undefined) board.set(task.id, task);
      }
      for (const name of known.keys()) if (!names.includes(name)) known.delete(name);
      return { board, invalid };
    },
  };
}

function markOf({ ino, mtimeMs, size }: Stats): string {
  return `${ino} ${mtimeMs} ${size}`;
}

function listNames(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw fileError("read", directory, error);
  }
}

function readTask(file: string, id: string): BoardTask | string | undefined {
  try {
    return readBoardTask(JSON.parse(readFileSync(file, "utf8")), id);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    return error instanceof Error ? error.message : String(error);
  }
}
