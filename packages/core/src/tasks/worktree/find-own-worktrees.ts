// @io
import { lstat, readdir, readFile, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseGitPointer } from "@retinue/base/foundation/parse-git-pointer.ts";
import { isOnThisMachine, isRunning, thisProcess } from "@retinue/base/storage/process-identity.ts";
import { runAlone } from "../run-alone.ts";
import { type GitAnswer, type GitOptions, oneLine, type WorktreeGit } from "./worktree-git.ts";
import { markFile, parseMark, type WorktreeMark } from "./worktree-mark.ts";
import { contains } from "./worktree-plan.ts";
import { removePending, writePending } from "./write-pending.ts";

/** A worktree that Retinue made, and where git keeps what it knows of it. */
export interface OwnWorktree {
  readonly mark: WorktreeMark;
  readonly administration: string;
  readonly commonDirectory: string;
}

/** Those of a repository that bear a whole mark; the others are left out. */
export async function findOwnWorktrees(commonDirectory: string): Promise<readonly OwnWorktree[]> {
  const folder = join(commonDirectory, "worktrees");
  const names = await readdir(folder).catch(() => []);
  const found = await Promise.all(
    names.sort().map(async (name) => {
      const administration = join(folder, name);
      const mark = await readMark(administration);
      return mark === undefined ? [] : [{ mark, administration, commonDirectory }];
    }),
  );
  return found.flat();
}

export async function readMark(administration: string): Promise<WorktreeMark | undefined> {
  return parseMark(await readFile(join(administration, markFile), "utf8").catch(() => ""));
}

/** Why an agent or a person may be at work in it, or undefined. */
export function whyInUse({ ended, owner }: WorktreeMark): string | undefined {
  if (ended !== undefined) return undefined;
  if (!isOnThisMachine(owner)) return "its agent was started on another machine and may still be running";
  return isRunning(owner) ? "the process that made it is still running" : undefined;
}

/** What shows a folder from another one in its place. */
export async function folderNumber(path: string): Promise<string | undefined> {
  const found = await lstat(path, { bigint: true }).catch(() => undefined);
  return found?.isDirectory() === true ? String(found.ino) : undefined;
}

type Removal =
  | { readonly type: "removed" }
  | { readonly type: "kept"; readonly reason: string; readonly path: string };

/** Removes a worktree with its branch if it is still the one that was made and nothing was done in it. */
export async function removeUnchanged(
  git: WorktreeGit,
  own: OwnWorktree,
  options: { readonly dryRun?: boolean; readonly unlessInUse?: boolean } = {},
): Promise<Removal> {
  const early = await whyNotOurs(own);
  if (early !== undefined) return kept(own, early);
  const changed = await whyChanged(git, own);
  if (changed !== undefined) return kept(own, { reason: changed });
  return alone(own, async () => {
    const late = (await whyNotOurs(own)) ?? (await whyEntangled(git, own)) ?? (await whyTaken(own, options));
    if (late !== undefined) return kept(own, late);
    return options.dryRun === true ? { type: "removed" } : removeOwn(git, own, { force: false });
  });
}

/** Its agent may have been resumed in it meanwhile. */
async function whyTaken(
  { administration }: OwnWorktree,
  { unlessInUse }: { readonly unlessInUse?: boolean },
): Promise<WorktreeProblem | undefined> {
  const mark = unlessInUse === true ? await readMark(administration) : undefined;
  const reason = mark === undefined ? undefined : whyInUse(mark);
  return reason === undefined ? undefined : { reason };
}

/** Removes it as it is: for one that was never handed out, because making it did not get to the end. */
export async function removeUnfinished(git: WorktreeGit, own: OwnWorktree): Promise<Removal> {
  return alone(own, async () => {
    const strange = await whyNotOurs(own);
    return strange === undefined ? removeOwn(git, own, { force: true }) : kept(own, strange);
  });
}

interface WorktreeProblem {
  readonly reason: string;
  readonly path?: string;
}

function kept({ mark }: OwnWorktree, strange: WorktreeProblem): Removal {
  return { type: "kept", path: mark.path, ...strange };
}

function alone({ commonDirectory }: OwnWorktree, action: () => Promise<Removal>): Promise<Removal> {
  return runAlone(commonDirectory, new AbortController().signal, action);
}

/** The mark, the folder, and both pointers between the folder and git's data must say the same. */
export async function whyNotOurs({
  mark,
  administration,
}: OwnWorktree): Promise<WorktreeProblem | undefined> {
  const { path } = mark;
  const written = await readMark(administration);
  if (written?.token !== mark.token || written.path !== path || written.branch !== mark.branch) {
    return { reason: "git no longer lists it as the worktree that was created here, so it was left alone" };
  }
  const pointer = parseGitPointer(await readText(join(administration, "gitdir")), "");
  const link = resolve(administration, pointer ?? "");
  if (link !== join(path, ".git")) {
    return { reason: `it was moved to ${dirname(link)}, so it was left alone`, path: dirname(link) };
  }
  if ((await lstat(join(administration, "locked")).catch(() => undefined)) !== undefined) {
    return { reason: "it is locked (git worktree unlock unlocks it), so it was left alone" };
  }
  const number = await folderNumber(path);
  if (number === undefined)
    return { reason: "its folder is gone; its branch and git's record of it were kept" };
  const back = parseGitPointer(await readText(join(path, ".git")), "gitdir: ");
  const isSame = number === mark.folder && (await realpath(path)) === path;
  const target = await realpath(resolve(path, back ?? "")).catch(() => undefined);
  if (!isSame || target !== administration) {
    return { reason: "something else is in its place, so it was left alone" };
  }
  return undefined;
}

async function whyChanged(git: WorktreeGit, own: OwnWorktree): Promise<string | undefined> {
  const { mark, administration } = own;
  // Named outright, because the pointer in the folder is in the hands of the one that worked there.
  const inIt = (...words: string[]) =>
    git(mark.path, [`--git-dir=${administration}`, `--work-tree=${mark.path}`, ...words]);
  const words = ["--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=none"];
  const status = await inIt("status", ...words);
  if (status.type === "failed") return `its state could not be read (${status.reason})`;
  // The branch and the commit that are checked out, and how many entries there are beside them.
  const entries = status.text.split("\0").filter((entry) => entry !== "");
  const header = (name: string) =>
    entries.find((entry) => entry.startsWith(`# ${name} `))?.slice(`# ${name} `.length);
  const changes = entries.filter((entry) => !entry.startsWith("# ")).length;
  const head = header("branch.head");
  const tip = header("branch.oid");
  if (head !== mark.branch) return "another branch or commit is checked out in it";
  if (tip !== mark.base) {
    const count = oneLine(await inIt("rev-list", "--count", `${mark.base}..refs/heads/${mark.branch}`));
    return count === "1" ? "it contains 1 commit" : `it contains ${count ?? "other"} commits`;
  }
  if (changes > 0) return "it contains uncommitted changes";
  if ((await readdir(join(administration, "modules")).catch(() => [])).length > 0) {
    return "it contains submodules of its own";
  }
  return whyUnreachable(git, own);
}

async function whyEntangled(git: WorktreeGit, own: OwnWorktree): Promise<WorktreeProblem | undefined> {
  const { mark } = own;
  const list = await inRepository(git, own, ["worktree", "list", "--porcelain"]);
  if (list.type === "failed") return { reason: `git could not list the worktrees (${list.reason})` };
  const others = list.text
    .split("\n\n")
    // A path may hold a line break, so ours is recognised before the lines are taken apart.
    .filter((entry) => entry.startsWith("worktree ") && !entry.startsWith(`worktree ${mark.path}\n`))
    .map((entry) => entry.split("\n"));
  const nested = others.find(([first = ""]) => contains(mark.path, resolve(first.slice("worktree ".length))));
  if (nested !== undefined) return { reason: "it contains another worktree" };
  const shares = others.some((lines) => lines.includes(`branch refs/heads/${mark.branch}`));
  return shares ? { reason: "another worktree has its branch checked out" } : undefined;
}

/** Commits that were made and left again are known to nothing but this worktree's own record of where HEAD has been. */
async function whyUnreachable(git: WorktreeGit, own: OwnWorktree): Promise<string | undefined> {
  const { mark, administration } = own;
  const record = await readText(join(administration, "logs", "HEAD"));
  const visited = new Set(
    record.split("\n").flatMap((line) => /^[0-9a-f]+ ([0-9a-f]+) /.exec(line)?.[1] ?? []),
  );
  visited.delete(mark.base);
  const commits = [...visited].filter((commit) => !/^0+$/.test(commit));
  if (commits.length === 0) return undefined;
  const held = ["--not", "--branches", "--tags", "--remotes", mark.base];
  const words = ["rev-list", "--max-count=1", "--ignore-missing", "--stdin", ...held];
  const answer = await inRepository(git, own, words, { input: `${commits.join("\n")}\n` });
  if (answer.type === "failed") return `its commits could not be read (${answer.reason})`;
  return answer.text === "" ? undefined : "it contains commits that are on no branch";
}

async function removeOwn(
  git: WorktreeGit,
  own: OwnWorktree,
  { force }: { readonly force: boolean },
): Promise<Removal> {
  const { mark } = own;
  const act = (...words: string[]) => inRepository(git, own, words, { isUnstoppable: true });
  const { agentId, path, branch, base, started } = mark;
  const top = dirname(own.commonDirectory);
  writePending(own.commonDirectory, {
    ...{ stage: "removing", agentId, path, branch, base, top, links: [], started },
    owner: thisProcess(),
  });
  let answer = await act("worktree", "remove", ...(force ? ["--force"] : []), "--", mark.path);
  const mindsSubmodules = answer.type === "failed" && answer.reason.includes("submodules");
  if (mindsSubmodules && (await whyChanged(git, own)) === undefined) {
    answer = await act("worktree", "remove", "--force", "--", mark.path);
  }
  if (answer.type === "failed") {
    removePending(own.commonDirectory, { path });
    return kept(own, { reason: `git did not remove it (${answer.reason})` });
  }
  // Git deletes the branch only while it still names the commit it began with.
  await act("update-ref", "-d", `refs/heads/${mark.branch}`, mark.base);
  removePending(own.commonDirectory, { path });
  return { type: "removed" };
}

/** Named outright, so that git need not guess what it is in. */
function inRepository(
  git: WorktreeGit,
  { commonDirectory }: OwnWorktree,
  words: readonly string[],
  options?: GitOptions,
): Promise<GitAnswer> {
  return git(commonDirectory, [`--git-dir=${commonDirectory}`, ...words], options);
}

async function readText(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}
