// @io
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, constants, existsSync, openSync, readdirSync, readFileSync, unlinkSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { isResourceLimit, retryOnResourceLimit } from "./retry-on-resource-limit.ts";

/**
 * Starts a process, and tries again briefly where the system has no descriptors, processes or memory to give just now.
 * Rejects when it cannot be started. Its errors have a listener from the first moment: without that, Node ends the
 * whole program when a process cannot be started, or cannot be reached by a signal.
 */
export function spawnProcess(
  file: string,
  args: readonly string[],
  options: SpawnOptions & { readonly signal?: never },
): Promise<ChildProcess> {
  return retryOnResourceLimit(async () => {
    const child = spawnGuarded(file, args, options);
    if (child.pid !== undefined) return child;
    const [error]: readonly unknown[] = await once(child, "error").catch((reason: unknown) => [reason]);
    for (const stream of child.stdio ?? []) stream?.destroy();
    throw isFolderGone(error, options.cwd)
      ? new Error(`the folder ${String(options.cwd)} does not exist`)
      : error;
  });
}

/** Starts a process with listeners for the errors of it and of its streams; `pid` is absent when it could not be started. */
export function spawnGuarded(file: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(file, args, options);
  child.on("error", () => undefined);
  for (const stream of child.stdio ?? []) stream?.on("error", () => undefined);
  return child;
}

/** The system reports a program as not found when it means the folder it should start in. */
function isFolderGone(error: unknown, folder: SpawnOptions["cwd"]): boolean {
  const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
  return isMissing && folder !== undefined && !existsSync(folder);
}

export interface Pipe {
  readonly readable: Readable;
  /** For a child's stdout and stderr; the holder closes it once the child has its own. */
  readonly writeEnd: number;
}

/**
 * A real pipe. Node gives children sockets, which cannot be opened by name, so that `echo x > /dev/stderr` fails in
 * them; one pipe for stdout and stderr also keeps the order of what was written. Undefined where none can be made.
 */
export async function connectPipe(directory: string, name: string): Promise<Pipe | undefined> {
  if (process.platform === "win32") return undefined;
  // Node closes once more, at the end of a worker thread, what the thread has opened; by then another may have that number.
  if (!(await import("node:worker_threads")).isMainThread) return undefined;
  const path = join(directory, name);
  if (!(await makeNamedPipe(path))) return undefined;
  const opened: number[] = [];
  try {
    const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    opened.push(readEnd);
    const writeEnd = openSync(path, constants.O_WRONLY);
    opened.push(writeEnd);
    const readable = new Socket({ fd: readEnd, readable: true, writable: false });
    // The reader listens later, and an error before that must not end the program.
    readable.on("error", () => readable.destroy());
    return { readable, writeEnd };
  } catch {
    for (const descriptor of opened) closeSync(descriptor);
    return undefined;
  } finally {
    unlinkSync(path);
  }
}

export function closeWriteEnd(pipe: Pipe | undefined): void {
  if (pipe !== undefined) closeSync(pipe.writeEnd);
}

const systemPath = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin";

async function makeNamedPipe(path: string): Promise<boolean> {
  try {
    const maker = await spawnProcess("mkfifo", ["-m", "600", path], {
      env: { PATH: systemPath },
      stdio: "ignore",
      timeout: 5_000,
    });
    return await new Promise((resolve) => maker.once("exit", (code) => resolve(code === 0)));
  } catch {
    return false;
  }
}

/** Set for a process to a text of its own, its mark, which whatever it starts inherits. */
export const treeVariable = "RETINUE_PROCESS_TREE";

/** Ends process groups once this process is gone, however it ended; one small process does that for all of them. */
interface GroupWatchdog {
  /** What marks begin with whose processes end with this one too, in whatever group or session they are. */
  markRoot(): string;
  /** From now on the group dies with this process, until `release` is called. */
  watch(leader: number): WatchedGroup;
  /** Lets the watchdog end soon where nothing is left to watch; a group that comes later starts another one. */
  rest(): void;
}

export interface WatchedGroup {
  release(): void;
}

/** How long a watchdog without a group stays, so that one command after the other does not start one each. */
const idleMs = 5_000;
/** The same once a session has ended; another one that begins right after it finds the watchdog still there. */
const restMs = 500;

/**
 * The watchdog reads from a pipe that only this process can write to. Even after SIGKILL the system closes that pipe, and then
 * the watchdog asks every group it knows of to end, and kills what is left half a second later. Where it cannot be started,
 * nothing else changes: commands then live on when this process is killed, until their session is resumed.
 */
export function createGroupWatchdog(startOf = readStart): GroupWatchdog {
  const groups = new Map<number, string>();
  let root: string | undefined;
  let dog: ChildProcess | undefined;
  let idle: NodeJS.Timeout | undefined;

  function report(text: string): void {
    if (dog?.stdin?.writable === true) dog.stdin.write(text);
  }

  function leaveAfter(delayMs: number): void {
    clearTimeout(idle);
    idle = setTimeout(leave, delayMs).unref();
  }

  function leave(): void {
    idle = undefined;
    // What a command left in a session of its own is watched as long as it lives.
    if (root !== undefined && findMarkedProcesses(root).length > 0) {
      leaveAfter(idleMs);
      return;
    }
    dog?.stdin?.end("bye\n");
    dog = undefined;
  }

  function start(): void {
    const started = spawnWatchdog();
    if (started === undefined) return;
    dog = started;
    started.once("exit", () => {
      if (dog === started) dog = undefined;
    });
    // Another watchdog may have died; the new one takes over what it knew.
    if (root !== undefined) report(`mark ${root}\n`);
    for (const [leader, began] of groups) report(`+ ${leader} ${began}\n`);
  }

  return {
    markRoot() {
      if (root === undefined) {
        root = `${randomUUID()}/`;
        report(`mark ${root}\n`);
      }
      return root;
    },
    watch(leader) {
      if (process.platform === "win32") return { release: () => undefined };
      clearTimeout(idle);
      const began = startOf(leader);
      groups.set(leader, began);
      if (dog === undefined) start();
      else report(`+ ${leader} ${began}\n`);
      return {
        release() {
          if (groups.get(leader) !== began) return;
          groups.delete(leader);
          report(`- ${leader}\n`);
          if (groups.size === 0 && dog !== undefined) leaveAfter(idleMs);
        },
      };
    },
    rest() {
      if (groups.size > 0 || dog === undefined) return;
      leaveAfter(restMs);
    },
  };
}

/** The one of this process: a pipe whose end means the end of the process cannot belong to a part of it. */
export const groupWatchdog: GroupWatchdog = createGroupWatchdog();

function spawnWatchdog(): ChildProcess | undefined {
  try {
    const child = spawnGuarded("/bin/sh", ["-c", script, "retinue-watchdog"], {
      // In a session of its own neither Ctrl+C nor a closed terminal reaches it.
      detached: true,
      cwd: "/",
      env: { PATH: "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin" },
      stdio: ["pipe", "ignore", "ignore"],
    });
    child.unref();
    // A pipe to a child is a socket, which keeps the process alive unless it is unreferenced.
    const { stdin } = child;
    if (stdin !== null && "unref" in stdin && typeof stdin.unref === "function") stdin.unref();
    return child;
  } catch {
    return undefined;
  }
}

/** The moment a process began, as the system counts; `-` where it does not report it. */
function readStart(pid: number): string {
  try {
    return String(readProcessStatus(pid)?.started ?? "-");
  } catch {
    return "-";
  }
}

/**
 * `groups` holds ` leader ` for each group. In /proc/N/stat the fields behind the name in parentheses are state, parent, group,
 * session and, as the twentieth, the start; a leader that began at another moment is another process that was given its number.
 * `mark` is what the marks begin with of the processes that end too.
 */
const script = `
trap '' HUP INT TERM
groups=' '
starts=' '
mark=
forget() {
  kept=' '
  for one in $groups; do [ "$one" = "$1" ] || kept="$kept$one "; done
  groups=$kept
}
while read -r verb leader began; do
  [ "$verb" = bye ] && exit 0
  if [ "$verb" = mark ]; then mark="${treeVariable}=$leader"; continue; fi
  forget "$leader"
  if [ "$verb" = + ]; then groups="$groups$leader "; starts=" $leader:$began$starts"; fi
done
[ "$groups$mark" = ' ' ] && exit 0
fields() { line=; read -r line < "/proc/$1/stat" || return 1; line=\${line##*") "}; }
began() { shift 19; echo "$1"; }
for leader in $groups; do
  fields "$leader" || continue
  case "$starts" in *" $leader:- "*) continue ;; esac
  case "$starts" in *" $leader:$(began $line) "*) ;; *) forget "$leader" ;; esac
done 2>/dev/null
look() {
  [ "$1" = Z ] || [ "$1" = X ] && return
  case "$groups" in *" $3 "* | *" $4 "*) members="$members $pid" ;; esac
}
find_members() {
  members=
  if [ -e /proc/self/stat ]; then
    for file in /proc/[0-9]*; do
      pid=\${file#/proc/}
      fields "$pid" && look $line
    done
  else
    for leader in $groups; do kill -0 -- "-$leader" && members="$members -$leader"; done
  fi
  [ -n "$mark" ] || return
  for file in $(grep -lF "$mark" /proc/[0-9]*/environ); do
    file=\${file#/proc/}
    members="$members \${file%/environ}"
  done
} 2>/dev/null
send() {
  for one in $groups; do kill -s "$1" -- "-$one"; done
  for one in $members; do kill -s "$1" -- "$one"; done
} 2>/dev/null
find_members
send TERM
round=0
while [ "$round" -lt 60 ]; do
  find_members
  [ -z "$members" ] && exit 0
  [ "$round" -ge 10 ] && send KILL
  sleep 0.05
  round=$((round + 1))
done
`;

const pollMs = 20;
const killRounds = 25;

/**
 * Ends everything a leader has started: asks politely, and kills what is left when the grace is over. Whether something
 * is left is seen at the processes themselves. Resolves when nothing lives, or when even killing did not help.
 */
export async function endProcessGroup(leader: number, options: { readonly graceMs: number }): Promise<void> {
  if (process.platform === "win32") {
    try {
      const options = { stdio: "ignore", windowsHide: true } as const;
      const killer = await spawnProcess("taskkill", ["/pid", String(leader), "/T", "/F"], options);
      await new Promise((resolve) => killer.once("exit", resolve));
    } catch {
      // Nothing more can be done here.
    }
    return;
  }
  signalGroup(leader, "SIGTERM");
  // By the clock: on a busy machine looking takes longer than the pause between two looks.
  const until = performance.now() + options.graceMs;
  for (let left = options.graceMs; left > 0; left = until - performance.now()) {
    if (!isAlive(leader)) return;
    await sleep(Math.min(pollMs, left));
  }
  for (let round = 0; round < killRounds && isAlive(leader); round += 1) {
    signalGroup(leader, "SIGKILL");
    await sleep(pollMs);
  }
}

/** Sends a signal to the group and to those of the session that left it, as `timeout` and job control do. */
function signalGroup(leader: number, signal: NodeJS.Signals): void {
  sendSignal(-leader, signal);
  for (const pid of findGroupMembers(leader)) if (pid !== leader) sendSignal(pid, signal);
}

function isAlive(leader: number): boolean {
  return process.platform === "linux" ? findGroupMembers(leader).length > 0 : groupAnswers(leader);
}

export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended in between, or belongs to another user: nothing more can be done here.
  }
}

/**
 * The living processes that a leader started in its group or session, the leader included and zombies not. A process
 * that made a session of its own is a daemon and does not count. Where there is no /proc, only the group is asked.
 */
export function findGroupMembers(leader: number): readonly number[] {
  if (process.platform !== "linux") return groupAnswers(leader) ? [leader] : [];
  try {
    return readProcesses()
      .filter(({ group, session }) => group === leader || session === leader)
      .map(({ pid }) => pid);
  } catch {
    // Without descriptors no process can be looked at, and what is not seen must not count as gone.
    return groupAnswers(leader) ? [leader] : [];
  }
}

/** Whether anything, a zombie included, is left in the group; costs one system call. */
export function groupAnswers(leader: number): boolean {
  try {
    process.kill(process.platform === "win32" ? leader : -leader, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** What /proc shows of a living process. */
export interface ProcessStatus {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** The moment it began, in ticks since the machine was booted. */
  readonly started: number;
}

/** Undefined for one that has ended, collected or not, and where there is no /proc. Throws only where there are no descriptors left. */
export function readProcessStatus(pid: number | string): ProcessStatus | undefined {
  const text = readStatus(pid);
  // The command's name is in parentheses and may hold anything, so reading starts behind the last one.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state = "", parent, group, session] = fields;
  if (text === "" || state === "Z" || state === "X") return undefined;
  return {
    pid: Number(pid),
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    started: Number(fields[19]),
  };
}

/** The living processes with a mark that begins so; none where there is no /proc. */
export function findMarkedProcesses(mark: string): readonly number[] {
  if (process.platform !== "linux") return [];
  try {
    const wanted = `${treeVariable}=${mark}`;
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
      .filter((name) => readEnvironment(name).some((variable) => variable.startsWith(wanted)))
      .map(Number);
  } catch {
    // Without descriptors nothing can be seen.
    return [];
  }
}

/** The variables of a process of ours as it was started with; of others, and of zombies, they cannot be read. */
export function readEnvironment(pid: number | string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
  } catch {
    return [];
  }
}

/** All living processes; throws where they cannot be listed. */
export function readProcesses(): readonly ProcessStatus[] {
  return readdirSync("/proc").flatMap((name) => {
    const status = /^\d+$/.test(name) ? readProcessStatus(name) : undefined;
    return status === undefined ? [] : [status];
  });
}

function readStatus(pid: number | string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch (error) {
    if (isResourceLimit(error)) throw error;
    return "";
  }
}
