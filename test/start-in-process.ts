import { PassThrough, Writable } from "node:stream";
import { findHome, withHome } from "@retinue/base/foundation/find-home.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { streamLines } from "@retinue/base/foundation/stream-lines.ts";
import { version } from "@retinue/base/foundation/version.ts";
import { allowsColour, readAll } from "@retinue/hosts/cli/create-real-host.ts";
import { main } from "@retinue/hosts/cli/main.ts";
import type { CliHost, CliOutput } from "@retinue/hosts/shared/cli-host.ts";
import { type EndSignal, interruptedBy } from "@retinue/hosts/shared/end-signal.ts";

export interface InProcessStart {
  readonly cwd: string;
  /** Added to a home, the path and no local models. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** What differs from a command in a pipe. */
  readonly host?: Partial<CliHost>;
}

export interface InProcessCommand {
  /** What the command reads; it ends when this is ended. */
  readonly stdin: PassThrough;
  readonly code: Promise<number>;
  /** A signal to this command alone. */
  kill(signal: EndSignal): void;
}

/** The command in this process, with pipes: everything but the process itself is real, and it takes a tenth of the time. */
export function startInProcess(arguments_: readonly string[], options: InProcessStart): InProcessCommand {
  const { cwd, out, err } = options;
  const environment: InProcessStart["environment"] = {
    PATH: process.env["PATH"],
    RETINUE_LOCAL_MODELS: "0",
    ...options.environment,
  };
  const columns = Number(environment["COLUMNS"]);
  const stdin = new PassThrough();
  const listeners = new Set<Parameters<CliHost["onInterrupt"]>[0]>();
  const output = (write: (text: string) => void): CliOutput => ({
    write: (text) => write(text),
    isTerminal: false,
    isColourAllowed: allowsColour(false, environment),
    ...(columns > 0 ? { columns } : {}),
  });
  const code = main(arguments_, {
    stdout: output(out),
    stderr: output(err),
    stdin: {
      isTerminal: false,
      readAll: (given) => readAll(stdin, given),
      lines: ({ signal }) => streamLines(stdin, signal),
    },
    streams: () => ({ input: stdin, output: writableTo(out) }),
    onInterrupt(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    canAsk: false,
    ask: () => Promise.reject(new RetinueError("interrupted", "No one is there.")),
    endQuestions: () => undefined,
    environment: withHome(environment, findHome(environment)),
    cwd,
    home: findHome(environment),
    platform: process.platform,
    nodeVersion: process.versions.node,
    version,
    ...options.host,
  });
  return {
    stdin,
    code,
    kill(signal) {
      for (const listener of listeners) listener(interruptedBy(signal));
    },
  };
}

function writableTo(write: (text: string) => void): Writable {
  return new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      write(chunk.toString());
      done();
    },
  });
}
