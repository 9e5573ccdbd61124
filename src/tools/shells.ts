import { join } from "node:path";
import { settledSoon } from "../foundation/abort.ts";
import { type ProcessEnding, startProcess } from "../foundation/drive-process.ts";
import { Fault } from "../foundation/fault.ts";
import type { Shell } from "./find-shell.ts";
import { loadTextPage } from "./load-text-page.ts";
import type { Invocation } from "./sandbox.ts";
import { shellArguments } from "./shell-command.ts";
import type { TaskRunState, TaskSource, TaskView } from "./task-source.ts";
import { pageOf } from "./text-page.ts";
import { type CommandOutput, createCommandOutput } from "./write-command-output.ts";

export interface ShellsOptions {
  /** Eight hexadecimal digits, different each time. */
  readonly newId: () => string;
  readonly now: () => number;
  readonly maxRunning?: number;
  /** Ended ones that are remembered. */
  readonly maxEnded?: number;
  readonly graceMs?: number;
  /** Called once for each shell, when it has ended. */
  readonly onEnded?: (shell: TaskView) => void;
}

export interface ShellRequest {
  readonly command: string;
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
  /** Characters of output that a model may see at once. */
  readonly outputLimit: number;
  readonly timeLimitMs: number;
}

export type ShellStart =
  | { readonly type: "started"; readonly shell: TaskView }
  | { readonly type: "refused"; readonly because: string };

/** The background shells of a session. Disposing ends them all; nothing is left running. */
export interface Shells extends TaskSource, AsyncDisposable {
  start(request: ShellRequest): Promise<ShellStart>;
  /** A command in the foreground, which its own signal ends: whoever ends the rest waits for it too. */
  follow(owner: string, ended: Promise<unknown>): void;
  /** Ends what one agent has started. */
  stopOwned(owner: string): Promise<void>;
}

interface Entry {
  view: TaskView;
  readonly output: CommandOutput;
  readonly controller: AbortController;
  readonly ended: PromiseWithResolvers<void>;
}

/** A command whose signal nobody has aborted is not waited for longer than this. */
const patienceMs = 5000;

export function createShells(options: ShellsOptions): Shells {
  const { now, maxRunning = 20, maxEnded = 100 } = options;
  const entries = new Map<string, Entry>();
  const followed = new Set<{ readonly owner: string; readonly ended: Promise<unknown> }>();
  let isDisposed = false;

  const followedEnd = async (owner?: string): Promise<void> => {
    const chosen = [...followed].filter((one) => owner === undefined || one.owner === owner);
    if (chosen.length === 0) return;
    const late = AbortSignal.abort(new Fault("command-late", "A command did not end in time."));
    const ends = Promise.allSettled(chosen.map(({ ended }) => ended));
    await settledSoon(ends, late, patienceMs).catch(() => undefined);
  };
  const running = () => [...entries.values()].filter(({ view }) => view.state === "running");
  const stopAll = async (chosen: readonly Entry[]) => {
    for (const { controller } of chosen) controller.abort();
    await Promise.all(chosen.map(({ ended }) => ended.promise));
  };
  const finish = (entry: Entry, ending: ProcessEnding) => {
    entry.output.end();
    entry.view = { ...entry.view, ...describeEnding(ending), endedAt: now() };
    forgetOldest(entries, maxEnded);
    entry.ended.resolve();
    options.onEnded?.(entry.view);
  };

  return {
    kind: "shell",
    async start(request) {
      if (isDisposed)
        return { type: "refused", because: "The session is over; nothing can be started in it." };
      if (running().length >= maxRunning) {
        const because = `${maxRunning} shells run in the background already; stop one with TaskStop, or wait.`;
        return { type: "refused", because };
      }
      const entry = createEntry(freshId(options.newId, entries), request, now());
      entries.set(entry.view.id, entry);
      const started = await startProcess({
        ...(request.invocation ?? {
          file: request.shell.file,
          arguments: shellArguments(request.shell, request.command),
        }),
        directory: request.directory,
        environment: request.environment,
        merged: { directory: request.outputDirectory, name: `.${entry.view.id}.pipe` },
        signal: entry.controller.signal,
        timeLimitMs: request.timeLimitMs,
        ...(options.graceMs === undefined ? {} : { graceMs: options.graceMs }),
        onOutput(chunk) {
          entry.output.take(chunk);
          entry.view = { ...entry.view, lastSignAt: now() };
        },
      });
      void started.ended.then((ending) => {
        request.onEnded?.();
        finish(entry, ending);
      });
      return { type: "started", shell: entry.view };
    },
    find: (id) => entries.get(id)?.view,
    list: () => [...entries.values()].map(({ view }) => view),
    output: async (id) => entries.get(id)?.output.view().text ?? "",
    async page(id, offset) {
      const entry = entries.get(id);
      const file = entry?.output.view().file;
      if (file === undefined) return pageOf(entry?.output.view().text ?? "", offset);
      return loadTextPage(file, offset);
    },
    ended: async (id) => entries.get(id)?.ended.promise,
    stop: (id) => stopAll(running().filter(({ view }) => view.id === id)),
    follow(owner, ended) {
      const one = { owner, ended };
      followed.add(one);
      const forget = (): void => void followed.delete(one);
      ended.then(forget, forget);
    },
    async stopOwned(owner) {
      await stopAll(running().filter(({ view }) => view.owner === owner));
      await followedEnd(owner);
    },
    async [Symbol.asyncDispose]() {
      isDisposed = true;
      await stopAll(running());
      await followedEnd();
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

function freshId(newId: () => string, taken: ReadonlyMap<string, unknown>): string {
  let id = `b${newId()}`;
  while (taken.has(id)) id = `b${newId()}`;
  return id;
}

function describeEnding(ending: ProcessEnding): Pick<TaskView, "state" | "exitCode" | "note"> {
  const code = ending.exitCode === undefined ? {} : { exitCode: ending.exitCode };
  const note = endingNote(ending);
  return { state: stateOf(ending), ...code, ...(note === undefined ? {} : { note }) };
}

function stateOf(ending: ProcessEnding): TaskRunState {
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

function forgetOldest(entries: Map<string, Entry>, maxEnded: number): void {
  const done = [...entries].filter(([, { view }]) => view.state !== "running");
  for (const [id] of done.slice(0, Math.max(0, done.length - maxEnded))) entries.delete(id);
}
