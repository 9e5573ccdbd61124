import { isRecord, shown } from "../foundation/json-value.ts";
import { runProcess } from "../foundation/run-process.ts";
import { commandEnvironment } from "../tools/command-environment.ts";
import type { McpTransport } from "./mcp-server.ts";

export type HeadersReading =
  | { readonly type: "headers"; readonly headers: Readonly<Record<string, string>> }
  | { readonly type: "failed"; readonly reason: string };

export interface HelperOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
  readonly signal: AbortSignal;
}

const limitMs = 10_000;

/** The headers of every request: those configured, then those that the helper command prints as JSON. */
export async function connectHeaders(
  { headers, headersHelper }: Extract<McpTransport, { type: "http" | "sse" }>,
  options: HelperOptions,
): Promise<HeadersReading> {
  if (headersHelper === undefined) return { type: "headers", headers };
  const isWindows = process.platform === "win32";
  const result = await runProcess({
    file: isWindows ? "cmd.exe" : "/bin/sh",
    arguments: isWindows ? ["/d", "/s", "/c", headersHelper] : ["-c", headersHelper],
    directory: options.directory,
    environment: commandEnvironment(options.environment),
    signal: options.signal,
    timeLimitMs: limitMs,
    maxBytes: 100_000,
  });
  if (result.timedOut) return failed(`it did not end within ${limitMs / 1000} s`);
  if (result.notStarted !== undefined) return failed(result.notStarted);
  if (result.exitCode !== 0) {
    return failed(
      `it ended with ${result.exitCode ?? result.signal ?? "no exit code"}: ${shown(result.stderr.trim(), 200)}`,
    );
  }
  return readHeaders(headers, result.stdout);
}

function readHeaders(configured: Readonly<Record<string, string>>, printed: string): HeadersReading {
  let value: unknown;
  try {
    value = JSON.parse(printed);
  } catch {
    return failed("it printed no JSON");
  }
  if (!isRecord(value)) return failed("it printed JSON that is not an object");
  const entries = Object.entries(value);
  const wrong = entries.find(([, text]) => typeof text !== "string");
  if (wrong !== undefined) return failed(`the header ${shown(wrong[0])} is not a text`);
  return {
    type: "headers",
    headers: { ...configured, ...Object.fromEntries(entries as [string, string][]) },
  };
}

function failed(reason: string): HeadersReading {
  return { type: "failed", reason: `its headersHelper failed: ${reason}` };
}
