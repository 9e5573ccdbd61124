import type { Command } from "commander";
import type { CommandContext } from "./session-options.ts";

/** Runs what a command means and keeps its exit code. */
export type Invoke = (run: (context: CommandContext) => Promise<number>) => Promise<void>;

/** What all commands have in common. */
export function describe(command: Command, description: string): Command {
  return command
    .description(description)
    .helpCommand(false)
    .allowExcessArguments(false)
    .addHelpText("after", "\n`retinue --help` shows the options of every command.");
}
