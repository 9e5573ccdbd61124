import { RetinueError } from "../../foundation/retinue-error.ts";
import type { CliHost } from "./cli-host.ts";

const settingSources = ["user", "project", "local"] as const;
export type SettingSource = (typeof settingSources)[number];

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
}

/** `user,project` and the like; an empty text reads no settings at all. */
export function parseSettingSources(text: string): readonly SettingSource[] {
  const words = text.split(",").map((word) => word.trim());
  return words
    .filter((word) => word !== "")
    .map((word) => {
      const source = settingSources.find((known) => known === word);
      if (source !== undefined) return source;
      throw misuse(
        `Invalid --setting-sources "${word}".`,
        `Write a list of ${settingSources.join(", ")}, such as --setting-sources user,project.`,
      );
    });
}

export function misuse(message: string, advice?: string): RetinueError {
  return new RetinueError("misuse", message, advice === undefined ? {} : { advice });
}
