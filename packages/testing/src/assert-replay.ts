import { fileURLToPath } from "node:url";
import { type Check, checkArgument, checks, checkTable } from "@retinue/base/foundation/check-arguments.ts";
import type { ReplayReport } from "@retinue/core/replay/replay-recording.ts";

export interface AssertReplayOptions {
  /** The folder of the project; the recording's when absent. */
  readonly cwd?: string | undefined;
}

/**
 * Replays a session that `retinue replay ID --save` wrote, against the agents and settings of its project. Uses no model, no
 * network and nothing of the person's own files. Rejects with a readable difference where prompts, tools, decisions or
 * cost have changed.
 */
export async function assertReplay(
  file: string | URL,
  options: AssertReplayOptions = {},
): Promise<ReplayReport> {
  const isFile: Check = (value) =>
    value instanceof URL || checks.filled(value) === undefined ? undefined : "must be a path or a URL";
  checkArgument("The first argument of assertReplay()", isFile, file);
  checkTable("assertReplay", { cwd: checks.filled }, options);
  // What runs agents is loaded only by tests that replay.
  const [{ createRuntime }, { checkSavedRecording }, { describeReplay }, { findGaps }] = await Promise.all([
    import("@retinue/core/kernel/create-runtime.ts"),
    import("@retinue/core/kernel/replay/save-recording.ts"),
    import("@retinue/core/replay/describe-replay.ts"),
    import("@retinue/core/replay/replay-recording.ts"),
  ]);
  const path = typeof file === "string" ? file : fileURLToPath(file);
  const report = await checkSavedRecording(path, { project: options.cwd, make: createRuntime });
  if (report.differences.length === 0 && findGaps(report).length === 0) return report;
  const error = new Error(
    `The recorded session ${JSON.stringify(report.title)} would not run as it did.\n${describeReplay(report)}\n\nIf that is what you want, save the recording again.`,
  );
  error.name = "ReplayDifference";
  // What matters is the difference, not where it was found.
  error.stack = `${error.name}: ${error.message}`;
  throw error;
}
