// @io
import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { followProcessTree } from "./process-tree.ts";
import {
  closeWriteEnd,
  connectPipe,
  endProcessGroup,
  findGroupMembers,
  groupAnswers,
  groupWatchdog,
  type Pipe,
  spawnProcess,
  treeVariable,
} from "./spawn-process.ts";

export interface ProcessRequest {
  readonly file: string;
  readonly arguments: readonly string[];
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  /** What it and whatever it starts is known by; a text of its own unless given. */
  readonly mark?: string;
  /** What the process reads; absent means nothing, immediately. */
  readonly input?: string;
  /** stdout and stderr through one real pipe, all of it as stdout; it has a name in this folder for a moment. */
  readonly merged?: { readonly directory: string; readonly name: string };
  /** Keeps what the process writes to descriptor 3, up to 8 KB. */
  readonly reportsBack?: boolean;
  /** What the process can read from descriptor 4. */
  readonly sideInput?: Uint8Array;
  readonly signal: AbortSignal;
  readonly timeLimitMs?: number;
  /** Aborted when the time limit does not count any more. */
  readonly unlimited?: AbortSignal;
  /** How long a process may take to end after SIGTERM. */
  readonly graceMs?: number;
  /** How long another process may hold the pipes after this one has ended. */
  readonly drainMs?: number;
  readonly onOutput: (chunk: Buffer, stream: "stdout" | "stderr") => void;
  /** Receives the number of the group before anything of the program runs; what it throws keeps the program from running. */
  readonly onStart?: (leader: number) => void;
}

export interface ProcessEnding {
  /** Why it never ran; then nothing else is meant. */
  readonly notStarted?: string;
  readonly exitCode?: number;
  readonly signal?: NodeJS.Signals;
  readonly timedOut: boolean;
  /** Ended by the request's signal. */
  readonly aborted: boolean;
  /** Ended by `stop`. */
  readonly stopped: boolean;
  /** Processes it had left in its group, which were ended too. */
  readonly leftBehind: number;
  /** A process outside the group, a daemon, still held its output when it was given up. */
  readonly isHeld?: boolean;
  readonly report: string;
}

export interface RunningProcess {
  readonly pid: number | undefined;
  /** Never rejects. */
  readonly ended: Promise<ProcessEnding>;
  /** Ends the whole group; a process that has ended stays as it is. */
  stop(): Promise<ProcessEnding>;
}

type EndCause = "exit" | "time" | "abort" | "stop";

const reportLimit = 8_192;

/**
 * Starts a process at the head of a group of its own and follows it until nothing of the group is left. One that is cut off,
 * by its limit, its signal or `stop`, takes along whatever it has started, also what made a session of its own.
 */
export async function startProcess(request: ProcessRequest): Promise<RunningProcess> {
  if (request.signal.aborted) return settled({ ...notEnded, aborted: true });
  const missing = isGated(request) ? whyNotRunnable(request.file, pathOf(request)) : undefined;
  if (missing !== undefined) return settled({ ...notEnded, notStarted: `spawn ${request.file} ${missing}` });
  const pipe = request.merged && (await connectPipe(request.merged.directory, request.merged.name));
  const { mark = randomUUID() } = request;
  let child: ChildProcess;
  try {
    child = await spawnDetached(request, { pipe, mark });
  } catch (error) {
    pipe?.readable.destroy();
    return settled({ ...notEnded, notStarted: error instanceof Error ? error.message : String(error) });
  } finally {
    closeWriteEnd(pipe);
  }
  const cause = Promise.withResolvers<EndCause>();
  const ended = follow(child, { request, mark, cause, streams: listen(child, request, pipe) });
  const watched = child.pid === undefined ? undefined : groupWatchdog.watch(child.pid);
  void ended.then(() => watched?.release());
  const refusal = openGate(child, request);
  if (refusal !== undefined) {
    cause.resolve("stop");
    const refused = ended.then((): ProcessEnding => ({ ...notEnded, notStarted: refusal }));
    return { pid: child.pid, ended: refused, stop: () => refused };
  }
  const stop = () => {
    cause.resolve("stop");
    return ended;
  };
  return { pid: child.pid, ended, stop };
}

const notEnded: ProcessEnding = {
  timedOut: false,
  aborted: false,
  stopped: false,
  leftBehind: 0,
  report: "",
};

function settled(ending: ProcessEnding): RunningProcess {
  const ended = Promise.resolve(ending);
  return { pid: undefined, ended, stop: () => ended };
}

function spawnDetached(
  request: ProcessRequest,
  { pipe, mark }: { readonly pipe: Pipe | undefined; readonly mark: string },
): Promise<ChildProcess> {
  const output = pipe?.writeEnd ?? "pipe";
  const { file, arguments: words, descriptors } = gated(request);
  return spawnProcess(file, words, {
    cwd: request.directory,
    env: { ...request.environment, [treeVariable]: mark },
    detached: process.platform !== "win32",
    windowsHide: true,
    stdio: [request.input === undefined ? "ignore" : "pipe", output, output, ...descriptors],
  });
}

/** Descriptors 3 and 4, as far as they are needed. */
function moreDescriptors({ reportsBack, sideInput }: ProcessRequest): readonly ("pipe" | "ignore")[] {
  if (sideInput !== undefined) return [reportsBack === true ? "pipe" : "ignore", "pipe"];
  return reportsBack === true ? ["pipe"] : [];
}

/**
 * A program whose start is to be written down waits behind a gate until that is done. If this process dies first, the gate is
 * closed for good and the program never runs.
 */
function isGated({ onStart }: ProcessRequest): boolean {
  return onStart !== undefined && process.platform !== "win32";
}

function pathOf({ directory, environment }: ProcessRequest) {
  return { directory, path: environment["PATH"] };
}

function gated(request: ProcessRequest) {
  const others = moreDescriptors(request);
  if (!isGated(request)) return { file: request.file, arguments: request.arguments, descriptors: others };
  const gate = gateOf(request);
  const script = `read -r _ <&${gate} || exit 125; exec ${gate}<&-; exec "$@"`;
  return {
    file: "/bin/sh",
    arguments: ["-c", script, "retinue-gate", request.file, ...request.arguments],
    descriptors: [...others, "pipe"] as const,
  };
}

/** The descriptor the program waits at, behind the others. */
function gateOf(request: ProcessRequest): number {
  return 3 + moreDescriptors(request).length;
}

/** Lets the program run; says why it may not. */
function openGate(child: ChildProcess, request: ProcessRequest): string | undefined {
  const gate = isGated(request) ? (child.stdio?.[gateOf(request)] as Duplex | null | undefined) : undefined;
  gate?.on("error", () => undefined);
  try {
    if (child.pid !== undefined) request.onStart?.(child.pid);
    gate?.end("\n");
    return undefined;
  } catch (error) {
    gate?.destroy();
    return error instanceof Error ? error.message : String(error);
  }
}

interface Streams {
  readonly readables: readonly Readable[];
  /** Resolves when all of them are closed. */
  readonly closed: Promise<unknown>;
  readonly report: () => string;
}

function listen(child: ChildProcess, request: ProcessRequest, pipe: Pipe | undefined): Streams {
  const chunks: Buffer[] = [];
  let size = 0;
  const keep = (chunk: Buffer) => {
    if (size < reportLimit) chunks.push(chunk);
    size += chunk.length;
  };
  const sources: [Readable | null | undefined, (chunk: Buffer) => void][] = [
    [pipe?.readable ?? child.stdout, (chunk) => request.onOutput(chunk, "stdout")],
    [child.stderr, (chunk) => request.onOutput(chunk, "stderr")],
    // The pipe made for descriptor 3 is readable; the types only know it as one of several kinds.
    [request.reportsBack === true ? (child.stdio[3] as Readable | undefined) : undefined, keep],
  ];
  const readables = sources.flatMap(([readable, take]) => {
    if (readable === null || readable === undefined) return [];
    return [readable.on("data", take).on("error", () => readable.destroy())];
  });
  child.stdin?.on("error", () => undefined).end(request.input);
  // As above, for descriptor 4.
  const side = request.sideInput === undefined ? undefined : (child.stdio[4] as Duplex | null | undefined);
  side?.on("error", () => side.destroy()).on("end", () => side.destroy());
  side?.resume().end(request.sideInput);
  const closed = Promise.all(
    readables.map((readable) => new Promise<void>((resolve) => readable.once("close", resolve))),
  );
  return { readables, closed, report: () => Buffer.concat(chunks).toString("utf8") };
}

interface Following {
  readonly request: ProcessRequest;
  readonly mark: string;
  readonly cause: PromiseWithResolvers<EndCause>;
  readonly streams: Streams;
}

async function follow(
  child: ChildProcess,
  { request, mark, cause, streams }: Following,
): Promise<ProcessEnding> {
  const graceMs = request.graceMs ?? 2_000;
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  void exited.then(() => cause.resolve("exit"));
  const why = await firstCause(cause, request);
  if (child.pid === undefined) return { ...notEnded, notStarted: "the process did not start" };
  if (why !== "exit") await followProcessTree(child.pid, mark).end({ graceMs });
  await within(exited, graceMs + 1_000);
  // A daemon may hold the pipes for ever, so the wait for their end is short, and made twice: a busy process may lag.
  const drainMs = request.drainMs ?? 250;
  const closedInTime = await within(streams.closed, drainMs);
  const members =
    closedInTime && !groupAnswers(child.pid) ? 0 : await countRemaining(child.pid, closedInTime);
  if (members > 0) await endProcessGroup(child.pid, { graceMs });
  const closed = closedInTime || (await within(streams.closed, drainMs));
  for (const readable of streams.readables) readable.destroy();
  const left = { members, isHeld: !closed };
  return {
    ...(child.exitCode === null ? {} : { exitCode: child.exitCode }),
    ...(child.signalCode === null ? {} : { signal: child.signalCode }),
    timedOut: why === "time",
    aborted: why === "abort",
    stopped: why === "stop",
    leftBehind: left.members,
    ...(left.isHeld ? { isHeld: true } : {}),
    report: streams.report(),
  };
}

async function firstCause(
  cause: PromiseWithResolvers<EndCause>,
  { signal, timeLimitMs, unlimited }: ProcessRequest,
): Promise<EndCause> {
  const onAbort = () => cause.resolve("abort");
  const timer = timeLimitMs === undefined ? undefined : setTimeout(() => cause.resolve("time"), timeLimitMs);
  const onUnlimited = () => clearTimeout(timer);
  signal.addEventListener("abort", onAbort, { once: true });
  unlimited?.addEventListener("abort", onUnlimited, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await cause.promise;
  } finally {
    clearTimeout(timer);
    unlimited?.removeEventListener("abort", onUnlimited);
    signal.removeEventListener("abort", onAbort);
  }
}

/** What has closed its output and is about to exit, such as the helper of a sandbox, was not left behind. */
async function countRemaining(leader: number, isClosed: boolean): Promise<number> {
  let members = findGroupMembers(leader).length;
  for (let round = 0; isClosed && members > 0 && round < exitRounds; round += 1) {
    await sleep(exitPauseMs);
    members = findGroupMembers(leader).length;
  }
  return members;
}

const exitRounds = 40;
const exitPauseMs = 10;

async function within(promise: Promise<unknown>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), limitMs);
  });
  try {
    return await Promise.race([promise.then(() => true), limit]);
  } finally {
    clearTimeout(timer);
  }
}

const defaultPath = ["/usr/local/bin", "/usr/bin", "/bin"];

/** Why a program cannot be started, in the system's word, or undefined where it can. */
function whyNotRunnable(
  file: string,
  { directory, path }: { readonly directory: string; readonly path: string | undefined },
): "ENOENT" | "EACCES" | undefined {
  const places = file.includes("/")
    ? [resolve(directory, file)]
    : (path?.split(delimiter) ?? defaultPath).map((folder) =>
        join(isAbsolute(folder) ? folder : resolve(directory, folder), file),
      );
  const answers = places.map(judge);
  if (answers.includes(undefined)) return undefined;
  return answers.includes("EACCES") ? "EACCES" : "ENOENT";
}

function judge(file: string): "ENOENT" | "EACCES" | undefined {
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    if (found === undefined) return "ENOENT";
    if (!found.isFile()) return "EACCES";
    accessSync(file, constants.X_OK);
    return undefined;
  } catch {
    return "EACCES";
  }
}

export interface RunRequest extends Omit<ProcessRequest, "onOutput"> {
  /** Bytes kept of each of stdout and stderr; what comes after is read and dropped. */
  readonly maxBytes?: number;
}

export interface ProcessResult extends ProcessEnding {
  readonly stdout: string;
  readonly stderr: string;
  /** Both, in the order in which they arrived. */
  readonly output: string;
  /** More was written than kept. */
  readonly truncated: boolean;
}

/** Runs a program to its end and keeps a bounded part of what it writes. Never rejects. */
export async function runProcess({ maxBytes = 1_000_000, ...request }: RunRequest): Promise<ProcessResult> {
  const kept: { readonly chunk: Buffer; readonly stream: "stdout" | "stderr" }[] = [];
  const room = { stdout: maxBytes, stderr: maxBytes };
  let truncated = false;
  const running = await startProcess({
    ...request,
    onOutput(chunk, stream) {
      const part = chunk.subarray(0, room[stream]);
      room[stream] -= part.length;
      truncated ||= part.length < chunk.length;
      if (part.length > 0) kept.push({ chunk: part, stream });
    },
  });
  const ending = await running.ended;
  const text = (wanted?: "stdout" | "stderr") =>
    Buffer.concat(
      kept.filter(({ stream }) => wanted === undefined || stream === wanted).map(({ chunk }) => chunk),
    ).toString("utf8");
  return { ...ending, stdout: text("stdout"), stderr: text("stderr"), output: text(), truncated };
}
