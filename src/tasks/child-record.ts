import type { RunEnding } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import type { ChildRecord } from "./child-host.ts";
import type { TaskControl, TaskStarted } from "./task-manager.ts";
import { interruptedReason } from "./task-state.ts";

/** A record that cannot be written any more does not keep hooks from hearing of the child. */
export function tellingOf({ reported }: Pick<ChildRecord, "told">): Pick<TaskControl, "told"> {
  if (reported === undefined) return {};
  return {
    reported(event) {
      try {
        reported(event);
      } catch {
        // The child ends by its next line.
      }
    },
  };
}

/** The ending of a child that was planned and found no place; one that came too late for its session can be resumed. */
export function notStarted({ reason: error, isOver }: Extract<TaskStarted, { type: "refused" }>): RunEnding {
  const totals = { usage: noUsage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0 };
  const reason = isOver === true ? interruptedReason : "not-started";
  return { status: "stopped", reason, text: "", error, denials: [], totals };
}
