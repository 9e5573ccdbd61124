import { lstat, readdir, readFile, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { runAlone } from "./run-alone.ts";
import { type GitAnswer, type GitOptions, oneLine, type WorktreeGit } from "./run-worktree-git.ts";
import { markFile, parseMark, type WorktreeMark } from "./worktree-mark.ts";
import { contains } from "./worktree-plan.ts";

/** A worktree that Retinue made, and where git keeps what it knows of it. */
export interface OwnWorktree {
  readonly mark: WorktreeMark;
  readonly administration: string;
  readonly commonDirectory: string;
}

export type Removal =
  | { readonly type: "removed" }
  | { readonly type: "kept"; readonly because: string; readonly path: string };

/** Removes a worktree with its branch if it is still the one that was made and nothing was done in it. */
export async function removeUnchanged(
  git: WorktreeGit,
  own: OwnWorktree,
  options: { readonly dryRun?: boolean } = {},
): Promise<Removal> {
  const { path } = own.mark;
  const strange = await whyNotOurs(own);
  if (strange !== undefined) return { type: "kept", path, ...strange };
  const changed = await whyChanged(git, own);
  if (changed !== undefined) return { type: "kept", path, because: changed };
  if (options.dryRun === true) return { type: "removed" };
  return removeOwn(git, own, { force: false });
}

/** Removes it as it is: for one that was never handed out, because making it did not get to the end. */
export async function removeUnfinished(git: WorktreeGit, own: OwnWorktree): Promise<Removal> {
  const strange = await whyNotOurs(own);
  return strange === undefined
    ? removeOwn(git, own, { force: true })
    : { type: "kept", path: own.mark.path, ...strange };
}

export async function folderNumber(path: string): Promise<string | undefined> {
  const found = await lstat(path, { bigint: true }).catch(() => undefined);
  return found?.isDirectory() === true ? String(found.ino) : undefined;
}

/** The mark in what git keeps about one worktree, if there is a whole one. */
export async function readMark(administration: string): Promise<WorktreeMark | undefined> {
  return parseMark(await readText(join(administration, markFile)));
}

interface Strange {
  readonly because: string;
  readonly path?: string;
}

/** The mark, the folder, and both pointers between the folder and git's data must say the same. */
async function whyNotOurs({ mark, administration }: OwnWorktree): Promise<Strange | undefined> {
  const { path } = mark;
  const written = await readMark(administration);
  if (written?.token !== mark.token || written.path !== path || written.branch !== mark.branch) {
    return { because: "git no longer has it as the worktree that was made here, so it is left alone" };
  }
  const link = resolve(administration, (await readText(join(administration, "gitdir"))).trim());
  if (link !== join(path, ".git")) {
    return { because: `it was moved to ${dirname(link)}, so it is left alone`, path: dirname(link) };
  }
  if ((await lstat(join(administration, "locked")).catch(() => undefined)) !== undefined) {
    return { because: "somebody has locked it (git worktree unlock opens it), so it is left alone" };
  }
  const number = await folderNumber(path);
  if (number === undefined)
    return { because: "its folder is gone; its branch and git's record of it are left" };
  const back = (await readText(join(path, ".git"))).replace(/^gitdir: /, "").trim();
  const isSame = number === mark.folder && (await realpath(path)) === path;
  const target = await realpath(resolve(path, back)).catch(() => undefined);
  if (!isSame || target !== administration) {
    return { because: "something else stands in its place, so it is left alone" };
  }
  return undefined;
}

async function whyChanged(git: WorktreeGit, own: OwnWorktree): Promise<string | undefined> {
  const { mark, administration } = own;
  // Named outright, because the pointer in the folder is in the hands of whoever worked there.
  const inIt = (...words: string[]) =>
    git(mark.path, [`--git-dir=${administration}`, `--work-tree=${mark.path}`, ...words]);
  const branch = `refs/heads/${mark.branch}`;
  if (oneLine(await inIt("symbolic-ref", "--quiet", "HEAD")) !== branch)
    return "another branch or commit is checked out in it";
  const tip = oneLine(await inIt("rev-parse", "--verify", "--quiet", branch));
  if (tip !== mark.base) {
    const count = oneLine(await inIt("rev-list", "--count", `${mark.base}..${branch}`));
    return count === "1" ? "it holds 1 commit" : `it holds ${count ?? "other"} commits`;
  }
  const status = await inIt(
    "status",
    "--porcelain=v1",
    "-z",
    "--untracked-files=all",
    "--ignore-submodules=none",
  );
  if (status.type === "failed") return `its state could not be read (${status.because})`;
  if (status.text !== "") return "it holds uncommitted changes";
  if ((await readdir(join(administration, "modules")).catch(() => [])).length > 0) {
    return "it holds submodules of its own";
  }
  return (await whyEntangled(git, own)) ?? whyUnreachable(git, own);
}

async function whyEntangled(git: WorktreeGit, own: OwnWorktree): Promise<string | undefined> {
  const { mark } = own;
  const list = await inRepository(git, own, ["worktree", "list", "--porcelain"]);
  if (list.type === "failed") return `git could not list the worktrees (${list.because})`;
  const others = list.text
    .split("\n\n")
    .map((entry) => entry.split("\n"))
    .filter(([first]) => first?.startsWith("worktree ") === true && first !== `worktree ${mark.path}`);
  const nested = others.find(([first = ""]) => contains(mark.path, resolve(first.slice("worktree ".length))));
  if (nested !== undefined) return "another worktree lies in it";
  const shares = others.some((lines) => lines.includes(`branch refs/heads/${mark.branch}`));
  return shares ? "another worktree has its branch checked out" : undefined;
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
  const answer = await inRepository(git, own, words, { input: `${commits.join("
")}
` });
  if (answer.type === "failed") return `its commits could not be read (${answer.because})`;
  return answer.text === "" ? undefined : "it holds commits that no branch has";
}

async function removeOwn(
  git: WorktreeGit,
  own: OwnWorktree,
  { force }: { readonly force: boolean },
): Promise<Removal> {
  const { mark, commonDirectory } = own;
  const remove = (...more: string[]) =>
    inRepository(git, own, ["worktree", "remove", ...more, "--", mark.path], { isUnstoppable: true });
  return runAlone(commonDirectory, new AbortController().signal, async () => {
    let answer = await remove(...(force ? ["--force"] : []));
    const mindsSubmodules = answer.type === "failed" && answer.because.includes("submodules");
    if (mindsSubmodules && (await whyChanged(git, own)) === undefined) answer = await remove("--force");
    if (answer.type === "failed") {
      return { type: "kept", path: mark.path, because: `git did not remove it (${answer.because})` };
    }
    // Only while it still names the commit it began with.
    const branch = `refs/heads/${mark.branch}`;
    await inRepository(git, own, ["update-ref", "-d", branch, mark.base], { isUnstoppable: true });
    return { type: "removed" };
  });
}

/** Named outright, so that git need not guess what it stands in. */
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
