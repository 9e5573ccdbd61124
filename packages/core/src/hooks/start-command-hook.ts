// @io
import { existsSync } from "node:fs";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { endMarkedProcesses } from "@retinue/base/foundation/process-tree.ts";
import { type ProcessEnding, startProcess } from "@retinue/base/foundation/start-process.ts";
import type { FiredEvent } from "@retinue/config/hooks/hook-input.ts";
import type { HookHandler } from "@retinue/config/hooks/hook-rule.ts";
import { type HookReading, readCommandOutput } from "./hook-answer.ts";

export interface CommandCall {
  readonly event: FiredEvent;
  readonly handler: HookHandler;
  /** What the command reads. */
  readonly input: string;
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Unlike that of any other run of a hook. */
  readonly mark: string;
  readonly limitMs: number;
  readonly graceMs: number;
  readonly signal: AbortSignal;
}

export interface StartedCommand {
  /** What it said at its end. Never rejects. */
  readonly reading: Promise<HookReading>;
  /** Resolves as soon as it says that it continues by itself, or has ended. */
  readonly released: Promise<void>;
  readonly exitCode: () => number | undefined;
}

const keptBytes = 1_000_000;

/** Starts a command at the head of a process group; whatever it starts is ended with it. */
export function startCommandHook(call: CommandCall): StartedCommand {
  const released = Promise.withResolvers<void>();
  const output = createOutput(() => released.resolve());
  let exitCode: number | undefined;
  const reading = follow(call, output).then((result) => {
    exitCode = result.exitCode;
    return result.reading;
  });
  void reading.finally(() => released.resolve());
  return { reading, released: released.promise, exitCode: () => exitCode };
}

interface Followed {
  readonly reading: HookReading;
  readonly exitCode?: number;
}

async function follow(call: CommandCall, output: Output): Promise<Followed> {
  try {
    const running = await startProcess({
      ...commandLine(call),
      directory: call.directory,
      environment: call.environment,
      mark: call.mark,
      input: call.input,
      signal: call.signal,
      timeLimitMs: call.limitMs,
      graceMs: call.graceMs,
      onOutput: output.take,
    });
    const ending = await running.ended;
    // A daemon that does not let go of the output would keep it from ever being read to its end.
    if (ending.isHeld === true) await endMarkedProcesses(call.mark, { graceMs: 0 });
    const { stdout, stderr } = output.read();
    const code = ending.exitCode === undefined ? {} : { exitCode: ending.exitCode };
    const reading = { ...readEnding(call, ending, output), printed: { stdout, stderr, ...code } };
    return { reading, ...code };
  } catch (error) {
    return {
      reading: failed(`it could not be run: ${error instanceof Error ? error.message : String(error)}`),
    };
  }
}

function readEnding(call: CommandCall, ending: ProcessEnding, output: Output): HookReading {
  if (ending.notStarted !== undefined) return failed(`it could not be started: ${ending.notStarted}`);
  if (ending.timedOut) return failed(`it did not end within ${call.limitMs / 1000} s and was ended`);
  if (ending.aborted || ending.stopped) return failed("the run was stopped while it ran");
  if (ending.exitCode === undefined) return failed(`it was killed by ${ending.signal ?? "a signal"}`);
  return readCommandOutput(call.event, { exitCode: ending.exitCode, ...output.read() });
}

/** With `args` nothing is left to a shell; then the variables people write for plugins are filled in here. */
function commandLine({ handler, environment }: CommandCall): { file: string; arguments: readonly string[] } {
  const command = handler.command ?? "";
  if (handler.args !== undefined) {
    const [file = "", ...rest] = [command, ...handler.args].map((text) => fillIn(text, environment));
    return { file, arguments: rest };
  }
  if (handler.shell === "powershell" || (process.platform === "win32" && handler.shell === undefined)) {
    const file = process.platform === "win32" ? "powershell.exe" : "pwsh";
    return { file, arguments: ["-NoProfile", "-NonInteractive", "-Command", command] };
  }
  const bash = bashes.find((file) => existsSync(file));
  if (bash === undefined) return { file: "/bin/sh", arguments: ["-c", command] };
  // A bash whose input is a socket, as here, takes itself for a remote shell and would read the person's start files.
  return { file: bash, arguments: ["--norc", "--noprofile", "-c", command] };
}

const bashes = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"];

function fillIn(text: string, environment: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{(CLAUDE_\w+)\}/g, (whole, name: string) =>
    Object.hasOwn(environment, name) ? (environment[name] ?? "") : whole,
  );
}

interface Output {
  readonly take: (chunk: Buffer, stream: "stdout" | "stderr") => void;
  readonly read: () => { readonly stdout: string; readonly stderr: string; readonly truncated: boolean };
}

/** Keeps the beginning of both streams, and watches the first line for the word that the command continues by itself. */
function createOutput(onRelease: () => void): Output {
  const kept = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const room = { stdout: keptBytes, stderr: keptBytes };
  const isWhole = { stdout: true, stderr: true };
  let isWatching = true;
  let isReleased = false;
  const text = (stream: "stdout" | "stderr"): string => Buffer.concat(kept[stream]).toString("utf8");
  return {
    take(chunk, stream) {
      const part = chunk.subarray(0, room[stream]);
      room[stream] -= part.length;
      if (part.length < chunk.length) isWhole[stream] = false;
      if (part.length > 0) kept[stream].push(part);
      if (stream === "stderr" || !isWatching) return;
      const line = firstLine(text("stdout"));
      if (line === undefined) return;
      isWatching = false;
      isReleased = isAsync(line);
      if (isReleased) onRelease();
    },
    read: () => ({
      // The word that it continues by itself is no part of its answer.
      stdout: isReleased ? text("stdout").replace(/^.*\n?/, "") : text("stdout"),
      stderr: text("stderr"),
      truncated: !isWhole.stdout,
    }),
  };
}

/** Undefined as long as more may come that belongs to it. */
function firstLine(text: string): string | undefined {
  const end = text.indexOf("\n");
  if (end !== -1) return text.slice(0, end);
  return text.length > 4_096 || /\}\s*$/.test(text) ? text : undefined;
}

function isAsync(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) && value["async"] === true;
  } catch {
    return false;
  }
}

function failed(reason: string): HookReading {
  return { type: "failed", reason };
}
