import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { settledSoon } from "@retinue/base/foundation/abortable.ts";
import { endMarkedProcesses } from "@retinue/base/foundation/process-tree.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { groupWatchdog } from "@retinue/base/foundation/spawn-process.ts";
import { type ProcessEnding, startProcess } from "@retinue/base/foundation/start-process.ts";
import { type Shell, shellArguments } from "@retinue/gate/command-environment.ts";
import type { Invocation } from "../sandbox/sandbox.ts";
import type { TaskSource, TaskView } from "../task-source.ts";
import { pageOf } from "../text-page.ts";
import {
  type CommandOutput,
  createCommandOutput,
  loadCommandOutput,
  loadTextPage,
} from "./command-output.ts";
import type { CommandEnd, CommandRecord } from "./command-record.ts";
import {
  type CommandRecords,
  cutOffNote,
  type OpenCommand,
  type StartedCommand,
} from "./recover-commands.ts";

export interface ShellsOptions {
  /** Eight hexadecimal digits, different each time. */
  readonly newId: () => string;
  readonly now: () => number;
  readonly maxRunning?: number;
  /** Ended ones that are remembered. */
  readonly maxEnded?: number;
  readonly graceMs?: number;
  /** Called once for each shell, when it runs in the background. */
  readonly onStarted?: (shell: TaskView) => void;
  /** Called once for each shell, when it has ended. */
  readonly onEnded?: (shell: TaskView) => void;
  /** Where commands are written down before they run; absent keeps no record. */
  readonly records?: CommandRecords;
  /** Background shells of the processes that ran this session before. */
  readonly earlier?: readonly CommandRecord[];
}

export interface ShellRequest {
  readonly command: string;
  /** The call that asks for it. */
  readonly callId?: string;
  readonly description?: string;
  readonly owner: string;
  readonly shell: Shell;
  /** What to start in place of the shell itself, such as the shell inside a sandbox. */
  readonly invocation?: Invocation;
  /** Called once, when nothing of it runs any more. */
  readonly onEnded?: () => void;
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly outputDirectory: string;
  /** Characters of output that a model may see at the same time. */
  readonly outputLimit: number;
  readonly timeLimitMs: number;
}

export type ShellStart =
  | { readonly type: "started"; readonly shell: TaskView }
  | { readonly type: "refused"; readonly reason: string };

/** A command that an agent waits for and that a person may move to the background. */
export interface OfferedCommand {
  readonly owner: string;
  readonly command: string;
  readonly description?: string;
  readonly output: CommandOutput;
  /** Ends the command. */
  readonly controller: AbortController;
  readonly ended: Promise<ProcessEnding>;
}

/** The background shells of a session. Disposing ends them all; nothing is left running. */
export interface Shells extends TaskSource, AsyncDisposable {
  start(request: ShellRequest): Promise<ShellStart>;
  /** What the next command of an agent is known by; what it leaves running in sessions of its own ends with its agent. */
  markFor(owner: string): string;
  /** A command in the foreground, which its own signal ends: the one that ends the rest waits for it too. */
  follow(owner: string, ended: Promise<unknown>): void;
  /** Resolves with the command as a task when it is moved to the background; never where it ends before that. */
  offer(command: OfferedCommand): Promise<TaskView>;
  /** Moves the commands that this agent waits for to the background, and returns them. */
  moveToBackground(owner: string): readonly TaskView[];
  /** Writes a command down; to be called when its process is there and before it runs. */
  record(command: StartedCommand, leader: number): OpenCommand | undefined;
  /** Ends what one agent has started. */
  stopOwned(owner: string): Promise<void>;
}

interface Entry {
  view: TaskView;
  readonly output: CommandOutput;
  readonly controller: AbortController;
  readonly ended: PromiseWithResolvers<void>;
  /** It is ended because the one that started it ends. */
  isCutOff?: true;
}

/** A command whose signal was not aborted is not waited for longer than this. */
const timeoutMs = 5000;

export function createShells(options: ShellsOptions): Shells {
  const { now, maxRunning = 20, maxEnded = 100 } = options;
  const entries = new Map<string, Entry>();
  const followed = createFollowed();
  const marks = createMarks(options.graceMs ?? 2_000);
  const earlier = new Map((options.earlier ?? []).map((record) => [record.id, record]));
  const isTaken = (id: string): boolean => entries.has(id) || earlier.has(id);
  const record: Shells["record"] = (command, leader) => options.records?.begin(command, leader);
  let isDisposed = false;

  const running = () => [...entries.values()].filter(({ view }) => view.state === "running");
  const finish = (entry: Entry, ending: ProcessEnding) => {
    entry.output.end();
    entry.view = { ...entry.view, ...describeEnding(ending), endedAt: now() };
    const done = [...entries].filter(([, { view }]) => view.state !== "running");
    for (const [id] of done.slice(0, Math.max(0, done.length - maxEnded))) entries.delete(id);
    entry.ended.resolve();
    options.onEnded?.(entry.view);
  };

  return {
    kind: "shell",
    async start(request) {
      if (isDisposed) return { type: "refused", reason: sessionOver };
      if (running().length >= maxRunning) {
        const reason = `${maxRunning} shells run in the background already; stop one with TaskStop, or wait.`;
        return { type: "refused", reason };
      }
      const entry = createEntry(freshId(options.newId, isTaken), request, now());
      entries.set(entry.view.id, entry);
      const { ended } = await launch(entry, request, { options, record, mark: marks.next(request.owner) });
      options.onStarted?.(entry.view);
      void ended.then((ending) => finish(entry, ending));
      return { type: "started", shell: entry.view };
    },
    find: (id) => entries.get(id)?.view ?? earlierView(earlier.get(id)),
    list: () => [
      ...[...earlier.values()].flatMap((one) => earlierView(one) ?? []),
      ...[...entries.values()].map(({ view }) => view),
    ],
    output: async (id) =>
      entries.get(id)?.output.view().text ?? loadCommandOutput(earlier.get(id)?.outputFile),
    async page(id, offset) {
      const { file = earlier.get(id)?.outputFile, text = "" } = entries.get(id)?.output.view() ?? {};
      return file === undefined ? pageOf(text, offset) : loadTextPage(file, offset);
    },
    ended: async (id) => entries.get(id)?.ended.promise,
    stop: (id) => stopAll(running().filter(({ view }) => view.id === id)),
    markFor: marks.next,
    follow: followed.add,
    ...createOffers((command) => {
      const entry = adoptEntry(freshId(options.newId, isTaken), command, now());
      entries.set(entry.view.id, entry);
      options.onStarted?.(entry.view);
      void command.ended.then((ending) => finish(entry, ending));
      return entry.view;
    }),
    record,
    async stopOwned(owner) {
      await cutOff(running().filter(({ view }) => view.owner === owner));
      await followed.ended(owner);
      await marks.end(owner);
    },
    async [Symbol.asyncDispose]() {
      isDisposed = true;
      await cutOff(running());
      await followed.ended();
      await marks.end();
      groupWatchdog.rest();
    },
  };
}

const sessionOver = "The session is over; nothing can be started in it.";

/** Commands in the foreground that can be moved; `adopt` makes a background task of one. */
function createOffers(
  adopt: (command: OfferedCommand) => TaskView,
): Pick<Shells, "offer" | "moveToBackground"> {
  const offered = new Map<OfferedCommand, (task: TaskView) => void>();
  return {
    offer(command) {
      const { promise, resolve } = Promise.withResolvers<TaskView>();
      offered.set(command, resolve);
      void command.ended.then(() => offered.delete(command));
      return promise;
    },
    moveToBackground(owner) {
      const chosen = [...offered].filter(([command]) => command.owner === owner);
      return chosen.map(([command, resolve]) => {
        offered.delete(command);
        const task = adopt(command);
        resolve(task);
        return task;
      });
    },
  };
}

async function stopAll(chosen: readonly Entry[]): Promise<void> {
  for (const { controller } of chosen) controller.abort();
  await Promise.all(chosen.map(({ ended }) => ended.promise));
}

async function cutOff(chosen: readonly Entry[]): Promise<void> {
  for (const entry of chosen) entry.isCutOff = true;
  await stopAll(chosen);
}

/** Ends what commands have left in sessions of their own, of one agent or of all. */
function createMarks(graceMs: number) {
  let root: string | undefined;
  let count = 0;
  const owners = new Set<string>();
  const markOf = (owner: string): string => `${root}${encodeURIComponent(owner)}/`;
  return {
    next(owner: string): string {
      root ??= `${groupWatchdog.markRoot()}${randomUUID()}/`;
      owners.add(owner);
      count += 1;
      return markOf(owner) + count;
    },
    async end(owner?: string): Promise<void> {
      if (root === undefined || (owner === undefined ? owners.size === 0 : !owners.has(owner))) return;
      await endMarkedProcesses(owner === undefined ? root : markOf(owner), { graceMs });
      if (owner !== undefined) owners.delete(owner);
    },
  };
}

interface Launching {
  readonly mark: string;
  readonly options: ShellsOptions;
  readonly record: Shells["record"];
}

/** Starts the process of an entry; gives its end back once it is recorded. */
async function launch(
  entry: Entry,
  request: ShellRequest,
  { options: { now, graceMs }, record, mark }: Launching,
): Promise<{ readonly ended: Promise<ProcessEnding> }> {
  let open: OpenCommand | undefined;
  const started = await startProcess({
    ...(request.invocation ?? {
      file: request.shell.file,
      arguments: shellArguments(request.shell, { judged: request.command, written: request.command }),
    }),
    directory: request.directory,
    environment: request.environment,
    mark,
    merged: { directory: request.outputDirectory, name: `.${entry.view.id}.pipe` },
    signal: entry.controller.signal,
    timeLimitMs: request.timeLimitMs,
    ...(graceMs === undefined ? {} : { graceMs }),
    onOutput(chunk) {
      entry.output.take(chunk);
      entry.view = { ...entry.view, lastSignAt: now() };
    },
    onStart(leader) {
      open = record(startedCommand(entry.view), leader);
    },
  });
  const ended = started.ended.then((ending) => {
    request.onEnded?.();
    const isCutOff = entry.isCutOff === true && ending.aborted;
    open?.end(isCutOff ? { state: "stopped", note: cutOffNote, isCutOff } : describeEnding(ending));
    return ending;
  });
  return { ended };
}

/** Commands that are started elsewhere and waited for when their owner ends. */
function createFollowed() {
  const followed = new Set<{ readonly owner: string; readonly ended: Promise<unknown> }>();
  return {
    add(owner: string, ended: Promise<unknown>): void {
      const one = { owner, ended };
      followed.add(one);
      const forget = (): void => void followed.delete(one);
      ended.then(forget, forget);
    },
    async ended(owner?: string): Promise<void> {
      const chosen = [...followed].filter((one) => owner === undefined || one.owner === owner);
      if (chosen.length === 0) return;
      const late = AbortSignal.abort(new RetinueError("command-late", "A command did not end in time."));
      const ends = Promise.allSettled(chosen.map((one) => one.ended));
      await settledSoon(ends, late, timeoutMs).catch(() => undefined);
    },
  };
}

function createEntry(id: string, request: ShellRequest, startedAt: number): Entry {
  const file = join(request.outputDirectory, `${id}.output`);
  return {
    view: {
      id,
      kind: "shell",
      state: "running",
      description: request.description ?? request.command.slice(0, 100),
      owner: request.owner,
      command: request.command,
      callId: request.callId,
      startedAt,
      lastSignAt: startedAt,
      outputFile: file,
    },
    output: createCommandOutput({
      limit: request.outputLimit,
      file,
      fileFromStart: true,
      fileLimit: 256 * 1024 * 1024,
    }),
    controller: new AbortController(),
    ended: Promise.withResolvers<void>(),
  };
}

/** What ran in the foreground until now. */
function adoptEntry(
  id: string,
  { owner, command, description = command.slice(0, 100), output, controller }: OfferedCommand,
  now: number,
): Entry {
  const { file } = output.view();
  return {
    view: {
      id,
      kind: "shell",
      state: "running",
      description,
      owner,
      command,
      startedAt: now,
      lastSignAt: now,
      outputFile: file,
    },
    output,
    controller,
    ended: Promise.withResolvers<void>(),
  };
}

function startedCommand({ id, owner, command = "", description, outputFile }: TaskView): StartedCommand {
  return {
    kind: "background",
    id,
    agentId: owner,
    command,
    description,
    outputFile,
  };
}

/** Its times are of another process's clock, so only how long it took is reported. */
function earlierView(record: CommandRecord | undefined): TaskView | undefined {
  if (record?.end === undefined) return undefined;
  const { id, description, agentId, command, startedAt, outputFile, end } = record;
  const tookMs = Math.max(0, end.at - startedAt);
  return {
    ...{ id, kind: "shell", state: end.state, description, owner: agentId, command },
    startedAt: 0,
    endedAt: tookMs,
    lastSignAt: tookMs,
    exitCode: end.exitCode,
    note: end.note,
    outputFile,
  };
}

function freshId(newId: () => string, isTaken: (id: string) => boolean): string {
  let id = `b${newId()}`;
  while (isTaken(id)) id = `b${newId()}`;
  return id;
}

function describeEnding(
  ending: ProcessEnding,
): Pick<TaskView, "exitCode" | "note"> & Pick<CommandEnd, "state"> {
  const code = ending.exitCode === undefined ? {} : { exitCode: ending.exitCode };
  const note = endingNote(ending);
  return { state: stateOf(ending), ...code, ...(note === undefined ? {} : { note }) };
}

function stateOf(ending: ProcessEnding): CommandEnd["state"] {
  if (ending.aborted || ending.stopped) return "stopped";
  if (ending.timedOut) return "timed-out";
  return ending.exitCode === 0 ? "completed" : "failed";
}

function endingNote(ending: ProcessEnding): string | undefined {
  if (ending.notStarted !== undefined) return `It could not be started: ${ending.notStarted}`;
  if (ending.signal !== undefined && stateOf(ending) === "failed") return `It was ended by ${ending.signal}.`;
  if (ending.leftBehind > 0) return `Processes it had left behind were ended: ${ending.leftBehind}.`;
  return undefined;
}
