import { RetinueError } from "../foundation/retinue-error.ts";

/** How many children run concurrently, and what happens to one more. */
export interface ChildLimits {
  readonly maxRunning: number;
  /** Absent: one that somebody waits for is queued, one in the background is refused. */
  readonly overflow?: "refuse" | "queue";
}

/** Unless the environment or settings say otherwise. */
const defaultChildren = 10;

/**
 * Reads the setting `limits`: `{"agents": 20, "overflow": "queue"}`. The environment's number wins. A value that cannot be
 * used ends the start, because a limit that is not kept is worse than none that was promised.
 */
export function readChildLimits(
  setting: Readonly<Record<string, unknown>> | undefined,
  fromEnvironment?: number,
): ChildLimits {
  const { agents = defaultChildren, overflow } = setting ?? {};
  if (typeof agents !== "number" || !Number.isSafeInteger(agents) || agents < 1) {
    throw unusable("agents", "a whole number from 1", agents);
  }
  const maxRunning = fromEnvironment ?? agents;
  if (overflow === undefined) return { maxRunning };
  if (overflow !== "refuse" && overflow !== "queue")
    throw unusable("overflow", '"refuse" or "queue"', overflow);
  return { maxRunning, overflow };
}

function unusable(key: string, expected: string, value: unknown): RetinueError {
  return new RetinueError(
    "invalid-limits",
    `The setting limits.${key} needs ${expected}, but is ${JSON.stringify(value)}.`,
    {
      advice: 'Write, for example, "limits": {"agents": 20, "overflow": "queue"}.',
    },
  );
}
