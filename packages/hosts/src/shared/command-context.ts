import type { CliHost } from "./cli-host.ts";
import type { CommandFlags } from "./flags.ts";

export interface StoreAddress {
  readonly url: string;
  readonly tenant?: string;
}

/** What every command gets. */
export interface CommandContext {
  readonly host: CliHost;
  readonly session: CommandFlags;
  /** Writes a line to the file of `--debug-file`; absent without one. */
  readonly debug?: (text: string) => void;
}

/** What a command gets that is about agents in a store. */
export interface StoreContext extends CommandContext {
  readonly store: StoreAddress;
}
