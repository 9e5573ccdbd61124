import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { CliHost } from "../shared/cli-host.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { retrySentence } from "../shared/debug-line.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import type { PrintRequest } from "../shared/print-options.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import { createSdkConnection, type SdkConnection, type ServeOptions } from "./sdk-connection.ts";
import { createHandlers, startFailure } from "./serve-agent-sdk.ts";

/**
 * `-p` for a program that reads JSON: the prompt, or the messages on stdin, are worked on as those of a host are, so
 * that both read the same messages. No questions are asked.
 */
export async function printMessages(
  context: CommandContext,
  prompt: string | undefined,
  { options, request, report }: PrintedRun,
): Promise<number> {
  const { host: cli } = context;
  const output = createMessageOutput(cli, request);
  const connection = createSdkConnection(context, options, {
    isHosted: false,
    speaks: prompt === undefined,
    write: output.write,
  });
  const { stop, host } = connection;
  const forget = cli.onInterrupt((reason) => stop.abort(reason));
  const { closed } = cli.stdout;
  const signal = closed === undefined ? stop.signal : AbortSignal.any([stop.signal, closed]);
  const reading = prompt === undefined ? readPrompts(connection, signal) : undefined;
  if (prompt !== undefined) {
    const line = { type: "user", message: { role: "user", content: prompt } };
    host.add({ content: prompt, line, verbatim: false, asks: true });
    host.inputEnded();
  }
  try {
    const code = await host.run(signal);
    report(connection, closed);
    if (!stop.signal.aborted) return closed?.aborted === true ? 0 : code;
    if (isEnding(stop.signal.reason)) return exitCodeOf(stop.signal.reason);
    throw stop.signal.reason;
  } catch (error) {
    if (!signal.aborted && !isMisuse(error))
      connection.channel.send(startFailure(error, request.session.sessionId ?? request.session.resume ?? ""));
    throw error;
  } finally {
    forget();
    output.end();
    stop.abort(new RetinueError("session-closed", "The session is over."));
    await reading?.catch(() => undefined);
  }
}

export interface PrintedRun {
  readonly options: ServeOptions;
  readonly request: PrintRequest;
  /** Shows people how a run ended that was stopped, or whose reader has gone. */
  readonly report: (connection: SdkConnection, closed: AbortSignal | undefined) => void;
}

function readPrompts(connection: SdkConnection, signal: AbortSignal): Promise<void> {
  const { channel, context, host } = connection;
  return channel
    .read(context.host.stdin.lines({ signal }), createHandlers(connection))
    .finally(() => host.inputEnded());
}

function isEnding(reason: unknown): boolean {
  return isRetinueError(reason) && reason.code === "interrupted";
}

function isMisuse(error: unknown): boolean {
  return isRetinueError(error) && error.code === "misuse";
}

/**
 * Every message as a line; with `json` the last result alone or, verbose, one list of all. That comes at the end, so what makes
 * it wait is reported on stderr meanwhile.
 */
export function createMessageOutput(
  { stdout, stderr }: Pick<CliHost, "stdout" | "stderr">,
  { output, verbose }: PrintRequest,
) {
  if (output === "stream-json")
    return { write: (line: string): void => stdout.write(line), end: (): void => undefined };
  const kept: JsonRecord[] = [];
  return {
    write(line: string): void {
      const message = JSON.parse(line) as JsonRecord;
      const { subtype, error_message: cause, retry_delay_ms: delayMs, content } = message;
      if (subtype === "api_retry" && typeof cause === "string" && typeof delayMs === "number")
        stderr.write(`${stripControlCharacters(retrySentence({ message: cause, delayMs }))}\n`);
      if ((subtype === "quota_waiting" || subtype === "quota_renewed") && typeof content === "string")
        stderr.write(`${stripControlCharacters(content)}\n`);
      if (verbose) kept.push(message);
      else if (message["type"] === "result") kept.splice(0, 1, aloneResult(message));
    },
    end(): void {
      if (kept.length > 0) stdout.write(`${JSON.stringify(verbose ? kept : kept[0])}\n`);
    },
  };
}

/** A result that is the only thing printed counts from the start, so there is nothing since the one before. */
function aloneResult({ model_usage_since_last_result: _usage, ...result }: JsonRecord): JsonRecord {
  return result;
}
