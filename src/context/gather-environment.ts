// @io
import { release, type } from "node:os";
import { basename } from "node:path";
import { findRepositoryRoot } from "../settings/trust-store.ts";
import { type EnvironmentFacts, localDate } from "./build-system-prompt.ts";

export interface EnvironmentQuestion {
  readonly directory: string;
  readonly additionalDirectories?: readonly string[];
  readonly platform: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly now: Date;
  /** The id of the model that will answer. */
  readonly model?: string;
}

/** Reads what a prompt says about the machine. Starts no program. */
export async function gatherEnvironment(question: EnvironmentQuestion): Promise<EnvironmentFacts> {
  const { directory, additionalDirectories = [], platform, environment, now, model } = question;
  const shell = environment["SHELL"] ?? environment["ComSpec"];
  return {
    directory,
    additionalDirectories,
    isRepository: (await findRepositoryRoot(directory)) !== undefined,
    platform,
    systemVersion: `${type()} ${release()}`,
    ...(shell === undefined || shell === "" ? {} : { shell: basename(shell.replaceAll("\\", "/")) }),
    date: localDate(now),
    ...(model === undefined ? {} : { model }),
  };
}
