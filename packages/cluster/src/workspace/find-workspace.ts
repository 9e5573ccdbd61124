// @io

import { hostname } from "node:os";
import { dirname, relative } from "node:path";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { createWorktreeGit, oneLine } from "@retinue/core/tasks/worktree/worktree-git.ts";
import { askRepository } from "@retinue/gate/git/ask-repository.ts";
import { folderNeed, type WorkspacePlan } from "./workspace-plan.ts";

export const workspaceTypes = ["shared", "pinned", "git"] as const;
export type WorkspaceType = (typeof workspaceTypes)[number];

export interface FindWorkspaceOptions {
  readonly type: WorkspaceType;
  readonly directory: string;
  readonly agent: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Who could run the agent: a shared folder is one that they announce. */
  readonly workers?: readonly { readonly has: readonly string[] }[] | undefined;
}

const workspaceShape = checks.shape(
  {
    type: checks.oneOf(workspaceTypes),
    directory: checks.filled,
    agent: checks.filled,
    environment: checks.variables,
    signal: checks.signal,
  },
  ["type", "directory", "agent", "environment", "signal"],
);

/** Turns what was asked for into a plan that holds everything another worker needs. */
export async function findWorkspace(options: FindWorkspaceOptions): Promise<WorkspacePlan> {
  checkArgument("The options of findWorkspace()", workspaceShape, options);
  const { type, directory, agent } = options;
  if (type === "shared") return { type, directory, root: findRoot(directory, options.workers ?? []) };
  if (type === "pinned") return { type, directory, machine: hostname() };
  const repository = await askRepository(directory, { environment: options.environment, folders: [] });
  if (repository.type === "unclear") throw unusable(repository.reason);
  if (repository.type === "repository" && repository.steering !== undefined)
    throw unusable(
      `the setting ${repository.steering} of its repository may start programs, which no worker would have`,
    );
  const git = createWorktreeGit({ ...options, trusted: false });
  const ask = async (...words: readonly string[]): Promise<string> =>
    oneLine(await git(directory, words)) ?? "";
  const top = await ask("rev-parse", "--show-toplevel");
  const base = await ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}");
  const origin = await ask("remote", "get-url", "origin");
  if (top === "" || base === "") throw unusable(`${directory} is not in a git repository with a commit`);
  if (origin === "") throw unusable(`the repository in ${top} has no remote named origin`);
  if ((await ask("status", "--porcelain", "--untracked-files=all")) !== "")
    throw unusable("there are uncommitted changes, which a worker would not see");
  if ((await ask("branch", "--remotes", "--contains", base)) === "")
    throw unusable(`the commit ${base.slice(0, 12)} was not pushed, so no worker can fetch it`);
  const subdirectory = relative(top, directory);
  return {
    type,
    repository: origin,
    base,
    branch: `retinue/${agent}`,
    ...(subdirectory === "" ? {} : { subdirectory }),
  };
}

/** The nearest folder above that a worker announces, or the folder itself, for a worker that is still to come. */
function findRoot(directory: string, workers: readonly { readonly has: readonly string[] }[]): string {
  const announced = new Set(workers.flatMap(({ has }) => has));
  for (let folder = directory; ; folder = dirname(folder)) {
    if (announced.has(folderNeed(folder))) return folder;
    if (dirname(folder) === folder) return directory;
  }
}

function unusable(reason: string): RetinueError {
  return new RetinueError("unusable-workspace", `This folder cannot be a git workspace: ${reason}.`, {
    advice: "Commit and push first, or choose --workspace shared or --workspace pinned.",
  });
}
