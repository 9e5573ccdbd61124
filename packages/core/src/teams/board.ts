import { escapeName } from "@retinue/base/foundation/escape-control-tags.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";

export type BoardStatus = "pending" | "in_progress" | "completed";

/** One task of a team's shared list, as its file holds it. */
export interface BoardTask {
  readonly id: string;
  readonly subject: string;
  readonly description: string;
  readonly activeForm?: string;
  readonly status: BoardStatus;
  readonly owner?: string;
  readonly blocks: readonly string[];
  /** This list counts; `blocks` of the other task is for readers. */
  readonly blockedBy: readonly string[];
  readonly metadata?: JsonRecord;
}

export type Board = ReadonlyMap<string, BoardTask>;

/** Reads a task from JSON; a text says what is wrong with it. Unknown keys are kept. */
export function readBoardTask(value: unknown, id: string): BoardTask | string {
  if (!isRecord(value)) return "expected an object";
  const { subject, description = "", status, owner, blocks, blockedBy, ...rest } = value;
  if (value["id"] !== id && value["id"] !== Number(id)) return `expected the id ${JSON.stringify(id)}`;
  if (typeof subject !== "string") return "expected a subject";
  if (status !== "pending" && status !== "in_progress" && status !== "completed")
    return "expected the status pending, in_progress or completed";
  return {
    ...rest,
    id,
    subject,
    description: typeof description === "string" ? description : "",
    status,
    ...(typeof owner === "string" && owner !== "" ? { owner } : {}),
    blocks: idsIn(blocks),
    blockedBy: idsIn(blockedBy),
  };
}

function idsIn(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return [...new Set(value.filter((id) => typeof id === "string" || typeof id === "number").map(String))];
}

/** Those that have to be completed first. A task that was deleted blocks nothing. */
export function openBlockers({ blockedBy }: Pick<BoardTask, "blockedBy">, board: Board): readonly string[] {
  return blockedBy.filter((id) => {
    const blocker = board.get(id);
    return blocker !== undefined && blocker.status !== "completed";
  });
}

/** Tasks that any member may claim now, oldest first. */
export function claimableTasks(board: Board): readonly BoardTask[] {
  return sortedTasks(board).filter(
    (task) => task.status === "pending" && task.owner === undefined && openBlockers(task, board).length === 0,
  );
}

export function sortedTasks(board: Board): readonly BoardTask[] {
  return [...board.values()].sort((a, b) => Number(a.id) - Number(b.id));
}

/** One task in one line. */
export function lineOf(task: BoardTask, board: Board): string {
  const open = openBlockers(task, board);
  const owner = task.owner === undefined ? "" : ` (${escapeName(task.owner)})`;
  const blocked = open.length === 0 ? "" : ` [blocked by ${open.join(", ")}]`;
  return `#${task.id} [${task.status}] ${escapeName(task.subject)}${owner}${blocked}`;
}

export interface TaskChange {
  readonly status?: BoardStatus | "deleted";
  /** Empty: it has no owner. */
  readonly owner?: string;
  readonly subject?: string;
  readonly description?: string;
  readonly activeForm?: string;
  readonly addBlocks?: readonly string[];
  readonly addBlockedBy?: readonly string[];
  /** Keys with null are removed. */
  readonly metadata?: JsonRecord;
}

/** Who asks for a change. The lead may change every task, a member its own and those without an owner. */
export interface Actor {
  readonly name: string;
  readonly isLead: boolean;
}

export type BoardOutcome =
  | {
      readonly type: "changed";
      /** The task after the change; as it was, where it was deleted. */
      readonly task: BoardTask;
      readonly before: BoardTask;
      /** Every task whose file changes. */
      readonly changed: readonly BoardTask[];
      readonly deleted: boolean;
      /** Tasks that can be claimed now and could not before. */
      readonly unblocked: readonly BoardTask[];
    }
  | { readonly type: "refused"; readonly reason: string };

/** Decides about one change of one task. Pure. */
export function changeTask(board: Board, id: string, change: TaskChange, by: Actor): BoardOutcome {
  const before = board.get(id);
  if (before === undefined) return refused(`There is no task ${id} on the board.`);
  const right = refuseRight(before, by) ?? refuseOwner(before, change, by);
  if (right !== undefined) return refused(right);
  if (change.status === "deleted") return deleteTask(board, before);
  const edges = addEdges(board, before, change, by);
  if (typeof edges === "string") return refused(edges);
  const own = edges.get(id) ?? before;
  const next = withFields(own, change, by);
  const state = refuseStatus(before, next, { board: overlay(board, edges), by });
  if (state !== undefined) return refused(state);
  const changed = overlay(edges, new Map([[id, next]]));
  const after = overlay(board, changed);
  return {
    type: "changed",
    task: next,
    before,
    changed: [...changed.values()],
    deleted: false,
    unblocked: newlyClaimable(board, after),
  };
}

/** The tasks of a member that is gone, given back: pending, without an owner. */
export function releaseTasks(board: Board, owner: string): readonly BoardTask[] {
  return sortedTasks(board)
    .filter((task) => task.owner === owner && task.status !== "completed")
    .map(({ owner: _owner, ...task }) => ({ ...task, status: "pending" }));
}

/** Why a new task cannot be blocked by these tasks. */
export function refuseBlockers(board: Board, blockedBy: readonly string[]): string | undefined {
  const missing = blockedBy.find((id) => !board.has(id));
  return missing === undefined ? undefined : `There is no task ${missing} on the board.`;
}

function refuseRight({ id, owner, status }: BoardTask, { name, isLead }: Actor): string | undefined {
  if (isLead) return undefined;
  if (owner !== undefined && owner !== name) return `Task ${id} belongs to ${owner}.`;
  return status === "completed" ? `Task ${id} is completed; only the lead can reopen it.` : undefined;
}

function refuseOwner({ id }: BoardTask, { owner }: TaskChange, { name, isLead }: Actor): string | undefined {
  if (isLead || owner === undefined || owner === "" || owner === name) return undefined;
  return `Only the lead assigns tasks to others; ask ${JSON.stringify(owner)} to claim task ${id}.`;
}

function withFields(task: BoardTask, change: TaskChange, by: Actor): BoardTask {
  const { subject, description, activeForm, metadata, status } = change;
  const { owner: before, ...rest } = task;
  const wanted = change.owner ?? before ?? (status === undefined || status === "pending" ? "" : by.name);
  const isReleased = change.owner === "" && task.status === "in_progress" && status === undefined;
  return {
    ...rest,
    ...(wanted === "" ? {} : { owner: wanted }),
    ...(subject === undefined ? {} : { subject }),
    ...(description === undefined ? {} : { description }),
    ...(activeForm === undefined ? {} : { activeForm }),
    ...(metadata === undefined ? {} : { metadata: mergeMetadata(task.metadata, metadata) }),
    ...(isReleased ? { status: "pending" } : {}),
    // `deleted` was decided before this.
    ...(status === undefined || status === "deleted" ? {} : { status }),
  };
}

function mergeMetadata(before: JsonRecord | undefined, change: JsonRecord): JsonRecord {
  return Object.fromEntries(
    Object.entries({ ...(before ?? {}), ...change }).filter(([, value]) => value !== null),
  );
}

function refuseStatus(
  before: BoardTask,
  next: BoardTask,
  { board, by }: { readonly board: Board; readonly by: Actor },
): string | undefined {
  const { id } = before;
  if (next.status === "pending" || next.status === before.status) return undefined;
  if (before.status === "completed") return `Task ${id} is completed; set it to pending first to reopen it.`;
  const open = openBlockers(next, board);
  if (open.length > 0) return `Task ${id} is blocked by ${open.map((other) => `task ${other}`).join(", ")}.`;
  if (next.owner === undefined) return `Task ${id} needs an owner before it is ${next.status}.`;
  return by.isLead || next.owner === by.name ? undefined : `Task ${id} belongs to ${next.owner}.`;
}

function deleteTask(board: Board, task: BoardTask): BoardOutcome {
  const without = (ids: readonly string[]): readonly string[] => ids.filter((id) => id !== task.id);
  const changed = sortedTasks(board).flatMap((other) => {
    const touched = other.blocks.includes(task.id) || other.blockedBy.includes(task.id);
    if (!touched || other.id === task.id) return [];
    return [{ ...other, blocks: without(other.blocks), blockedBy: without(other.blockedBy) }];
  });
  const after = new Map(overlay(board, new Map(changed.map((other) => [other.id, other]))));
  after.delete(task.id);
  return {
    type: "changed",
    task,
    before: task,
    changed,
    deleted: true,
    unblocked: newlyClaimable(board, after),
  };
}

/** The tasks with their new dependencies, both ends of each, or the reason why they cannot have them. */
function addEdges(
  board: Board,
  task: BoardTask,
  { addBlocks = [], addBlockedBy = [] }: TaskChange,
  by: Actor,
): Map<string, BoardTask> | string {
  const changed = new Map<string, BoardTask>();
  const pairs = [
    ...addBlockedBy.map((blocker) => [blocker, task.id] as const),
    ...addBlocks.map((blocked) => [task.id, blocked] as const),
  ];
  for (const [blocker, blocked] of pairs) {
    const now = overlay(board, changed);
    const [from, to] = [now.get(blocker), now.get(blocked)];
    if (from === undefined || to === undefined)
      return `There is no task ${from === undefined ? blocker : blocked} on the board.`;
    if (blocker === blocked) return `Task ${blocker} cannot block itself.`;
    const right = to.id === task.id ? undefined : refuseRight(to, by);
    if (right !== undefined) return right;
    if (dependsOn(now, blocker, blocked))
      return `Task ${blocked} cannot wait for task ${blocker}: task ${blocker} already waits for task ${blocked}.`;
    changed.set(blocker, { ...from, blocks: union(from.blocks, blocked) });
    changed.set(blocked, { ...to, blockedBy: union(to.blockedBy, blocker) });
  }
  return changed;
}

/** Whether a task waits for another, directly or through others. */
function dependsOn(board: Board, id: string, other: string): boolean {
  const seen = new Set<string>();
  const waiting = [id];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    if (at === other) return true;
    if (seen.has(at)) continue;
    seen.add(at);
    waiting.push(...(board.get(at)?.blockedBy ?? []));
  }
  return false;
}

function newlyClaimable(before: Board, after: Board): readonly BoardTask[] {
  const known = new Set(claimableTasks(before).map(({ id }) => id));
  return claimableTasks(after).filter(({ id }) => !known.has(id));
}

function overlay(board: Board, changes: Board): Map<string, BoardTask> {
  return new Map([...board, ...changes]);
}

function union(ids: readonly string[], id: string): readonly string[] {
  return ids.includes(id) ? ids : [...ids, id];
}

function refused(reason: string): Extract<BoardOutcome, { type: "refused" }> {
  return { type: "refused", reason };
}
