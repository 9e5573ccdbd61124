import { realpath, stat } from "node:fs/promises";
import { isInside } from "../resolve-workspace-path.ts";
import type { ToolContext } from "../tool.ts";

/** The folder each agent's next command starts in. */
export interface ShellDirectories {
  of(agentId: string): string | undefined;
  note(agentId: string, directory: string): void;
}

export function createShellDirectories(): ShellDirectories {
  const directories = new Map<string, string>();
  return {
    of: (agentId) => directories.get(agentId),
    note: (agentId, directory) => void directories.set(agentId, directory),
  };
}

export interface ChosenDirectory {
  readonly directory: string;
  readonly note?: string;
}

/** Where a command starts: where the agent's last one ended, unless that folder has gone. */
export async function startDirectory(
  directories: ShellDirectories,
  context: ToolContext,
): Promise<ChosenDirectory> {
  const last = directories.of(context.agent.id);
  if (last === undefined || last === context.directory) return { directory: context.directory };
  if (
    await stat(last).then(
      (found) => found.isDirectory(),
      () => false,
    )
  )
    return { directory: last };
  directories.note(context.agent.id, context.directory);
  return {
    directory: context.directory,
    note: `${last} is gone; the command started in ${context.directory}.`,
  };
}

/** Remembers where a command ended, if that is inside the work; says so if it is not. */
export async function keepDirectory(
  directories: ShellDirectories,
  context: ToolContext,
  ended: string | undefined,
): Promise<string | undefined> {
  if (ended === undefined) return undefined;
  const work = await Promise.all(context.workingDirectories.map(realPathOr));
  const real = await realPathOr(ended);
  if (isInside(real, work)) {
    directories.note(context.agent.id, real);
    return undefined;
  }
  directories.note(context.agent.id, context.directory);
  return `The command ended in ${ended}, outside the working directories; the next one starts in ${context.directory}.`;
}

async function realPathOr(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}
