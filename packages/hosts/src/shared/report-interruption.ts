import { existsSync } from "node:fs";
import { type TaskState, wasCutOff } from "@retinue/core/protocol/agent-state.ts";
import type { CliOutput } from "./cli-host.ts";
import { signalOf } from "./end-signal.ts";
import { createPaint } from "./paint.ts";
import { stripControlCharacters } from "./strip-control-characters.ts";

export interface Interruption {
  readonly reason: unknown;
  /** All children of the session. */
  readonly tasks: readonly TaskState[];
  /** What to type to continue. */
  readonly command: string;
  /** The file without which there is nothing to resume. */
  readonly transcript: string;
}

const maxListed = 20;

/** What was stopped by a signal, and the line that continues it. */
export function reportInterruption(
  { reason, tasks, command, transcript }: Interruption,
  stderr: CliOutput,
): void {
  const paint = createPaint(stderr.isColourAllowed);
  const stopped = tasks.filter(wasCutOff);
  const how = signalOf(reason) ?? "an interrupt";
  const agents = stopped.length === 1 ? "1 agent" : `${stopped.length} agents`;
  const lines = [
    `retinue: Stopped by ${how}${stopped.length === 0 ? "." : `, with ${agents} that can be resumed:`}`,
    ...stopped
      .slice(0, maxListed)
      .map(
        ({ id, agentType, description }) =>
          `  ${paint.name(id)}  ${stripControlCharacters(agentType)}  ${stripControlCharacters(description)}`,
      ),
    ...(stopped.length > maxListed ? [`  and ${stopped.length - maxListed} more`] : []),
    ...(existsSync(transcript) ? [`Continue: ${command}`] : ["Nothing was kept that could be continued."]),
  ];
  stderr.write(`${lines.join("\n")}\n`);
}
