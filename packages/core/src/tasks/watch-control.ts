// @io
import { type FSWatcher, mkdirSync, readdirSync, readFileSync, watch, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { removeIfPossible } from "@retinue/base/foundation/remove-if-possible.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { UserMessage } from "../conversation/message.ts";
import { type ControlFiles, opFile } from "./op-files.ts";
import type { TaskManager } from "./task-manager.ts";

/** Some file systems report no changes, so the folder is also looked at this often. */
const pollMs = 500;
const mainPollMs = 250;

/** The id of the main agent, whose requests are for its own watcher. */
const mainId = "main";

/** The same manager, whose children other processes of the same user can stop, move to the background and write to; looks only while children run. */
export function watchControl(tasks: TaskManager, files: ControlFiles): TaskManager {
  const running = new Set<symbol>();
  /** Messages that were delivered and could not be removed. */
  const taken = new Set<string>();
  let stopLooking: (() => void) | undefined;

  async function look(): Promise<void> {
    for (const name of await readdir(files.directory).catch(() => [])) {
      const left = opFile(files, name);
      if (left === undefined || left.agent === mainId) continue;
      const { path, agent, isMessage } = left;
      // A message for a child of another process, or one that has ended, stays: its writer sees that and takes it back.
      if (isMessage && (taken.has(path) || tasks.get(agent) === undefined)) continue;
      const op = left.read();
      if (op?.type === "message" && !tasks.send(agent, messageOf(op))) continue;
      if (op?.type === "background") tasks.detach(agent);
      if (!removeIfPossible(path) && isMessage) taken.add(path);
      if (op?.type === "stop") void tasks.stop(agent, "user");
    }
  }

  function leave(mark: symbol): void {
    running.delete(mark);
    if (running.size > 0) return;
    stopLooking?.();
    stopLooking = undefined;
  }

  return {
    ...tasks,
    start(run) {
      // An op that was not taken in time was for an earlier run.
      removeIfPossible(files.request(run.start.id));
      const started = tasks.start(run);
      if (started.type === "refused") return started;
      const mark = Symbol(run.start.id);
      running.add(mark);
      stopLooking ??= startLooking(files.directory, () => void look().catch(() => undefined));
      void tasks.ended(run.start.id).then(() => leave(mark));
      return started;
    },
  };
}

/** How other processes of the same user reach the main agent while it works on a prompt. */
export interface MainControl {
  /** Listens until it is disposed; the signal is aborted by an op that stops the agent. */
  begin(): Disposable & { readonly signal: AbortSignal };
  /** Messages from other processes since the last call. */
  readonly takeMessages: () => readonly UserMessage[];
}

/** Looks for files and makes none, so that a session without ops leaves no folder behind. */
export function watchMain(files: ControlFiles): MainControl {
  const mail: UserMessage[] = [];
  let runs = 0;

  function look(stop: AbortController): void {
    for (const name of namesIn(files.directory)) {
      const left = opFile(files, name);
      if (left?.agent !== mainId) continue;
      const op = left.read();
      // A message that cannot be removed would come again at every look; its writer sees that it was not taken.
      if (removeIfPossible(left.path) && op?.type === "message") mail.push(messageOf(op));
      if (op?.type === "stop")
        stop.abort(new RetinueError("stopped-by-user", "The agent was stopped by the user."));
    }
  }

  return {
    begin() {
      const stop = new AbortController();
      // An op that was not taken in time was for an earlier prompt.
      if (runs === 0) removeIfPossible(files.request(mainId));
      runs += 1;
      const timer = setInterval(() => look(stop), mainPollMs).unref();
      return {
        signal: stop.signal,
        [Symbol.dispose]() {
          runs -= 1;
          clearInterval(timer);
        },
      };
    },
    takeMessages: () => mail.splice(0),
  };
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function startLooking(directory: string, look: () => void): () => void {
  const timer = setInterval(look, pollMs).unref();
  let watcher: FSWatcher | undefined;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    watcher = watch(directory, { persistent: false }, look);
    // Without it the timer still looks.
    watcher.on("error", () => undefined);
  } catch {
    // The system may have no more watchers to give.
  }
  return () => {
    clearInterval(timer);
    watcher?.close();
  };
}

function messageOf({ text }: { readonly text: string }): UserMessage {
  return { role: "user", content: [{ type: "text", text }] };
}

/** Where other processes see that a child waits for a place; the number orders those of one session. */
export function queueMarkFile(transcript: string): string {
  return transcript.replace(/\.jsonl$/, ".queued");
}

interface QueueMark {
  enterQueue(): void;
  leaveQueue(): void;
}

/** The mark is for people who look; a disk that takes none does not keep the child from its place. */
export function openQueueMark(file: string, nextNumber: () => number): QueueMark {
  let isSet = false;
  return {
    enterQueue() {
      try {
        writeFileSync(file, `${nextNumber()}\n`, { mode: 0o600 });
        isSet = true;
      } catch {
        isSet = false;
      }
    },
    leaveQueue() {
      if (isSet) removeIfPossible(file);
      isSet = false;
    },
  };
}

/** The number of a child that waits; undefined for one that does not. */
export function loadQueueNumber(file: string): number | undefined {
  try {
    const number = Number(readFileSync(file, "utf8").trim());
    return Number.isSafeInteger(number) && number > 0 ? number : undefined;
  } catch {
    return undefined;
  }
}
