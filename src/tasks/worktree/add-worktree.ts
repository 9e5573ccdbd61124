// @io
import { randomBytes } from "node:crypto";
import { lstat, mkdir, realpath, rmdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { createWholeFile } from "../../storage/create-whole-file.ts";
import { thisProcess } from "../../storage/process-identity.ts";
import { folderNumber, type OwnWorktree } from "./find-own-worktrees.ts";
import type { WorktreeRepository } from "./find-worktree-repository.ts";
import { type GitAnswer, oneLine, type WorktreeGit } from "./worktree-git.ts";
import { formatMark, markFile, type WorktreeMark } from "./worktree-mark.ts";
import { contains, folderExcludes, type PlannedWorktree } from "./worktree-plan.ts";
import { excludeFromStatus, makeFolders, writeExtraFiles } from "./write-extra-files.ts";
import { removePending, writePending } from "./write-pending.ts";

export interface WorktreeAddition {
  readonly agentId: string;
  /** Milliseconds since 1970. */
  readonly started: number;
  readonly repository: WorktreeRepository;
  readonly plan: PlannedWorktree;
  readonly base: string;
}

/** Short, and never stopped halfway: branch, folder and mark come into being together, or it throws with a reason. */
export async function addWorktree(git: WorktreeGit, addition: WorktreeAddition): Promise<OwnWorktree> {
  const { repository, plan, base } = addition;
  const { main, top, commonDirectory } = repository;
  const folder = await openFolder(repository, plan.folder);
  const diagnostic = await excludeFromStatus(commonDirectory, folderExcludes([main, top], folder));
  if (diagnostic !== undefined) throw new Error(diagnostic);
  const path = join(folder, plan.name);
  const act = (...words: string[]) => git(main, words, { isUnstoppable: true });
  const reference = `refs/heads/${plan.branch}`;
  if (await isThere(path)) throw new Error(`${path} could not be made, or is there already`);
  if ((await act("show-ref", "--verify", "--quiet", reference)).type === "done")
    throw new Error(`git update-ref: reference already exists: ${reference}`);
  // From here on, the one that finds this process dead knows what it was about to make.
  writePending(commonDirectory, pendingOf(addition, path));
  const giveUp = async (error: unknown): Promise<never> => {
    removePending(commonDirectory, { path });
    throw error;
  };
  await mkdir(path).catch(() => giveUp(new Error(`${path} could not be made, or is there already`)));
  try {
    // An empty old value lets git make the branch only if there is none.
    must(await act("update-ref", reference, base, ""));
  } catch (error) {
    await rmdir(path);
    return giveUp(error);
  }
  try {
    must(await act("worktree", "add", "--no-checkout", "--", path, plan.branch));
    const administration = await findAdministration(git, path, commonDirectory);
    const mark: WorktreeMark = {
      agentId: addition.agentId,
      token: randomBytes(12).toString("hex"),
      path,
      folder: (await folderNumber(path)) ?? "",
      branch: plan.branch,
      base,
      started: addition.started,
      owner: thisProcess(),
    };
    createWholeFile(join(administration, markFile), formatMark(mark));
    return { mark, administration, commonDirectory };
  } catch (error) {
    await act("worktree", "remove", "--force", "--", path);
    await rmdir(path).catch(() => undefined);
    await act("update-ref", "-d", reference, base);
    return giveUp(error);
  }
}

function pendingOf({ agentId, started, repository, plan, base }: WorktreeAddition, path: string) {
  const { branch, links } = plan;
  const owner = thisProcess();
  return {
    stage: "adding",
    agentId,
    path,
    branch,
    base,
    top: repository.top,
    links,
    started,
    owner,
  } as const;
}

async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

async function findAdministration(git: WorktreeGit, path: string, commonDirectory: string): Promise<string> {
  const answer = await git(path, ["rev-parse", "--absolute-git-dir"], { isUnstoppable: true });
  must(answer);
  const found = await realpath(oneLine(answer) ?? path);
  if (contains(join(commonDirectory, "worktrees"), found)) return found;
  throw new Error(`git keeps its record of ${path} in ${found}, where none was expected`);
}

/** A repository may bring links; none of them decides where in it the worktrees are. */
async function openFolder({ main, commonDirectory }: WorktreeRepository, folder: string): Promise<string> {
  if (contains(main, folder)) {
    if (await makeFolders(main, relative(main, folder))) return folder;
    throw new Error(
      `${folder} is not a real folder, or could not be made; a link on the way is not followed`,
    );
  }
  await mkdir(folder, { recursive: true });
  const real = await realpath(folder);
  if (contains(commonDirectory, real)) throw new Error(`${folder} leads into git's own data`);
  return real;
}

export interface WorktreeFilling {
  readonly own: OwnWorktree;
  readonly repository: WorktreeRepository;
  readonly plan: PlannedWorktree;
}

/** Checks the files out and brings along what git ignores; throws with a reason. */
export async function fillWorktree(
  git: WorktreeGit,
  { own, repository, plan }: WorktreeFilling,
): Promise<void> {
  const { path } = own.mark;
  must(await git(path, ["reset", "--hard", "--quiet"]));
  const diagnostic = await writeExtraFiles(git, { repository, path, links: plan.links });
  if (diagnostic !== undefined) throw new Error(diagnostic);
  if (!(await makeFolders(path, repository.inside))) {
    throw new Error(`the folder ${repository.inside} has no counterpart in the worktree`);
  }
}

function must(answer: GitAnswer): void {
  if (answer.type === "failed") throw new Error(answer.reason);
}
