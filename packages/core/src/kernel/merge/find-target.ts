import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { MergeStep } from "../../protocol/merge-step.ts";
import { oneLine } from "../../tasks/worktree/worktree-git.ts";
import type { MergeRequest } from "./merge-children.ts";
import { checkedOutIn, commitOf, isAncestor, type MergeRepository, moveBranch } from "./merge-git.ts";

/** The integration branch: it is advanced commit by commit, and nothing else of the repository is. */
export interface MergeTarget {
  readonly branch: string;
  /** Made by the runtime for one session, and not named by a person. */
  readonly isOwn: boolean;
  /** The commit where it is, or where it is going to begin. */
  tip: string;
  exists: boolean;
  /** The commit that is checked out where the person is. */
  readonly head: string;
  /** The person's branch; absent where none is checked out. */
  readonly personal?: string;
}

/** Finds the integration branch, and refuses one that is checked out. Changes nothing. */
export async function findTarget(
  place: MergeRepository,
  { sessionId, into }: Pick<MergeRequest, "sessionId" | "into">,
): Promise<MergeTarget> {
  const { git, repository } = place;
  const { head, top } = repository;
  const branch = into ?? integrationBranch(sessionId);
  const checked = await git(top, ["check-ref-format", "--branch", branch]);
  if (checked.type === "failed" || branch.startsWith("-") || branch === "@" || oneLine(checked) !== branch)
    throw new RetinueError("misuse", `${JSON.stringify(branch)} cannot be the name of a branch.`);
  const [folder] = await checkedOutIn(place, branch);
  if (folder !== undefined)
    throw new RetinueError(
      "branch-in-use",
      `The branch ${branch} is checked out in ${folder}, so it was not advanced: the files there would no longer match it.`,
      {
        advice:
          "Leave out --into and add --apply, which fast-forwards it at the end if nothing is changed there.",
      },
    );
  const personal = oneLine(await git(top, ["symbolic-ref", "--quiet", "--short", "HEAD"]));
  const tip = await commitOf(place, branch);
  return {
    branch,
    isOwn: into === undefined,
    tip: tip ?? head,
    exists: tip !== undefined,
    head,
    ...(personal === undefined || personal === "" ? {} : { personal }),
  };
}

export function integrationBranch(sessionId: string): string {
  return `retinue/integration-${sessionId.slice(0, 8)}`;
}

/**
 * A branch of our own begins anew where the person's branch has moved, or where something in it has not passed the checks that
 * count now; what was in it is put on top again.
 */
export async function rebuildTarget(
  place: MergeRepository,
  target: MergeTarget,
  { isUnchecked, note }: { readonly isUnchecked: boolean; readonly note: (step: MergeStep) => Promise<void> },
): Promise<void> {
  const { branch, isOwn, exists, tip, head } = target;
  if (!isOwn || !exists || (!isUnchecked && (await isAncestor(place, head, tip)))) return;
  await note({ type: "rebuilding", from: tip, to: head });
  await moveBranch(place, branch, { from: tip, to: head });
  target.tip = head;
  await note({ type: "rebuilt", from: tip, to: head });
}
