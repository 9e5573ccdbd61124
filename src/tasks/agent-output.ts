// @io
import { closeSync, constants, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { textOf } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { checkAgentId } from "../journal/session-files.ts";

/** The file in which a person can follow a child's work; it grows while the child continues. */
interface AgentOutput {
  readonly file: string;
  record(event: RunEvent): void;
  close(): void;
}

/** A link that somebody put in its place is not followed. */
const appendOnly = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0);

export function openAgentOutput(file: string): AgentOutput {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // Opening costs far more than writing, so the file stays open while the child runs.
  let descriptor: number | undefined;
  const say = (text: string): void => {
    descriptor ??= openSync(file, appendOnly, 0o600);
    writeSync(descriptor, `${text}\n`);
  };
  return {
    file,
    record(event) {
      switch (event.type) {
        case "assistant-answered": {
          const text = textOf(event.message).trim();
          if (text !== "") say(text);
          break;
        }
        case "call-started":
          say(`· ${event.call.name} ${JSON.stringify(event.call.input).slice(0, 200)}`);
          break;
        case "call-finished":
          if (event.denied !== undefined) say(`  not allowed: ${event.denied}`);
          break;
        case "context-compacted":
          say(`[the conversation was compacted from ${event.preTokens} to ${event.postTokens} tokens]`);
          break;
        case "run-idled":
        case "run-ended":
          say(`[${event.ending.status}: ${event.ending.reason}]`);
          break;
        default:
      }
    },
    close() {
      if (descriptor !== undefined) closeSync(descriptor);
      descriptor = undefined;
    },
  };
}

/** Where a child's work can be followed. */
export function agentOutputFile({ directory }: { readonly directory: string }, agentId: string): string {
  return join(directory, "tasks", `${checkAgentId(agentId)}.output`);
}
