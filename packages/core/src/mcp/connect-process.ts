// @io

import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { Transport } from "@modelcontextprotocol/client";
import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import { isRecord, type JsonRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { followProcessTree, type ProcessTree } from "@retinue/base/foundation/process-tree.ts";
import {
  endProcessGroup,
  findGroupMembers,
  groupAnswers,
  groupWatchdog,
  spawnProcess,
  treeVariable,
  type WatchedGroup,
} from "@retinue/base/foundation/spawn-process.ts";
import { cleanTerminalText } from "../tools/terminal-cleaner.ts";
import { within } from "./within.ts";

export interface ServerProcess {
  readonly file: string;
  readonly arguments: readonly string[];
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly graceMs: number;
  /** It is not only its group that ends with it, but everything it has started, and it has this long to end with its input. */
  readonly wholeTree?: { readonly inputGraceMs: number };
}

export interface ProcessTransport extends Transport {
  /** Notes what it has started so far, before some of that is orphaned; of interest where the whole tree is ended. */
  look(): void;
  /** What is known of the process's end and its last words; empty while nothing is. */
  describe(): string;
}

export const maxMessage = 64 * 1024 * 1024;
/** Some servers print a log there; one that does nothing else would keep this process busy for ever. */
const maxGarbage = 16 * 1024 * 1024;
const keptOfStderr = 8_192;
const drainMs = 250;
/** Many servers do not end with their input, and every caller would wait for each of them. */
const maxInputGraceMs = 300;

/**
 * Speaks with a server through its stdin and stdout. It leads a process group of its own, so that closing ends whatever
 * it has started; when this process is killed, the server sees its input end, and is ended if it does not care.
 */
export function connectProcess(request: ServerProcess): ProcessTransport {
  const stderr = createTail(keptOfStderr);
  const exited = Promise.withResolvers<void>();
  let child: ChildProcess | undefined;
  let watched: WatchedGroup | undefined;
  let closing: Promise<void> | undefined;
  let tree: ProcessTree | undefined;

  const output = createOutputReader({
    // The types promise a message; the protocol layer checks what kind it is.
    onMessage: (message) => transport.onmessage?.(message as never),
    onFlaw: () => void transport.close(),
  });

  async function endProcess(): Promise<void> {
    tree?.look();
    child?.stdin?.end();
    if (child?.pid === undefined) return;
    const { graceMs, wholeTree } = request;
    const inputGraceMs = wholeTree?.inputGraceMs ?? Math.min(graceMs, maxInputGraceMs);
    await endServer(child, child.pid, { exited: exited.promise, graceMs, inputGraceMs, tree });
    watched?.release();
  }

  async function end(): Promise<void> {
    await endProcess();
    transport.onclose?.();
  }

  const transport: ProcessTransport = {
    async start() {
      const mark = request.wholeTree === undefined ? undefined : groupWatchdog.markRoot() + randomUUID();
      const started = await spawnProcess(request.file, request.arguments, {
        cwd: request.directory,
        env: { ...request.environment, ...(mark === undefined ? {} : { [treeVariable]: mark }) },
        detached: process.platform !== "win32",
        windowsHide: true,
        stdio: ["pipe", "pipe", "pipe"],
      });
      child = started;
      if (started.pid !== undefined) watched = groupWatchdog.watch(started.pid);
      if (started.pid !== undefined && mark !== undefined) tree = followProcessTree(started.pid, mark);
      listen(started, { stdout: output.push, stderr: stderr.push });
      started.once("exit", () => {
        exited.resolve();
        void transport.close();
      });
      if (closing === undefined) return;
      // It was closed meanwhile, when there was no process to end yet.
      await endProcess();
      throw new Error("the connection was closed while the server was being started");
    },
    send(message) {
      const stdin = child?.stdin;
      if (stdin?.writable !== true || closing !== undefined) {
        return Promise.reject(new Error("the server's input is closed"));
      }
      // Every request has a time limit, so a server that does not read delays nothing here.
      stdin.write(`${JSON.stringify(message)}\n`);
      return Promise.resolve();
    },
    close() {
      closing ??= end();
      return closing;
    },
    look: () => tree?.look(),
    describe: () => describeEnd({ child, ...output.found(), stderr: stderr.text() }),
  };
  return transport;
}

interface OutputReader {
  readonly push: (chunk: Buffer) => void;
  /** What was wrong with the output, and the beginning of what was no message. */
  found(): { readonly flaw: string | undefined; readonly garbage: string | undefined };
}

/** Reads messages from what a server prints; output that cannot be read any longer is a flaw, reported once. */
function createOutputReader(options: {
  readonly onMessage: (message: JsonRecord) => void;
  readonly onFlaw: () => void;
}): OutputReader {
  let garbage: string | undefined;
  let garbageLength = 0;
  let flaw: string | undefined;
  const fail = (reason: string): void => {
    flaw ??= reason;
    options.onFlaw();
  };
  const reader = createLineReader(maxMessage, (line) => {
    const message = readMessage(line);
    if (message !== undefined) options.onMessage(message);
    else if (line.trim() !== "") {
      garbage ??= line.slice(0, 200);
      garbageLength += line.length;
      if (garbageLength > maxGarbage) fail(`wrote more than ${maxGarbage} characters that are not messages`);
    }
  });
  return {
    push(chunk) {
      if (flaw === undefined && !reader.push(chunk)) fail(`sent a message of more than ${maxMessage} bytes`);
    },
    found: () => ({ flaw, garbage }),
  };
}

function listen(
  { stdin, stdout, stderr }: ChildProcess,
  readers: { readonly stdout: (chunk: Buffer) => void; readonly stderr: (chunk: Buffer) => void },
): void {
  stdout?.on("data", readers.stdout);
  stderr?.on("data", readers.stderr);
  for (const stream of [stdin, stdout, stderr]) stream?.on("error", () => undefined);
}

interface Ending {
  readonly exited: Promise<void>;
  readonly graceMs: number;
  readonly inputGraceMs: number;
  readonly tree: ProcessTree | undefined;
}

/** Its input has ended; what is still running after its time of grace is ended, with everything it has started. */
async function endServer(
  child: ChildProcess,
  pid: number,
  { exited, graceMs, inputGraceMs, tree }: Ending,
): Promise<void> {
  await within(exited, inputGraceMs);
  if (!isRunning(child)) await within(closed(child), drainMs);
  if (tree !== undefined) await tree.end({ graceMs });
  else if (groupAnswers(pid) && findGroupMembers(pid).length > 0) await endProcessGroup(pid, { graceMs });
  await within(exited, graceMs);
  for (const stream of [child.stdout, child.stderr]) stream?.destroy();
}

function readMessage(line: string): JsonRecord | undefined {
  if (!/^\s*\{/.test(line)) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) && value["jsonrpc"] === "2.0" ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

/** Resolves when its output has been read to the end; a process outside the group may hold it open for ever. */
function closed(child: ChildProcess): Promise<void> {
  const { stdout } = child;
  if (stdout === null || stdout.closed) return Promise.resolve();
  return new Promise((resolve) => stdout.once("close", () => resolve()));
}

interface EndedProcess {
  readonly child: ChildProcess | undefined;
  readonly flaw: string | undefined;
  readonly garbage: string | undefined;
  readonly stderr: string;
}

function describeEnd({ child, flaw, garbage, stderr }: EndedProcess): string {
  const lines = cleanTerminalText(stderr).split("\n");
  const words = lines
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .slice(-3);
  const how = flaw ?? describeExit(child);
  const output = [
    how === undefined ? "" : `it ${how}`,
    words.length === 0 ? "" : `its last words on stderr: ${quote(words.join(" ⏎ "), 400)}`,
    garbage === undefined ? "" : `it wrote something other than messages to stdout: ${quote(garbage)}`,
  ].filter((part) => part !== "");
  // Models read it as a part of errors.
  return escapeControlTags(output.join("; "));
}

function describeExit(child: ChildProcess | undefined): string | undefined {
  // A process that was never there "exits" with the number of the system's error.
  if (child?.pid === undefined || isRunning(child)) return undefined;
  return child.exitCode === null
    ? `was ended by ${String(child.signalCode)}`
    : `ended with exit code ${child.exitCode}`;
}

interface LineReader {
  /** False once a line has become longer than the limit; nothing more is read then. */
  push(chunk: Buffer): boolean;
}

/** Cuts bytes into lines. Each byte is examined once, however small the pieces and long the lines are. */
export function createLineReader(limit: number, onLine: (line: string) => void): LineReader {
  let parts: Buffer[] = [];
  let size = 0;
  let isOver = false;
  return {
    push(chunk) {
      let rest = chunk;
      for (let end = rest.indexOf(0x0a); end !== -1 && !isOver; end = rest.indexOf(0x0a)) {
        parts.push(rest.subarray(0, end));
        const line = Buffer.concat(parts).toString("utf8");
        parts = [];
        size = 0;
        rest = rest.subarray(end + 1);
        onLine(line.endsWith("\r") ? line.slice(0, -1) : line);
      }
      parts.push(rest);
      size += rest.length;
      isOver ||= size > limit;
      if (isOver) parts = [];
      return !isOver;
    },
  };
}

/** Keeps the end of what is written. */
export function createTail(limit: number): { push(chunk: Buffer): void; text(): string } {
  let kept = Buffer.alloc(0);
  return {
    push(chunk) {
      kept = Buffer.concat([kept, chunk.subarray(-limit)]).subarray(-limit);
    },
    text: () => kept.toString("utf8"),
  };
}
