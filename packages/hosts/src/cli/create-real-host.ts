import type { Interface } from "node:readline";
import type { Readable } from "node:stream";
import { isatty, type WriteStream } from "node:tty";
import { errorCode, fileError } from "@retinue/base/foundation/file-error.ts";
import { findHome, withHome } from "@retinue/base/foundation/find-home.ts";
import { findWorkingFolder } from "@retinue/base/foundation/find-working-folder.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { streamLines } from "@retinue/base/foundation/stream-lines.ts";
import { version } from "@retinue/base/foundation/version.ts";
import type { CliHost, CliInput, CliOutput } from "../shared/cli-host.ts";
import { type EndSignal, endSignals, interruptedBy } from "../shared/end-signal.ts";
import { misuse } from "../shared/misuse.ts";
import { terminalText } from "../shared/terminal-text.ts";

/** For the last of the output to be read. */
const leaveMs = 1_000;

/** The process as it is. */
export function createRealHost(): CliHost {
  const home = findHome(process.env);
  const environment = withHome(process.env, home);
  const outputs = createRealOutputs();
  return {
    ...outputs,
    stdin: createInput(),
    streams: () => ({ input: process.stdin, output: process.stdout }),
    onInterrupt,
    leaveSoon: () => void setTimeout(() => process.exit(), leaveMs).unref(),
    canAsk: isatty(0) && process.stdout.isTTY === true && !isContinuousIntegration(environment),
    ...createQuestions(outputs.stdout.isColourAllowed),
    environment,
    cwd: findWorkingFolder(),
    home,
    platform: process.platform,
    nodeVersion: process.versions.node,
    version,
  };
}

/** Builds have terminals too, but no person in front of them. */
function isContinuousIntegration({ CI: value = "" }: CliHost["environment"]): boolean {
  return value !== "" && value !== "0" && value !== "false";
}

/** The part of it that is there in any case. */
export function createRealOutputs(): Pick<CliHost, "stdout" | "stderr"> {
  return {
    stdout: outputOf(process.stdout, process.env),
    stderr: outputOf(process.stderr, process.env),
  };
}

/** A closed pipe, or a terminal that is gone. */
const readerGone: ReadonlySet<string | undefined> = new Set(["EPIPE", "EIO"]);

/**
 * A reader that went away, as in `retinue agents | head -1`, is no error: the rest is dropped. Everything else,
 * such as a full disk, ends the work and is reported at its end.
 */
export function outputOf(stream: WriteStream, environment: CliHost["environment"]): CliOutput {
  const closing = new AbortController();
  const fail = (error: unknown): void => {
    const name = stream === process.stdout ? "stdout" : "stderr";
    closing.abort(
      readerGone.has(errorCode(error))
        ? new RetinueError("reader-gone", "The output is no longer being read.")
        : fileError("write to", name, error),
    );
  };
  stream.on("error", fail);
  const isTerminal = stream.isTTY === true;
  const columns = isTerminal ? stream.columns : Number(environment["COLUMNS"]);
  const isColourAllowed = allowsColour(isTerminal, environment);
  return {
    write(text, { over = 0 } = {}) {
      if (closing.signal.aborted) return;
      const erase = over > 0 ? `\u001b[${over}A\u001b[0J` : "";
      try {
        stream.write(isTerminal ? `${erase}${terminalText(text, { colours: isColourAllowed })}` : text);
      } catch (error) {
        fail(error);
      }
    },
    isTerminal,
    isColourAllowed,
    closed: closing.signal,
    ...(columns > 0 ? { columns } : {}),
    ...(isTerminal && stream.rows > 0 ? { rows: stream.rows } : {}),
  };
}

/** FORCE_COLOR decides, then NO_COLOR, then whether a terminal that knows colours is there. */
export function allowsColour(
  isTerminal: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  const { FORCE_COLOR: force, NO_COLOR: none, TERM: terminal } = environment;
  if (force !== undefined && force !== "") return force !== "0" && force !== "false";
  if (none !== undefined && none !== "") return false;
  return isTerminal && terminal !== "dumb";
}

/** A terminal signals every process in it, and a parent may pass the same signal on: what comes this soon is one request. */
const repeatWindowMs = 300;

/**
 * Ctrl+C, a polite request to end and a closed terminal are the same request. A person who repeats it does not want to wait; a terminal
 * that closes repeats itself and hurries nothing.
 */
function onInterrupt(listener: (reason: RetinueError) => void): () => void {
  let since: number | undefined;
  const handle = (signal: EndSignal): void => {
    const now = performance.now();
    if (since === undefined) {
      since = now;
      listener(interruptedBy(signal));
    } else if (signal !== "SIGHUP" && now - since > repeatWindowMs) process.exit(endSignals[signal]);
  };
  const handlers = endSignalNames.map((signal) => ({ signal, handler: () => handle(signal) }));
  for (const { signal, handler } of handlers) process.on(signal, handler);
  return () => {
    for (const { signal, handler } of handlers) process.removeListener(signal, handler);
  };
}

const endSignalNames = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

function createInput(): CliInput {
  return {
    // Touching `process.stdin` opens it, which only readers of it need.
    isTerminal: isatty(0),
    async readAll({ limit, timeoutMs }) {
      return readAll(process.stdin, { limit, timeoutMs });
    },
    async *lines({ signal }) {
      yield* streamLines(process.stdin, signal);
    },
  };
}

/** One reader for all questions, so that lines typed ahead are answers to the questions that follow. */
function createQuestions(colours: boolean): Pick<CliHost, "ask" | "endQuestions"> {
  const typedAhead: string[] = [];
  let lines: Interface | undefined;
  let isLeft = false;
  let settle: ((answer: string | undefined) => void) | undefined;
  let isHidden = false;
  const open = async (): Promise<Interface> => {
    const [{ createInterface }, { Writable }] = await Promise.all([
      import("node:readline"),
      import("node:stream"),
    ]);
    const output = new Writable({
      write(chunk, encoding, done) {
        if (isHidden) done();
        else process.stdout.write(chunk, encoding, done);
      },
    });
    const terminal = process.stdout.isTTY === true;
    const opened = createInterface({ input: process.stdin, output, terminal });
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
    async ask(question, { isHidden: hides = false } = {}) {
      lines ??= await open();
      lines.setPrompt(terminalText(question, { colours }));
      if (!isLeft) lines.prompt();
      isHidden = hides;
      const answer = typedAhead.shift() ?? (isLeft ? undefined : await nextLine());
      isHidden = false;
      if (hides) process.stdout.write("\n");
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

/** Reads a stream to its end. A pipe that is open but silent for `timeoutMs` counts as empty; after that it is let go. */
export async function readAll(
  stream: Readable,
  { limit, timeoutMs }: { readonly limit: number; readonly timeoutMs?: number },
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      if (timeoutMs !== undefined) timer = setTimeout(resolve, timeoutMs);
      stream.on("data", (chunk: Buffer) => {
        clearTimeout(timer);
        size += chunk.length;
        if (size > limit)
          reject(
            misuse(`The piped input is larger than ${limit} bytes.`, "Name a file in the prompt instead."),
          );
        else chunks.push(chunk);
      });
      stream.on("end", resolve);
      stream.on("error", reject);
    });
  } finally {
    clearTimeout(timer);
    stream.destroy();
  }
  return Buffer.concat(chunks).toString("utf8");
}
