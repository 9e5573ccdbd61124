import { readFileSync } from "node:fs";
import type { Interface } from "node:readline";
import { isatty, type WriteStream } from "node:tty";
import { Fault } from "../../foundation/fault.ts";
import { findWorkingFolder } from "../../foundation/find-working-folder.ts";
import { findHome, withHome } from "../../settings/find-home.ts";
import { errorCode, fileFault } from "../../storage/file-fault.ts";
import type { CliHost, CliInput, CliOutput } from "./cli-host.ts";
import { allowsColour } from "./views/colour.ts";

/** For the last of the output to be read. */
const leaveMs = 1_000;

/** The process as it is. */
export function createRealHost(): CliHost {
  const home = findHome(process.env);
  const environment = withHome(process.env, home);
  return {
    ...createRealOutputs(),
    stdin: createInput(),
    onInterrupt,
    leaveSoon: () => void setTimeout(() => process.exit(), leaveMs).unref(),
    canAsk: isatty(0) && process.stdout.isTTY === true,
    ...createQuestions(),
    environment,
    cwd: findWorkingFolder(),
    home,
    platform: process.platform,
    nodeVersion: process.versions.node,
    version: readVersion,
  };
}

/** The part of it that is there in any case. */
export function createRealOutputs(): Pick<CliHost, "stdout" | "stderr"> {
  return {
    stdout: outputOf(process.stdout, process.env),
    stderr: outputOf(process.stderr, process.env),
  };
}

/**
 * A reader that went away, as in `retinue agents | head -1`, is no error: the rest is written to nobody. Everything else,
 * such as a full disk, ends the work and is reported at its end.
 */
function outputOf(stream: WriteStream, environment: CliHost["environment"]): CliOutput {
  const closing = new AbortController();
  const fail = (error: unknown): void => {
    const isGone = errorCode(error) === "EPIPE";
    const name = stream === process.stdout ? "stdout" : "stderr";
    closing.abort(
      isGone
        ? new Fault("reader-gone", "Nobody reads the output any more.")
        : fileFault("write to", name, error),
    );
  };
  stream.on("error", fail);
  const isTerminal = stream.isTTY === true;
  const columns = isTerminal ? stream.columns : Number(environment["COLUMNS"]);
  return {
    write(text) {
      if (closing.signal.aborted) return;
      try {
        stream.write(text);
      } catch (error) {
        fail(error);
      }
    },
    isTerminal,
    isColourAllowed: allowsColour(isTerminal, environment),
    closed: closing.signal,
    ...(columns > 0 ? { columns } : {}),
    ...(isTerminal && stream.rows > 0 ? { rows: stream.rows } : {}),
  };
}

/** Ctrl+C and a polite request to end are the same wish; whoever repeats it does not want to wait. */
function onInterrupt(listener: () => void): () => void {
  const handle = (signal: NodeJS.Signals): void => {
    process.once(signal, () => process.exit(130));
    listener();
  };
  process.once("SIGINT", handle);
  process.once("SIGTERM", handle);
  return () => {
    process.removeListener("SIGINT", handle);
    process.removeListener("SIGTERM", handle);
  };
}

function createInput(): CliInput {
  return {
    // Touching `process.stdin` opens it, which only those who read it need.
    isTerminal: isatty(0),
    async readAll({ limit, patienceMs }) {
      const { readAll } = await import("./read-stdin.ts");
      return readAll(process.stdin, { limit, ...(patienceMs === undefined ? {} : { patienceMs }) });
    },
    async *lines({ signal }) {
      const { readLines } = await import("./read-stdin.ts");
      yield* readLines(process.stdin, signal);
    },
  };
}

/** One reader for all questions, so that lines typed ahead are answers to the questions that follow. */
function createQuestions(): Pick<CliHost, "ask" | "endQuestions"> {
  const typedAhead: string[] = [];
  let lines: Interface | undefined;
  let isLeft = false;
  let settle: ((answer: string | undefined) => void) | undefined;
  const open = async (): Promise<Interface> => {
    const { createInterface } = await import("node:readline");
    const opened = createInterface({ input: process.stdin, output: process.stdout });
    opened.on("SIGINT", () => opened.close());
    process.stdin.on("error", () => opened.close());
    opened.on("line", (line) => {
      if (settle === undefined) typedAhead.push(line);
      else settle(line);
    });
    opened.on("close", () => {
      isLeft = true;
      settle?.(undefined);
    });
    return opened;
  };
  return {
    async ask(question) {
      lines ??= await open();
      lines.setPrompt(question);
      if (!isLeft) lines.prompt();
      const answer = typedAhead.shift() ?? (isLeft ? undefined : await nextLine());
      if (answer === undefined) throw new Fault("interrupted", "You left before the last question.");
      return answer;
    },
    endQuestions: () => lines?.close(),
  };

  function nextLine(): Promise<string | undefined> {
    return new Promise((resolve) => {
      settle = (answer) => {
        settle = undefined;
        resolve(answer);
      };
    });
  }
}

/** The package file stands two folders up in the built program and three in the source. */
function readVersion(): string {
  for (const path of ["../../package.json", "../../../package.json"]) {
    try {
      const text = readFileSync(new URL(path, import.meta.url), "utf8");
      const found: unknown = JSON.parse(text);
      if (typeof found === "object" && found !== null && "name" in found && "version" in found) {
        if (found.name === "retinue") return String(found.version);
      }
    } catch {
      // The other place has it.
    }
  }
  return "unknown";
}
