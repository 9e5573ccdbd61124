import type { RunEnding } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import type { ChildRecord } from "./child-host.ts";
import type { RunLine } from "./task-manager.ts";

/** What a run may ask of its record. A record that cannot be written any more does not keep hooks from hearing of it. */
export function recordLine({ told, commit }: ChildRecord): Pick<RunLine, "told" | "commit"> {
  return {
    ...(commit === undefined ? {} : { commit }),
    ...(told === undefined
      ? {}
      : {
          async told(event) {
            try {
              await told(event);
            } catch {
              // The child ends by its next line.
            }
          },
        }),
  };
}

/** The ending of a child that was planned and found no place. */
export function notStarted(error: string): RunEnding {
  const totals = { usage: noUsage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0 };
  return { status: "stopped", reason: "not-started", text: "", error, denials: [], totals };
}
