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
  rmSync,
  watch,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { removeIfPossible } from "@retinue/base/foundation/remove-if-possible.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import type { UserMessage } from "../conversation/message.ts";
import { checkAgentId, isAgentId, type SessionFiles } from "../journal/session-files.ts";
import type { AgentId, Op } from "../protocol/op.ts";
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

/** The ops that other processes of the same user can submit to an agent that runs. */
export type RemoteOp = Extract<Op, { readonly type: "stop" | "background" | "message" }> & {
  readonly agent: AgentId;
};

/** Where other processes leave ops for the agents of a session. */
export interface ControlFiles {
  readonly directory: string;
  /** To stop an agent or to move it to the background: one file for each. */
  request(agentId: string): string;
  /** A message for an agent; each has a file of its own. */
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

export interface LeftOp {
  /** Gone as soon as the process that runs the agent has taken the op. */
  readonly file: string;
  takeBack(): void;
}

/** Leaves an op for the process that runs the agent. */
export function leaveOp(files: ControlFiles, op: RemoteOp): LeftOp {
  const { type: action, agent } = op;
  const file = action === "message" ? files.message(agent, crypto.randomUUID()) : files.request(agent);
  mkdirSync(files.directory, { recursive: true, mode: 0o700 });
  replaceWholeFile(
    file,
    `${JSON.stringify({ version: 1, action, ...(action === "message" ? { text: op.text } : {}) })}\n`,
  );
  return { file, takeBack: () => rmSync(file, { force: true }) };
}

const maxRequest = 4096;
const maxMessage = 256 * 1024;

/** A file of the folder that holds an op, before it is read. */
export interface OpFile {
  readonly path: string;
  readonly agent: AgentId;
  readonly isMessage: boolean;
  /** Undefined where it holds no op, or others could have written it. */
  read(): RemoteOp | undefined;
}

/** Undefined for files that hold no op. */
export function opFile(files: ControlFiles, name: string): OpFile | undefined {
  const path = join(files.directory, name);
  const [agent = "", ...rest] = name.split(".");
  const [first = "", second] = rest;
  const isMessage = rest.length === 2 && second === "message" && isAgentId(first);
  const isRequest = rest.length === 1 && first === "json";
  if (!isAgentId(agent) || !(isMessage || isRequest)) return undefined;
  return {
    path,
    agent,
    isMessage,
    read() {
      const value = parseJson(readOwn(path, isMessage ? maxMessage : maxRequest) ?? "");
      if (!isRecord(value) || value["version"] !== 1) return undefined;
      const { action: type, text } = value;
      if (!isMessage) return type === "stop" || type === "background" ? { type, agent } : undefined;
      if (type !== "message" || typeof text !== "string" || text.trim() === "") return undefined;
      return { type, agent, text, resume: false };
    },
  };
}

/** The text of a plain file that only this user may write; undefined for any other. */
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
