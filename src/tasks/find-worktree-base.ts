import { findDefaultBranch, type WorktreeRepository } from "./find-worktree-repository.ts";
import { oneLine, type WorktreeGit } from "./run-worktree-git.ts";
import type { WorktreeSettings } from "./worktree-plan.ts";
import { writeSnapshotCommit } from "./write-snapshot-commit.ts";

export interface BaseRequest {
  readonly settings: WorktreeSettings;
  readonly agentName: string;
}

/** The commit that a worktree begins with; throws with a reason where there is none. */
export async function findWorktreeBase(
  git: WorktreeGit,
  repository: WorktreeRepository,
  { settings, agentName }: BaseRequest,
): Promise<string> {
  const wanted = settings.baseRef ?? "current";
  switch (wanted) {
    case "head":
      return repository.head;
    case "fresh": {
      const found = await findDefaultBranch(git, repository.top);
      if (found !== undefined) return found;
      throw new Error("git knows no default branch here; set worktree.baseRef to head or current");
    }
    case "current": {
      const message = `Uncommitted changes as ${JSON.stringify(agentName)} found them`;
      const commit = await writeSnapshotCommit(git, repository, message);
      if (commit.type === "failed") {
        throw new Error(
          `the uncommitted changes could not be taken along (${commit.reason}); worktree.baseRef: head leaves them out`,
        );
      }
      return oneLine(commit) ?? "";
    }
    default:
      throw new Error(`worktree.baseRef is ${JSON.stringify(wanted)}; write current, head or fresh`);
  }
}
