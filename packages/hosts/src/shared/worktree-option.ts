import type { CliHost } from "./cli-host.ts";

/** What has to be added to a command that continues the session of this host: it is found from its own worktree only. */
export function worktreeOption({ worktree }: Pick<CliHost, "worktree">): string {
  return worktree === undefined ? "" : ` --worktree ${worktree}`;
}
