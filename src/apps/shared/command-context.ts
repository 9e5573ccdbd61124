import type { SettingSource } from "../../foundation/option-words.ts";
import { RetinueError } from "../../foundation/retinue-error.ts";
import type { CliHost } from "./cli-host.ts";

/** The options that hold for every command. */
export interface SessionOptions {
  readonly agents?: string;
  readonly settings?: string;
  readonly settingSources?: readonly SettingSource[];
  readonly pluginDir?: readonly string[];
  readonly addDir?: readonly string[];
  readonly disallowedTools?: readonly string[];
  /** JSON texts and paths of files. */
  readonly mcpConfig?: readonly string[];
  readonly strictMcpConfig?: boolean;
  readonly trust?: boolean;
  /** With `--output-format json`: every message, as one list. */
  readonly verbose?: boolean;
}

export interface CommandContext {
  readonly host: CliHost;
  readonly session: SessionOptions;
  /** Writes a line to the file of `--debug-file`; absent without one. */
  readonly debug?: (text: string) => void;
}

export function misuse(message: string, advice?: string): RetinueError {
  return new RetinueError("misuse", message, advice === undefined ? {} : { advice });
}

/** Commands of agents carry this mark; a person's own shell does not. */
export function refuseAgents({ environment }: Pick<CliHost, "environment">): void {
  if ((environment["CLAUDECODE"] ?? "") === "") return;
  throw new RetinueError("not-a-person", "This is a command of an agent, and only a person decides this.", {
    advice: "Run it in a terminal of your own, where CLAUDECODE is not set.",
  });
}
