import type { CliHost, CliOutput } from "../../src/apps/cli/cli-host.ts";
import { main } from "../../src/apps/cli/main.ts";
import type { Place } from "../scenarios/run-command.ts";

/** Runs a command in this process, for what does not depend on a process of its own. */
export async function runInProcess(
  { cwd, home }: Pick<Place, "cwd" | "home">,
  arguments_: readonly string[],
  environment: CliHost["environment"] = {},
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const written = { out: "", err: "" };
  const output = (key: keyof typeof written): CliOutput => ({
    write: (text) => {
      written[key] += text;
    },
    isTerminal: false,
    isColourAllowed: false,
    columns: 100,
  });
  const host: CliHost = {
    stdout: output("out"),
    stderr: output("err"),
    stdin: { isTerminal: true, readAll: async () => "", async *lines() {} },
    onInterrupt: () => () => {},
    canAsk: false,
    ask: async () => "",
    endQuestions: () => {},
    environment: { PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", ...environment },
    cwd,
    home,
    platform: "linux",
    nodeVersion: "24.0.0",
    version: () => "0.0.0",
  };
  return { code: await main(arguments_, host), ...written };
}
