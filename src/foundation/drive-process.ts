import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { closeWriteEnd, connectPipe, type Pipe } from "./connect-pipe.ts";
import { spawnProcess } from "./drive-spawn.ts";
import { endProcessGroup } from "./end-process-group.ts";
import { findGroupMembers, groupAnswers } from "./find-group-members.ts";

export interface ProcessRequest {
  readonly file: string;
  readonly arguments: readonly string[];
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  /** What the process reads; absent means nothing, at once. */
  readonly input?: string;
  /** stdout and stderr through one real pipe, all of it as stdout; it has a name in this folder for a moment. */
  readonly merged?: { readonly directory: string; readonly name: string };
  /** Keeps what the process writes to descriptor 3, up to 8 KB. */
  readonly reportsBack?: boolean;
  readonly signal: AbortSignal;
  readonly timeLimitMs?: number;
  /** How long a process may take to end after SIGTERM. */
  readonly graceMs?: number;
  /** How long somebody else may hold the pipes after the process has ended. */
  readonly drainMs?: number;
  readonly onOutput: (chunk: Buffer, stream: "stdout" | "stderr") => void;
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
  /** Somebody outside the group, a daemon, still held its output when it was given up. */
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

/** Starts a process at the head of a group of its own and follows it until nothing of the group is left. */
export async function startProcess(request: ProcessRequest): Promise<RunningProcess> {
  if (request.signal.aborted) return settled({ ...notEnded, aborted: true });
  const pipe = request.merged && (await connectPipe(request.merged.directory, request.merged.name));
  let child: ChildProcess;
  try {
    child = await spawnDetached(request, pipe);
  } catch (error) {
    pipe?.readable.destroy();
    return settled({ ...notEnded, notStarted: error instanceof Error ? error.message : String(error) });
  } finally {
    closeWriteEnd(pipe);
  }
  const cause = Promise.withResolvers<EndCause>();
  const ended = follow(child, { request, cause, streams: listen(child, request, pipe) });
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

function spawnDetached(request: ProcessRequest, pipe: Pipe | undefined): Promise<ChildProcess> {
  const output = pipe?.writeEnd ?? "pipe";
  return spawnProcess(request.file, request.arguments, {
    cwd: request.directory,
    env: request.environment,
    detached: process.platform !== "win32",
    windowsHide: true,
    stdio: [
      request.input === undefined ? "ignore" : "pipe",
      output,
      output,
      ...(request.reportsBack === true ? (["pipe"] as const) : []),
    ],
  });
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
    [child.stdio[3] as Readable | undefined, keep],
  ];
  const readables = sources.flatMap(([readable, take]) => {
    if (readable === null || readable === undefined) return [];
    return [readable.on("data", take).on("error", () => readable.destroy())];
  });
  child.stdin?.on("error", () => undefined).end(request.input);
  const closed = Promise.all(
    readables.map((readable) => new Promise<void>((resolve) => readable.once("close", resolve))),
  );
  return { readables, closed, report: () => Buffer.concat(chunks).toString("utf8") };
}

interface Following {
  readonly request: ProcessRequest;
  readonly cause: PromiseWithResolvers<EndCause>;
  readonly streams: Streams;
}

async function follow(child: ChildProcess, { request, cause, streams }: Following): Promise<ProcessEnding> {
  const graceMs = request.graceMs ?? 2_000;
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  void exited.then(() => cause.resolve("exit"));
  const why = await firstCause(cause, request);
  if (child.pid === undefined) return { ...notEnded, notStarted: "the process did not start" };
  if (why !== "exit") await endProcessGroup(child.pid, { graceMs });
  await within(exited, graceMs + 1_000);
  const left = await endLeftovers(child.pid, streams, { graceMs, drainMs: request.drainMs ?? 250 });
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
  { signal, timeLimitMs }: ProcessRequest,
): Promise<EndCause> {
  const onAbort = () => cause.resolve("abort");
  const timer = timeLimitMs === undefined ? undefined : setTimeout(() => cause.resolve("time"), timeLimitMs);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await cause.promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

/** A daemon may hold the pipes for ever, so the wait for their end is short, and made twice: a busy process may lag. */
async function endLeftovers(
  leader: number,
  streams: Streams,
  { graceMs, drainMs }: { readonly graceMs: number; readonly drainMs: number },
): Promise<{ readonly members: number; readonly isHeld: boolean }> {
  const closedInTime = await within(streams.closed, drainMs);
  const members = closedInTime && !groupAnswers(leader) ? 0 : findGroupMembers(leader).length;
  if (members > 0) await endProcessGroup(leader, { graceMs });
  const closed = closedInTime || (await within(streams.closed, drainMs));
  for (const readable of streams.readables) readable.destroy();
  return { members, isHeld: !closed };
}

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
