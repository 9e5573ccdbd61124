import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { CliHost } from "../shared/cli-host.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import { createPaint } from "../shared/paint.ts";
import { stripControlCharacters, wrap } from "../shared/strip-control-characters.ts";
import { createRealHost, createRealOutputs } from "./create-real-host.ts";

/** Runs the command line and returns the exit code: 0, 1 when something is wrong, 2 for misuse, 128 and its number for a signal. */
export async function main(arguments_: readonly string[], given?: CliHost): Promise<number> {
  let host = given;
  try {
    host ??= createRealHost();
    if (arguments_.length === 0 && host.stdin.isTerminal && !host.canAsk) {
      host.stdout.write((await import("./program/help-text.ts")).helpText);
      return 0;
    }
    // Reading arguments takes longer than the first frame of the terminal.
    if (arguments_.length === 0 && host.canAsk)
      return await (await import("../terminal/run-terminal.ts")).runTerminal({ host, session: {} }, [], {});
    // The command that scripts and prompts ask most often needs no reading of arguments.
    const isList = arguments_.length === 1 && arguments_[0] === "agents";
    const code = isList
      ? await (await import("./agents.ts")).agents({ host, session: {} }, {})
      : await (await import("./program/run-program.ts")).runProgram(arguments_, host);
    // A file that cannot be written says so a moment after the write.
    await new Promise((resolve) => setImmediate(resolve));
    // Work whose output could not be written was not done for the caller that waits for it; a reader that went away wanted no more.
    const {
      stdout: { closed },
    } = host;
    if (closed?.aborted === true && isRetinueError(closed.reason) && closed.reason.code !== "reader-gone")
      throw closed.reason;
    return code;
  } catch (error) {
    return reportError(
      error,
      host ?? createRealOutputs(),
      arguments_.some((argument) => /^--debug(=|$)/.test(argument)),
    );
  }
}

/** One sentence, its advice on the next line, and the exit code that goes with it. A stack trace only when asked for. */
function reportError(error: unknown, { stderr }: Pick<CliHost, "stderr">, isDebugging: boolean): number {
  const paint = createPaint(stderr.isColourAllowed);
  const code = isRetinueError(error) ? error.code : "unexpected";
  if (code === "interrupted") {
    stderr.write("\n");
    return exitCodeOf(error);
  }
  const message = error instanceof Error ? error.message : String(error);
  const advice = isRetinueError(error)
    ? error.advice
    : "Run it again with --debug to see where this happened.";
  const sentence = isRetinueError(error) ? message : `Unexpected error: ${message}`;
  stderr.write(`${paint.error("retinue:")} ${onLines(sentence)}\n`);
  if (advice !== undefined) stderr.write(`${wrap(onLines(advice), stderr.columns ?? 100).join("\n")}\n`);
  if (isDebugging && error instanceof Error) stderr.write(`${onLines(error.stack ?? "")}\n`);
  return code === "misuse" || code === "unknown-command" ? 2 : 1;
}

function onLines(text: string): string {
  return text.split("\n").map(stripControlCharacters).join("\n");
}
