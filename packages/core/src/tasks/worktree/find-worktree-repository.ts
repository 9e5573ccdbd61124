// @io
import { realpath, stat } from "node:fs/promises";
import { basename, dirname, relative, resolve } from "node:path";
import { type GitAnswer, oneLine, type WorktreeGit } from "./worktree-git.ts";

export interface WorktreeRepository {
  /** The root of the working tree the caller is in, real. */
  readonly top: string;
  /** Where worktrees belong: the root of the main working tree, so that none lies inside another that may be removed. */
  readonly main: string;
  /** What git keeps about this working tree, and about the whole repository. */
  readonly gitDirectory: string;
  readonly commonDirectory: string;
  /** The way from the root to the caller's folder; empty at the root. */
  readonly inside: string;
  /** The commit that is checked out, and its tree. */
  readonly head: string;
  readonly headTree: string;
}

export type RepositoryAnswer =
  | { readonly type: "found"; readonly repository: WorktreeRepository }
  | { readonly type: "refused"; readonly reason: string };

/** Says in one sentence why a folder cannot have worktrees, if so. */
export async function findWorktreeRepository(git: WorktreeGit, directory: string): Promise<RepositoryAnswer> {
  const folder = await findFolder(directory);
  if (folder === undefined) return refused(`${directory} is not a folder`);
  const found = (await askTogether(git, folder)) ?? (await askOneByOne(git, { folder, directory }));
  if (typeof found === "string") return refused(found);
  const [top = "", gitDirectory = "", commonDirectory = ""] = await Promise.all(
    found.places.map((place) => realpath(resolve(folder, place))),
  );
  const { head, headTree } = found;
  const inside = relative(top, folder);
  const main = await findMain(git, { top, commonDirectory });
  return { type: "found", repository: { top, main, gitDirectory, commonDirectory, inside, head, headTree } };
}

interface RepositoryFacts {
  /** The root of the working tree, git's data of it, and git's data of the repository, as git names them. */
  readonly places: readonly string[];
  readonly head: string;
  readonly headTree: string;
}

const placeOptions = ["--show-toplevel", "--absolute-git-dir", "--git-common-dir"];
const headNames = ["HEAD^{commit}", "HEAD^{tree}"];

/** One process for the usual case; undefined where git refuses one of the questions or a path contains a line break. */
async function askTogether(git: WorktreeGit, folder: string): Promise<RepositoryFacts | undefined> {
  const answer = await git(folder, ["rev-parse", "--is-inside-work-tree", ...placeOptions, ...headNames]);
  const [isInside, top = "", own = "", common = "", head = "", headTree = "", ...more] =
    oneLine(answer)?.split("\n") ?? [];
  if (isInside !== "true" || headTree === "" || more.length > 0) return undefined;
  return { places: [top, own, common], head, headTree };
}

/** Each question by itself, so that the reason is known where git does not answer one. */
async function askOneByOne(
  git: WorktreeGit,
  { folder, directory }: { readonly folder: string; readonly directory: string },
): Promise<RepositoryFacts | string> {
  const kind = await git(folder, ["rev-parse", "--is-bare-repository", "--is-inside-work-tree"]);
  if (kind.type === "failed") {
    if (kind.isMissing === true) return "git was not found on the PATH; install it";
    if (kind.reason.includes("not a git repository")) {
      return `${directory} is not in a git repository; run git init and make a first commit`;
    }
    return kind.reason;
  }
  if (kind.text.trim().split("\n")[1] !== "true") {
    const what = kind.text.startsWith("true") ? "in a bare repository" : "in git's own data";
    return `${directory} is ${what}, where no files are checked out; start in a working tree`;
  }
  const answers = await Promise.all(placeOptions.map((what) => git(folder, ["rev-parse", what])));
  const failure = answers.find((answer) => answer.type === "failed");
  if (failure?.type === "failed") return failure.reason;
  const places = answers.map((answer) => oneLine(answer) ?? "");
  const [head, headTree] = await Promise.all(
    headNames.map(async (name) => oneLine(await verify(git, folder, name))),
  );
  if (head !== undefined && headTree !== undefined) return { places, head, headTree };
  return git.signal.aborted
    ? "it was stopped"
    : `the repository ${places[0]} has no commit yet; make a first commit`;
}

/** Git answers relative to the real folder, whatever link led to it. */
async function findFolder(directory: string): Promise<string | undefined> {
  const real = await realpath(directory).catch(() => undefined);
  const found = real === undefined ? undefined : await stat(real).catch(() => undefined);
  return found?.isDirectory() === true ? real : undefined;
}

function verify(git: WorktreeGit, directory: string, name: string): Promise<GitAnswer> {
  return git(directory, ["rev-parse", "--verify", "--quiet", "--end-of-options", name]);
}

export async function findCommit(
  git: WorktreeGit,
  directory: string,
  name: string,
): Promise<string | undefined> {
  return oneLine(await verify(git, directory, `${name}^{commit}`));
}

/** The commit of the default branch, as last fetched; without a remote, the local branch of the usual name. */
export async function findDefaultBranch(git: WorktreeGit, directory: string): Promise<string | undefined> {
  const configured = oneLine(await git(directory, ["config", "--get", "init.defaultBranch"]));
  const names = [configured, "main", "master"].filter((name) => name !== undefined && name !== "");
  for (const name of ["refs/remotes/origin/HEAD", ...names.map((branch) => `refs/heads/${branch}`)]) {
    const commit = await findCommit(git, directory, name);
    if (commit !== undefined) return commit;
  }
  return undefined;
}

/** In a submodule, or beside a bare repository, there is no main working tree to be found from git's data. */
async function findMain(
  git: WorktreeGit,
  { top, commonDirectory }: { readonly top: string; readonly commonDirectory: string },
): Promise<string> {
  const candidate = dirname(commonDirectory);
  if (candidate === top || basename(commonDirectory) !== ".git") return top;
  const answer = oneLine(await git(candidate, ["rev-parse", "--show-toplevel"]));
  const real = answer === undefined ? undefined : await realpath(answer).catch(() => undefined);
  return real === candidate ? candidate : top;
}

function refused(reason: string): RepositoryAnswer {
  return { type: "refused", reason };
}
