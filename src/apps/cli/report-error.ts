import { isRetinueError } from "../../foundation/retinue-error.ts";
import type { CliHost } from "./cli-host.ts";
import { exitCodeOf } from "./interruption.ts";
import { createPaint } from "./views/colour.ts";
import { stripControlCharacters, wrap } from "./views/text-width.ts";

/** One sentence, its advice on the next line, and the exit code that goes with it. A stack trace only when asked for. */
export function reportError(error: unknown, { stderr }: CliHost, isVerbose: boolean): number {
  const paint = createPaint(stderr.isColourAllowed);
  const code = isRetinueError(error) ? error.code : "unexpected";
  if (code === "interrupted") {
    stderr.write("\n");
    return exitCodeOf(error);
  }
  const message = error instanceof Error ? error.message : String(error);
  const advice = isRetinueError(error) ? error.advice : "Run it again with --verbose to see where this happened.";
  const sentence = isRetinueError(error) ? message : `Something went wrong that should not: ${message}`;
  stderr.write(`${paint.error("retinue:")} ${onLines(sentence)}\n`);
  if (advice !== undefined) stderr.write(`${wrap(onLines(advice), stderr.columns ?? 100).join("\n")}\n`);
  if (isVerbose && error instanceof Error) stderr.write(`${onLines(error.stack ?? "")}\n`);
  return code === "misuse" ? 2 : 1;
}

function onLines(text: string): string {
  return text.split("\n").map(stripControlCharacters).join("\n");
}
