import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import type { SpawnedProcess, SpawnOptions } from "@anthropic-ai/claude-agent-sdk";
import { type Finished, type InProcessOptions, type Place, runInProcess } from "../scenarios/run-command.ts";
import { startInProcess } from "../start-in-process.ts";

/** The command with both its pipes, for clients of a protocol. */
export function openInside(
  { cwd, home }: Pick<Place, "cwd" | "home">,
  arguments_: readonly string[],
  environment: Readonly<Record<string, string>>,
) {
  const stdout = new PassThrough();
  let errors = "";
  const { stdin, code } = startInProcess(arguments_, {
    cwd,
    environment: { HOME: home, ...environment },
    out: (text) => void stdout.write(text),
    err: (text) => {
      errors += text;
    },
  });
  return { stdin, stdout, code, errors: () => errors };
}

/** What the SDK starts in the place of a process; most programs need no process of their own. */
export function spawnInside(
  { args, cwd, env, signal }: SpawnOptions,
  err: (text: string) => void,
): SpawnedProcess {
  const stdout = new PassThrough();
  const events = new EventEmitter();
  const state: { exitCode: number | null; killed: boolean } = { exitCode: null, killed: false };
  // The first argument is the file that a process would be started with.
  const words = args.slice(args.findIndex((word) => word.endsWith("retinue.js")) + 1);
  const out = (text: string): void => void stdout.write(text);
  const running = startInProcess(words, { cwd: cwd ?? "", environment: env, out, err });
  const { stdin } = running;
  const kill = (): boolean => {
    state.killed = true;
    running.kill("SIGTERM");
    return true;
  };
  signal.addEventListener("abort", kill, { once: true });
  void running.code.then((code) => {
    state.exitCode = code;
    stdout.end();
    stdin.destroy();
    setImmediate(() => events.emit("exit", code, null));
  });
  return {
    stdin,
    stdout,
    get killed() {
      return state.killed;
    },
    get exitCode() {
      return state.exitCode;
    },
    kill,
    on: (event: string, listener: (...given: never[]) => void) =>
      void events.on(event, listener as () => void),
    once: (event: string, listener: (...given: never[]) => void) =>
      void events.once(event, listener as () => void),
    off: (event: string, listener: (...given: never[]) => void) =>
      void events.off(event, listener as () => void),
  } as SpawnedProcess;
}

/** A shell line in this process, also outside of a test. */
export function runInside(
  place: Pick<Place, "cwd" | "home">,
  arguments_: readonly string[],
  options: InProcessOptions = {},
): Promise<Finished> {
  return runInProcess(place, arguments_, { ...options, atEnd: () => undefined });
}
