import type { CliHost } from "./cli-host.ts";
import { helpText } from "./help-text.ts";
import { createRealHost } from "./real-host.ts";
import { reportError } from "./report-error.ts";

/** Runs the command line and returns the exit code: 0, 1 when something is wrong, 2 for misuse, 128 and its number for a signal. */
export async function main(arguments_: readonly string[], host: CliHost = createRealHost()): Promise<number> {
  if (arguments_.length === 0 && host.stdin.isTerminal && !host.canAsk) {
    host.stdout.write(helpText);
    return 0;
  }
  try {
    // Reading arguments takes longer than the first frame of the terminal.
    if (arguments_.length === 0 && host.canAsk)
      return await (await import("../terminal/run-terminal.ts")).runTerminal({ host, session: {} }, [], {});
    // The command that scripts and prompts ask most often needs no reading of arguments.
    if (arguments_.length === 1 && arguments_[0] === "agents")
      return await (await import("./commands/agents-list.ts")).agentsList({ host, session: {} }, {});
    const { runProgram } = await import("./arguments.ts");
    return await runProgram(arguments_, host);
  } catch (error) {
    return reportError(error, host, arguments_.includes("--verbose"));
  }
}
