import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import type { SpawnedProcess, SpawnOptions } from "@anthropic-ai/claude-agent-sdk";
import type { CliHost, CliOutput } from "../../src/apps/cli/cli-host.ts";
import { readAll, readLines } from "../../src/apps/cli/create-real-host.ts";
import { interruptedBy } from "../../src/apps/cli/end-signal.ts";
import { main } from "../../src/apps/cli/main.ts";
import { version } from "../../src/foundation/version.ts";
import type { Finished, Place } from "../scenarios/run-command.ts";

interface InsideOptions {
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: PassThrough;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** The command in this process: everything but the process itself is real. */
function start(arguments_: readonly string[], options: InsideOptions) {
  const { stdin, environment } = options;
  const interrupts = new Set<Parameters<CliHost["onInterrupt"]>[0]>();
  const output = (write: (text: string) => void): CliOutput => ({
    write: (text) => write(text),
    isTerminal: false,
    isColourAllowed: false,
  });
  const code = main(arguments_, {
    stdout: output(options.out),
    stderr: output(options.err),
    stdin: {
      isTerminal: false,
      readAll: (given) => readAll(stdin, given),
      lines: ({ signal }) => readLines(stdin, signal),
    },
    onInterrupt(listener) {
      interrupts.add(listener);
      return () => interrupts.delete(listener);
    },
    canAsk: false,
    ask: () => Promise.reject(new Error("No one is asked here.")),
    endQuestions: () => undefined,
    environment,
    cwd: options.cwd,
    home: environment["HOME"] ?? "",
    platform: process.platform,
    nodeVersion: process.versions.node,
    version: () => version,
  });
  return {
    code,
    kill() {
      for (const listener of interrupts) listener(interruptedBy("SIGTERM"));
    },
  };
}

/** The command with both its pipes, for clients of a protocol. */
export function openInside(
  { cwd, home }: Pick<Place, "cwd" | "home">,
  arguments_: readonly string[],
  environment: Readonly<Record<string, string>>,
) {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  let errors = "";
  const running = start(arguments_, {
    cwd,
    environment: { HOME: home, PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", ...environment },
    stdin,
    out: (text) => void stdout.write(text),
    err: (text) => {
      errors += text;
    },
  });
  return { stdin, stdout, code: running.code, errors: () => errors };
}

/** What the SDK starts in the place of a process; most programs need no process of their own. */
export function spawnInside(
  { args, cwd, env, signal }: SpawnOptions,
  err: (text: string) => void,
): SpawnedProcess {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const events = new EventEmitter();
  const state: { exitCode: number | null; killed: boolean } = { exitCode: null, killed: false };
  // The first argument is the file that a process would be started with.
  const words = args.slice(args.findIndex((word) => word.endsWith("retinue.js")) + 1);
  const out = (text: string): void => void stdout.write(text);
  const running = start(words, { cwd: cwd ?? "", environment: env, stdin, out, err });
  const kill = (): boolean => {
    state.killed = true;
    running.kill();
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

/** A shell line in this process. */
export async function runInside(
  { cwd, home }: Pick<Place, "cwd" | "home">,
  arguments_: readonly string[],
  {
    environment = {},
    input = "",
  }: { readonly environment?: Record<string, string>; readonly input?: string } = {},
): Promise<Finished> {
  const written = { out: "", err: "" };
  const stdin = new PassThrough();
  stdin.end(input);
  const { code } = start(arguments_, {
    cwd,
    environment: { HOME: home, PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", ...environment },
    stdin,
    out: (text) => {
      written.out += text;
    },
    err: (text) => {
      written.err += text;
    },
  });
  return { code: await code, ...written };
}
