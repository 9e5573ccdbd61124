import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { textOf } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";

/** The file in which a person can follow a child's work; it grows while the child goes on. */
export interface AgentOutput {
  readonly file: string;
  record(event: RunEvent): void;
}

export function openAgentOutput(file: string): AgentOutput {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const say = (text: string): void => appendFileSync(file, `${text}\n`, { mode: 0o600 });
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
        case "run-ended":
          say(`[${event.ending.status}: ${event.ending.reason}]`);
          break;
        default:
      }
    },
  };
}
