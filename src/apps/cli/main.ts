import type { CliHost } from "./cli-host.ts";
import { helpText } from "./help-text.ts";
import { createRealHost } from "./real-host.ts";
import { reportError } from "./report-error.ts";
import { namesStore } from "./store/names-store.ts";

/** Runs the command line and returns the exit code: 0, 1 when something is wrong, 2 for misuse, 128 and its number for a signal. */
export async function main(arguments_: readonly string[], host: CliHost = createRealHost()): Promise<number> {
  if (arguments_.length === 0 && host.stdin.isTerminal) {
    host.stdout.write(helpText);
    return 0;
  }
  try {
    // The command that scripts and prompts ask most often needs no reading of arguments.
    if (arguments_.length === 1 && arguments_[0] === "agents")
      return await (await import("./commands/agents-list.ts")).agentsList({ host, session: {} }, {});
    if (namesStore(arguments_, host))
      return await (await import("./store/store-program.ts")).runStoreProgram(arguments_, host);
    const { runProgram } = await import("./arguments.ts");
    return await runProgram(arguments_, host);
  } catch (error) {
    return reportError(error, host, arguments_.includes("--verbose"));
  }
}
