// @io
import { existsSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { shellWord } from "@retinue/base/foundation/shell-word.ts";
import type { EarlierMerge, MergeQueue, MergeStep } from "../../protocol/merge-step.ts";
import { removeUnchanged } from "../../tasks/worktree/find-own-worktrees.ts";
import { findWorktreeRepository } from "../../tasks/worktree/find-worktree-repository.ts";
import { oneLine } from "../../tasks/worktree/worktree-git.ts";
import { writeSnapshotTree } from "../../tasks/worktree/write-snapshot-commit.ts";
import type { KeptBranch } from "./find-kept-branches.ts";
import type { MergeTarget } from "./find-target.ts";
import { commitOf, isAncestor, isHalfForwarded, type MergeRepository, whyNotClean } from "./merge-git.ts";

type Note = (step: MergeStep) => Promise<void>;

/** Brings the person's branch forward to the integration branch: only fast-forward, only when nothing there is changed. */
export async function applyMerge(
  place: MergeRepository,
  {
    target,
    left,
    missing,
    note,
  }: {
    readonly target: MergeTarget;
    readonly left: number;
    /** A check that something in the branch has not passed. */
    readonly missing: string | undefined;
    readonly note: Note;
  },
): Promise<void> {
  const { branch, tip, exists, personal } = target;
  const { git, repository } = place;
  const { top } = repository;
  const commands = [`git merge --ff-only ${shellWord(branch)}`];
  const refuse = (reason: string) => note({ type: "not-applied", reason, commands });
  if (!exists) return;
  const head = await headOf(place);
  if (head === tip) return;
  if (left > 0) return refuse(`${left} of the agents' changes ${left === 1 ? "is" : "are"} not in ${branch}`);
  if (missing !== undefined)
    return refuse(`${branch} has changes that were integrated without the check \`${missing}\``);
  const now = await branchOf(place);
  if (now === undefined) return refuse("no branch is checked out here");
  if (now !== personal)
    return note({
      type: "not-applied",
      reason: `${now} is checked out here now, and ${personal ?? "no branch"} was when the merge began`,
      commands: personal === undefined ? commands : [`git switch ${shellWord(personal)}`, ...commands],
    });
  if (!(await isAncestor(place, head, tip)))
    return note({
      type: "not-applied",
      reason: `${personal} has moved, and ${branch} is not based on it`,
      commands: [`git merge ${shellWord(branch)}`],
    });
  const dirty = await whyNotClean(place);
  if (dirty !== undefined) return refuse(dirty);
  const filtered = await findFiltered(place, head, tip);
  if (filtered !== undefined)
    return refuse(
      `${filtered} is checked out through a filter of the repository, which is left to your own git`,
    );
  const [inTheWay, ...more] = await findInTheWay(place, head, tip);
  if (inTheWay !== undefined)
    return refuse(
      `${inTheWay}${more.length === 0 ? " is" : ` and ${more.length} more are`} there but not tracked by git, and would be overwritten`,
    );
  await note({ type: "applying", branch: personal, from: head, to: tip });
  const words = ["merge", "--ff-only", "--quiet", "--no-stat", "--no-overwrite-ignore", tip];
  const merged = await git(top, words, { isUnstoppable: true });
  if (merged.type === "failed" && (await headOf(place)) !== tip)
    return refuse(`git could not fast-forward it (${merged.reason})`);
  await note({ type: "applied", branch: personal, from: head, to: tip });
}

/** The branch that is checked out where the person is. */
async function branchOf({ git, repository }: MergeRepository): Promise<string | undefined> {
  const name = oneLine(await git(repository.top, ["symbolic-ref", "--quiet", "--short", "HEAD"]));
  return name === "" ? undefined : name;
}

/** What is to be added where something is already that git does not have; a folder without such files is no obstacle. */
async function findInTheWay(
  { git, repository }: MergeRepository,
  from: string,
  to: string,
): Promise<readonly string[]> {
  const words = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=A", from, to];
  const added = await git(repository.main, words);
  if (added.type === "failed") return [];
  const paths = added.text.split("\0").filter((path) => path !== "");
  const there = await Promise.all(
    paths.map(async (path) => {
      const found = await lstat(join(repository.top, path)).catch(() => undefined);
      return found !== undefined && !found.isDirectory() ? [path] : [];
    }),
  );
  return there.flat();
}

async function headOf({ git, repository }: MergeRepository): Promise<string> {
  return oneLine(await git(repository.top, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])) ?? "";
}

/** A git that outlives the process that has started it comes to its end first. */
async function whenUnlocked({ git, repository }: MergeRepository): Promise<void> {
  const lock = join(repository.gitDirectory, "index.lock");
  for (let waited = 0; waited < maxLockMs && existsSync(lock); waited += lockWaitMs)
    await sleep(lockWaitMs, git.signal);
}

const lockWaitMs = 100;
const maxLockMs = 10_000;
/** Between two steps of a git that moves a branch there may be no lock. */
const settleMs = 500;

/** A changed file that is not checked out as it is stored, as with git-lfs. */
async function findFiltered(
  { git, repository }: MergeRepository,
  from: string,
  to: string,
): Promise<string | undefined> {
  const names = await git(repository.main, [
    "diff-tree",
    "-r",
    "-z",
    "--no-renames",
    "--name-only",
    from,
    to,
  ]);
  if (names.type === "failed") return undefined;
  const asked = await git(repository.top, ["check-attr", "--stdin", "-z", "filter"], { input: names.text });
  const fields = asked.type === "done" ? asked.text.split("\0") : [];
  const at = fields.findIndex(
    (value, index) => index % 3 === 2 && value !== "unspecified" && value !== "unset",
  );
  return at === -1 ? undefined : fields[at - 2];
}

/** A fast-forward in whose middle the process died: what it had written already is what is to be there, so it is done to its end. */
export async function finishApplying(
  place: MergeRepository,
  { applying }: Pick<EarlierMerge, "applying">,
  note: Note,
): Promise<void> {
  if (applying === undefined) return;
  const { git, repository } = place;
  const { branch, from, to } = applying;
  await whenUnlocked(place);
  await sleep(settleMs, git.signal);
  await whenUnlocked(place);
  if ((await branchOf(place)) !== branch) return;
  const head = await headOf(place);
  if (head === to) return note({ type: "applied", ...applying });
  if (head !== from || (await whyNotClean(place)) === undefined) return;
  const tree = await writeSnapshotTree(git, repository);
  if (tree.type === "failed" || !(await isHalfForwarded(place, { from, to, tree: tree.text }))) return;
  const done = await git(repository.top, ["reset", "--hard", "--quiet", to], { isUnstoppable: true });
  if (done.type === "done") await note({ type: "applied", ...applying });
}

/** Removes worktrees and branches of children whose changes are in the person's branch, and the integration branch with the last. */
export async function removeMerged(
  place: MergeRepository,
  {
    queue,
    children,
    target,
    note,
  }: {
    readonly queue: MergeQueue;
    readonly children: readonly { readonly kept: KeptBranch; readonly taken: { readonly tip: string } }[];
    readonly target: MergeTarget;
    readonly note: Note;
  },
): Promise<void> {
  const found = await findWorktreeRepository(place.git, place.repository.top);
  if (found.type === "refused") return;
  const { head } = found.repository;
  for (const { kept, taken } of children) {
    const entry = queue.entries.find(({ agent }) => agent === kept.agent);
    const isIn = entry?.state === "integrated" && entry.commit !== undefined;
    const isMerged = isIn
      ? await isAncestor(place, entry.commit ?? "", head)
      : entry?.state === "empty" && head === target.tip;
    if (!isMerged || !(await removeChild(place, kept, taken.tip))) continue;
    await note({ type: "removed", agent: kept.agent, tip: taken.tip, branch: kept.branch });
  }
  if (!target.isOwn || !target.exists || !(await isAncestor(place, target.tip, head))) return;
  const words = ["update-ref", "-d", `refs/heads/${target.branch}`, target.tip];
  await place.git(place.repository.main, words, { isUnstoppable: true });
}

/** Removes what nothing would be lost with: a worktree that is as its last commit says, and a branch that still names that. */
async function removeChild(
  place: MergeRepository,
  { branch, worktree }: KeptBranch,
  tip: string,
): Promise<boolean> {
  if (worktree !== undefined) {
    // Unchanged since its changes were taken, and not since it was made.
    const own = { ...worktree, mark: { ...worktree.mark, base: tip } };
    const removal = await removeUnchanged(place.git, own, { unlessInUse: true });
    return removal.type === "removed";
  }
  if ((await commitOf(place, branch)) !== tip) return false;
  const words = ["update-ref", "-d", `refs/heads/${branch}`, tip];
  return (await place.git(place.repository.main, words, { isUnstoppable: true })).type === "done";
}
