import type { ProjectOptions } from "@retinue/core/kernel/project/project-facts.ts";
import type { CommandContext } from "./command-context.ts";
import { folderOptionsOf } from "./flags.ts";
import { type AgentsOption, loadAgentsOption } from "./load-agents-option.ts";

interface FolderOptions {
  readonly given: ProjectOptions;
  /** What `--agents` gave. */
  readonly option?: AgentsOption;
}

/** The flags of every command, as a project and a runtime take them; both mean the same by them. */
export function folderOptions({ host, session }: CommandContext): FolderOptions {
  const { cwd, home, environment: env, platform } = host;
  const given = { cwd, home, env, platform, ...folderOptionsOf(session) };
  if (session.agents === undefined) return { given };
  const option = loadAgentsOption(session.agents, cwd);
  return { option, given: { ...given, agents: option.definitions } };
}
