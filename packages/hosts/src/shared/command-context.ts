import type { CliHost } from "./cli-host.ts";
import type { CommandFlags } from "./flags.ts";

/** What every command gets. */
export interface CommandContext {
  readonly host: CliHost;
  readonly session: CommandFlags;
  /** Writes a line to the file of `--debug-file`; absent without one. */
  readonly debug?: (text: string) => void;
}
