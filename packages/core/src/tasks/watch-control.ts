// @io
import {
  closeSync,
  constants,
  type FSWatcher,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  watch,
  writeFileSync,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { removeIfPossible } from "@retinue/base/foundation/remove-if-possible.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { UserMessage } from "../conversation/message.ts";
import { checkAgentId, isAgentId, type SessionFiles } from "../journal/session-files.ts";
import type { TaskManager } from "./task-manager.ts";

/** Some file systems report changes to no one, so the folder is also looked at this often. */
const pollMs = 500;
const mainPollMs = 250;
const maxRequest = 4096;
const maxMessage = 256 * 1024;

/** The id of the main agent, whose requests are for its own watcher. */
const mainId = "main";

/** The same manager, whose children other processes of the same user can stop, move to the background and write to; looks only while children run. */
export function watchControl(tasks: TaskManager, files: ControlFiles): TaskManager {
  const running = new Set<symbol>();
  /** Messages that were delivered and could not be removed. */
  const taken = new Set<string>();
  let stopLooking: (() => void) | undefined;

  async function look(): Promise<void> {
    const names = await readdir(files.directory).catch(() => []);
    for (const name of names) {
      const recipient = recipientOfMessage(name);
      if (recipient !== undefined) deliver(recipient, join(files.directory, name));
      const agentId = agentOfRequest(name);
      if (agentId === undefined || agentId === mainId) continue;
      const action = readControlRequest(readOwn(join(files.directory, name), maxRequest) ?? "");
      if (action === "background") tasks.detach(agentId);
      removeIfPossible(join(files.directory, name));
      if (action === "stop") void tasks.stop(agentId, "user");
    }
  }

  /** A message for a child of another process, or one that has ended, stays: who wrote it sees that and takes it back. */
  function deliver(agentId: string, file: string): void {
    if (taken.has(file) || tasks.get(agentId) === undefined) return;
    const text = readMessageRequest(readOwn(file, maxMessage) ?? "");
    const isTaken =
      text === undefined || tasks.send(agentId, { role: "user", content: [{ type: "text", text }] });
    if (isTaken && !removeIfPossible(file)) taken.add(file);
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
      // A wish that no one took in time was for an earlier run.
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
  /** Listens until it is disposed; the signal is aborted when somebody asks to stop the agent. */
  begin(): Disposable & { readonly signal: AbortSignal };
  /** Messages from other processes since the last call. */
  readonly takeMessages: () => readonly UserMessage[];
}

/** Looks for files and makes none, so that a session that no one controls leaves no folder behind. */
export function watchMain(files: ControlFiles): MainControl {
  const mail: UserMessage[] = [];
  let runs = 0;

  function look(stop: AbortController): void {
    for (const name of namesIn(files.directory)) {
      const file = join(files.directory, name);
      if (recipientOfMessage(name) === mainId) {
        const text = readMessageRequest(readOwn(file, maxMessage) ?? "");
        // One that cannot be taken away would come again at every look; who wrote it sees that no one has it.
        if (removeIfPossible(file) && text !== undefined)
          mail.push({ role: "user", content: [{ type: "text", text }] });
      }
      if (agentOfRequest(name) !== mainId) continue;
      const action = readControlRequest(readOwn(file, maxRequest) ?? "");
      removeIfPossible(file);
      if (action === "stop")
        stop.abort(new RetinueError("stopped-by-user", "The agent was stopped by the user."));
    }
  }

  return {
    begin() {
      const stop = new AbortController();
      // What no one took in time was for an earlier prompt.
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

/** The text of a plain file of this user that no one else may write; undefined for any other. */
function readOwn(file: string, maxBytes: number): string | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(
      file,
      constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0),
    );
    const status = fstatSync(descriptor);
    const isOurs = process.getuid === undefined || status.uid === process.getuid();
    const isPrivate = process.getuid === undefined || (status.mode & 0o022) === 0;
    if (!status.isFile() || !isOurs || !isPrivate || status.size > maxBytes) return undefined;
    return readFileSync(descriptor, "utf8");
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Where other processes leave wishes for the children of a session, one file for each child. */
export interface ControlFiles {
  readonly directory: string;
  request(agentId: string): string;
  /** A message for a child; each has a file of its own. */
  message(agentId: string, messageId: string): string;
}

export function controlFiles({ directory }: Pick<SessionFiles, "directory">): ControlFiles {
  const folder = join(directory, "control");
  return {
    directory: folder,
    request: (agentId) => join(folder, `${checkAgentId(agentId)}.json`),
    message: (agentId, messageId) =>
      join(folder, `${checkAgentId(agentId)}.${checkAgentId(messageId)}.message`),
  };
}

/** The child a message is for; undefined for files that are no messages. */
function recipientOfMessage(fileName: string): string | undefined {
  const [id = "", messageId = "", ending, more] = fileName.split(".");
  const isMessage = ending === "message" && more === undefined && isAgentId(messageId);
  return isMessage && isAgentId(id) ? id : undefined;
}

export function messageRequest(text: string): string {
  return `${JSON.stringify({ version: 1, action: "message", text })}\n`;
}

/** The text of a message; undefined where the file holds none. */
function readMessageRequest(text: string): string | undefined {
  const value = parseJson(text);
  const isMessage = isRecord(value) && value.version === 1 && value.action === "message";
  return isMessage && typeof value.text === "string" && value.text.trim() !== "" ? value.text : undefined;
}

/** The child a file speaks for; undefined for files that are not ours. */
function agentOfRequest(fileName: string): string | undefined {
  const id = fileName.endsWith(".json") ? fileName.slice(0, -5) : "";
  return isAgentId(id) ? id : undefined;
}

const controlActions = ["stop", "background"] as const;

/** What another process asks of an agent besides taking a message. */
export type ControlAction = (typeof controlActions)[number];

export function controlRequest(action: ControlAction): string {
  return `${JSON.stringify({ version: 1, action })}\n`;
}

/** What the text of a file asks for; undefined where it is no request. */
function readControlRequest(text: string): ControlAction | undefined {
  const value = parseJson(text);
  if (!isRecord(value) || value.version !== 1) return undefined;
  return controlActions.find((known) => known === value.action);
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
