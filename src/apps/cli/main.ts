import { isRetinueError } from "../../foundation/retinue-error.ts";
import type { CliHost } from "./cli-host.ts";
import { helpText } from "./help-text.ts";
import { createRealHost, createRealOutputs } from "./real-host.ts";
import { reportError } from "./report-error.ts";

/** Runs the command line and returns the exit code: 0, 1 when something is wrong, 2 for misuse, 128 and its number for a signal. */
export async function main(arguments_: readonly string[], given?: CliHost): Promise<number> {
  let host = given;
  try {
    host ??= createRealHost();
    if (arguments_.length === 0 && host.stdin.isTerminal) {
      host.stdout.write(helpText);
      return 0;
    }
    // The command that scripts and prompts ask most often needs no reading of arguments.
    const code =
      arguments_.length === 1 && arguments_[0] === "agents"
        ? await (await import("./commands/agents-list.ts")).agentsList({ host, session: {} }, {})
        : await (await import("./arguments.ts")).runProgram(arguments_, host);
    // A file that cannot be written says so a moment after the write.
    await new Promise((resolve) => setImmediate(resolve));
    refuseLostOutput(host);
    return code;
  } catch (error) {
    return reportError(error, host ?? createRealOutputs(), arguments_.includes("--verbose"));
  }
}

/** Work whose output could not be written was not done for whoever waits for it; a reader that went away wanted no more. */
function refuseLostOutput({ stdout: { closed } }: CliHost): void {
  if (closed?.aborted === true && isRetinueError(closed.reason) && closed.reason.code !== "reader-gone")
    throw closed.reason;
}
