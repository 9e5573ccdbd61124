import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import type { Interface } from "node:readline";
import { isatty, type WriteStream } from "node:tty";
import { RetinueError } from "../../foundation/retinue-error.ts";
import type { CliHost, CliInput, CliOutput } from "./cli-host.ts";
import { type EndSignal, endSignals, interruptedBy } from "./interruption.ts";
import { allowsColour } from "./views/colour.ts";
import { terminalText } from "./views/terminal-output.ts";

/** For the last of the output to be read. */
const leaveMs = 1_000;

/** The process as it is. */
export function createRealHost(): CliHost {
  const environment = process.env;
  return {
    stdout: outputOf(process.stdout, environment),
    stderr: outputOf(process.stderr, environment),
    stdin: createInput(),
    onInterrupt,
    leaveSoon: () => void setTimeout(() => process.exit(), leaveMs).unref(),
    canAsk: isatty(0) && process.stdout.isTTY === true,
    ...createQuestions(allowsColour(process.stdout.isTTY === true, environment)),
    environment,
    cwd: process.cwd(),
    home: environment["HOME"] || homedir(),
    platform: process.platform,
    nodeVersion: process.versions.node,
    version: readVersion,
  };
}

/** A closed pipe, or a terminal that is gone. */
const readerGone: ReadonlySet<string | undefined> = new Set(["EPIPE", "EIO"]);

/** A reader that went away, as in `retinue agents | head -1`, is no error: the rest is written to nobody. */
function outputOf(stream: WriteStream, environment: CliHost["environment"]): CliOutput {
  const closing = new AbortController();
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (!readerGone.has(error.code)) throw error;
    closing.abort(new RetinueError("reader-gone", "Nobody reads the output any more."));
  });
  const isTerminal = stream.isTTY === true;
  const columns = isTerminal ? stream.columns : Number(environment["COLUMNS"]);
  const isColourAllowed = allowsColour(isTerminal, environment);
  return {
    write(text, { over = 0 } = {}) {
      if (closing.signal.aborted) return;
      if (!isTerminal) return void stream.write(text);
      const erase = over > 0 ? `\u001b[${over}A\u001b[0J` : "";
      stream.write(`${erase}${terminalText(text, { colours: isColourAllowed })}`);
    },
    isTerminal,
    isColourAllowed,
    closed: closing.signal,
    ...(columns > 0 ? { columns } : {}),
    ...(isTerminal && stream.rows > 0 ? { rows: stream.rows } : {}),
  };
}

/** A terminal signals everybody in it, and a parent may pass the same signal on: what comes this soon is one wish. */
const sameWishMs = 300;

/**
 * Ctrl+C, a polite request to end and a closed terminal are the same wish. Whoever repeats it does not want to wait; a terminal
 * that closes repeats itself and hurries nobody.
 */
function onInterrupt(listener: (reason: RetinueError) => void): () => void {
  let since: number | undefined;
  const handle = (signal: EndSignal): void => {
    const now = performance.now();
    if (since === undefined) {
      since = now;
      listener(interruptedBy(signal));
    } else if (signal !== "SIGHUP" && now - since > sameWishMs) process.exit(endSignals[signal]);
  };
  const handlers = endSignalNames.map((signal) => ({ signal, handler: () => handle(signal) }));
  for (const { signal, handler } of handlers) process.on(signal, handler);
  return () => {
    for (const { signal, handler } of handlers) process.removeListener(signal, handler);
  };
}

const endSignalNames = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

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
function createQuestions(colours: boolean): Pick<CliHost, "ask" | "endQuestions"> {
  const typedAhead: string[] = [];
  let lines: Interface | undefined;
  let isLeft = false;
  let settle: ((answer: string | undefined) => void) | undefined;
  const open = async (): Promise<Interface> => {
    const { createInterface } = await import("node:readline");
    const opened = createInterface({ input: process.stdin, output: process.stdout });
    opened.on("SIGINT", () => opened.close());
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
      lines.setPrompt(terminalText(question, { colours }));
      if (!isLeft) lines.prompt();
      const answer = typedAhead.shift() ?? (isLeft ? undefined : await nextLine());
      if (answer === undefined) throw new RetinueError("interrupted", "You left before the last question.");
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
