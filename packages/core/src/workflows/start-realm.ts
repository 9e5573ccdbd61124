// @io
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { parse } from "node:path";
import type { Duplex } from "node:stream";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { spawnProcess } from "@retinue/base/foundation/spawn-process.ts";
import type { Invocation } from "../tools/sandbox/sandbox.ts";
import type { Wall } from "../tools/sandbox/wall.ts";
import { readScriptMessage } from "./read-script-message.ts";
import { realmProgram } from "./realm-program.ts";
import type { ScriptAnswer, ScriptMessage, ScriptStart } from "./script-message.ts";

/** Where the scripts of one run are carried out: a process of their own, or this one for functions of a program. */
export interface ScriptRealm extends AsyncDisposable {
  begin(scope: number, body: ScriptBody, start: ScriptStart): void;
  answer(scope: number, answer: ScriptAnswer): void;
  /** Nothing more is wanted of this script. */
  end(scope: number): void;
}

/** A realm in a process, with the moment when its first script waits for something or has ended. */
export interface ProcessRealm extends ScriptRealm {
  readonly started: Promise<void>;
}

/** The code of a script as `readWorkflowScript` gives it, or a function of the program. */
export type ScriptBody = string | ((functions: never) => unknown);

export interface RealmEvents {
  readonly message: (scope: number, message: ScriptMessage) => void;
  /** A script did what ends it, or all of them, with the reason. */
  readonly broke: (scope: number | "all", reason: string) => void;
}

/** What one script may take. */
export interface RealmLimits {
  /** Milliseconds of code that runs without waiting. */
  readonly timeMs: number;
  readonly memoryMb: number;
  /** What all scripts of a run may send together, since it stays in this process. */
  readonly sentMb: number;
}

export const realmLimits: RealmLimits = { timeMs: 30_000, memoryMb: 512, sentMb: 256 };

/** A longer line from a script ends it. */
const maxLine = 32 * 1024 * 1024;
/** A process that is this much over its time is ended from outside. */
const graceMs = 5_000;
const lookAtMemoryMs = 250;

export interface RealmOptions {
  readonly limits?: RealmLimits | undefined;
  readonly signal: AbortSignal;
  /** Where the machine has one, whatever gets out of a script is still behind it: without network, files and other processes. */
  readonly wall?: Wall | undefined;
}

/** Starts the process. It has no environment, no files, no programs and nothing of this process but two pipes of JSON. */
export async function startRealm(
  events: RealmEvents,
  { limits = realmLimits, signal, wall }: RealmOptions,
): Promise<ProcessRealm> {
  signal.throwIfAborted();
  // The name of a context cannot be guessed.
  const name = `r${randomBytes(12).toString("hex")}`;
  const child = await spawnBehind(wall, {
    file: process.execPath,
    arguments: [
      "--permission",
      "--disallow-code-generation-from-strings",
      "--no-addons",
      `--max-old-space-size=${limits.memoryMb}`,
      "--no-warnings",
      "--input-type=module",
      "--eval",
      realmProgram(),
    ],
  });
  const started = Promise.withResolvers<void>();
  let isOver = false;
  /** Orders and turns that are not finished. */
  let busy = 0;
  let watch: NodeJS.Timeout | undefined;
  let wasHeavy = false;

  const stop = (): void => {
    isOver = true;
    started.resolve();
    clearTimeout(watch);
    clearInterval(memory);
    signal.removeEventListener("abort", stop);
    child.stdin?.destroy();
    child.kill("SIGKILL");
  };
  const broke = (reason: string): void => {
    if (isOver) return;
    stop();
    events.broke("all", reason);
  };
  const memory = setInterval(() => {
    void memoryOf(child.pid).then((megabytes) => {
      if (megabytes <= limits.memoryMb * 1.5 + 100) return;
      wasHeavy = true;
      broke(tooHeavy(limits));
    });
  }, lookAtMemoryMs);
  memory.unref();

  /** From the first thing it is asked until it has nothing to do, it is watched. */
  function works(more: 1 | -1): void {
    busy = Math.max(0, busy + more);
    clearTimeout(watch);
    if (busy > 0) watch = setTimeout(() => broke(tooLong(limits)), limits.timeMs + graceMs);
  }

  function take(line: string): void {
    if (isOver) return;
    const read = parseLine(line);
    if (read === undefined || read["ready"] === true) return;
    const { scope } = read;
    const message = readScriptMessage(read["message"]);
    if (read["began"] === true) works(1);
    else if (read["rested"] === true) {
      works(-1);
      started.resolve();
    } else if (typeof scope !== "number")
      broke("The process of the script sent something that is not a message.");
    else if (read["broke"] === "time") events.broke(scope, tooLong(limits));
    else if (read["broke"] === "stuck") events.broke(scope, stuck);
    else if (read["broke"] === "error")
      events.broke(scope, `The script could not continue: ${String(read["text"])}.`);
    else if (message === undefined) broke("The script sent something that is not a message of a workflow.");
    else events.message(scope, message);
  }

  child.stdout?.setEncoding("utf8");
  child.stdout?.on("data", createCutter({ limits, take, broke }));
  child.on("exit", (code, killed) => {
    const isMemory =
      wasHeavy || code === 134 || killed === "SIGABRT" || killed === "SIGTRAP" || killed === "SIGILL";
    broke(isMemory ? tooHeavy(limits) : `The process of the script ended (${killed ?? `code ${code}`}).`);
  });
  signal.addEventListener("abort", stop, { once: true });

  function order(what: object): void {
    if (isOver) return;
    works(1);
    child.stdin?.write(`${JSON.stringify({ name, ...what })}\n`);
  }

  return {
    started: started.promise,
    begin(scope, code, start) {
      if (typeof code !== "string")
        throw new RetinueError("invalid-workflow", "A function cannot run in the process of scripts.");
      order({ type: "begin", scope, code, start: JSON.stringify(start), limitMs: limits.timeMs });
    },
    answer: (scope, answer) => order({ type: "answer", scope, answer: JSON.stringify(answer) }),
    end: (scope) => order({ type: "end", scope }),
    async [Symbol.asyncDispose]() {
      if (!isOver) stop();
    },
  };
}

/** A folder of the system, so that nothing of a person is shown for it. */
const walledFolder = "/usr";

async function spawnBehind(wall: Wall | undefined, program: Invocation): Promise<ChildProcess> {
  const start = await wall?.start();
  const places = { directory: walledFolder, workingDirectories: [], home: homedir() };
  const {
    file,
    arguments: words,
    sideInput,
  } = start?.type === "ready" ? await start.wrap(program, places) : program;
  const child = await spawnProcess(file, words, {
    cwd: parse(process.cwd()).root,
    env: realmEnvironment(),
    stdio: ["pipe", "pipe", "ignore", "ignore", sideInput === undefined ? "ignore" : "pipe"],
  });
  if (sideInput !== undefined) (child.stdio[4] as Duplex).resume().end(sideInput);
  return child;
}

/** Cuts what comes into lines, as long as neither one of them nor all together are too long. */
function createCutter({
  limits,
  take,
  broke,
}: {
  readonly limits: RealmLimits;
  readonly take: (line: string) => void;
  readonly broke: (reason: string) => void;
}): (chunk: string) => void {
  let pieces: string[] = [];
  let length = 0;
  let sent = 0;
  return (chunk) => {
    const [first = "", ...more] = chunk.split("\n");
    pieces.push(first);
    length += first.length;
    for (const next of more) {
      take(pieces.join(""));
      pieces = [next];
      length = next.length;
    }
    sent += chunk.length;
    if (length > maxLine) broke(`The script sent a value of more than ${maxLine / 1024 / 1024} MB.`);
    else if (sent > limits.sentMb * 1024 * 1024)
      broke(`The script sent more than ${limits.sentMb} MB of prompts, lines and values.`);
  };
}

function parseLine(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function tooLong({ timeMs }: RealmLimits): string {
  return `The script ran for ${timeMs / 1000} s without waiting for anything, which is the limit.`;
}

const stuck =
  "The script waits for something that can never happen: no agent, workflow or timer of it is pending.";

function tooHeavy({ memoryMb }: RealmLimits): string {
  return `The script used more memory than the ${memoryMb} MB it may have.`;
}

/** The time zone and language would make runs differ between machines, and so would a folder, which stacks of errors name. */
function realmEnvironment(): Readonly<Record<string, string>> {
  return { TZ: "UTC", LANG: "C", ...windowsRoot() };
}

/** Without it, Windows does not start programs. */
function windowsRoot(): Readonly<Record<string, string>> {
  const { SystemRoot: root } = process.env;
  return process.platform === "win32" && root !== undefined ? { SystemRoot: root } : {};
}

/** What a process and those below it hold, also outside the heap that Node limits; 0 where the system does not say. */
async function memoryOf(pid: number | string | undefined): Promise<number> {
  const read = (file: string): Promise<string> => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
  const [own, below] = await Promise.all([read("statm"), read(`task/${pid}/children`)]);
  const pages = Number(own.split(" ")[1] ?? 0);
  const children = await Promise.all((below.match(/\d+/g) ?? []).map(memoryOf));
  return children.reduce((sum, megabytes) => sum + megabytes, (pages * 4096) / 1024 / 1024);
}
