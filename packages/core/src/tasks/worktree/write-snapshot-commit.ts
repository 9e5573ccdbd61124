// @io
import { copyFile, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  isOnThisMachine,
  isRunning,
  readIdentity,
  thisProcess,
} from "@retinue/base/storage/process-identity.ts";
import type { WorktreeRepository } from "./find-worktree-repository.ts";
import { type GitAnswer, oneLine, type WorktreeGit } from "./worktree-git.ts";

/**
 * Makes a commit of HEAD with all changes that git would add, without touching the index, the stash or any file. The
 * answer is HEAD itself when nothing has changed.
 */
export async function writeSnapshotCommit(
  git: WorktreeGit,
  repository: WorktreeRepository,
  message: string,
): Promise<GitAnswer> {
  const tree = await writeSnapshotTree(git, repository);
  if (tree.type === "failed") return tree;
  return commitTree(git, repository, { tree: tree.text, message });
}

/** The tree of everything that git would add, untracked files included, without touching the index or any file. */
export async function writeSnapshotTree(
  git: WorktreeGit,
  repository: WorktreeRepository,
): Promise<GitAnswer> {
  const folder = await makeIndexFolder(repository.gitDirectory);
  try {
    const variables = { GIT_INDEX_FILE: join(folder, "index") };
    const prepared = await prepareIndex(git, repository, variables);
    if (prepared.type === "failed") return prepared;
    const added = await addEverything(git, repository.top, variables);
    if (added === "unchanged") return { type: "done", text: repository.headTree };
    if (added.type === "failed") return added;
    const tree = await git(repository.top, ["write-tree"], { variables });
    return tree.type === "failed" ? tree : { type: "done", text: oneLine(tree) ?? "" };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const indexPrefix = "retinue-index-";
const ownerFile = "owner.json";

/** A folder in git's own data for an index beside the person's, with a note of who has it. */
export async function makeIndexFolder(directory: string): Promise<string> {
  const folder = await mkdtemp(join(directory, indexPrefix));
  await writeFile(join(folder, ownerFile), JSON.stringify(thisProcess()));
  return folder;
}

/** Removes such folders of processes that are gone. */
export async function removeStaleIndexes(directory: string): Promise<void> {
  const names = (await readdir(directory).catch(() => [])).filter((name) => name.startsWith(indexPrefix));
  for (const name of names) {
    const folder = join(directory, name);
    const owner = readIdentity(await readFile(join(folder, ownerFile), "utf8").catch(() => ""));
    if (owner !== undefined && isOnThisMachine(owner) && !isRunning(owner))
      await rm(folder, { recursive: true, force: true });
  }
}

type Variables = Readonly<Record<string, string>>;

/** A copy keeps what git knows of each file, its age included: by it git knows which files it must read again. */
async function prepareIndex(
  git: WorktreeGit,
  { gitDirectory, top, head }: WorktreeRepository,
  variables: Variables,
): Promise<GitAnswer> {
  const source = join(gitDirectory, "index");
  const target = variables["GIT_INDEX_FILE"] ?? "";
  const found = await stat(source).catch(() => undefined);
  if (found === undefined) return git(top, ["read-tree", head], { variables });
  await copyFile(source, target);
  const modified = Math.floor(found.mtimeMs / 1000);
  await utimes(target, modified, modified);
  return { type: "done", text: "" };
}

/** Repositories inside this one cannot be part of its commit, only be named by it, so they are left out. */
async function addEverything(
  git: WorktreeGit,
  top: string,
  variables: Variables,
): Promise<GitAnswer | "unchanged"> {
  const words = [
    "--porcelain=v1",
    "-z",
    "--no-renames",
    "--untracked-files=all",
    "--ignore-submodules=dirty",
  ];
  const status = await git(top, ["status", ...words], { variables });
  if (status.type === "failed") return status;
  const entries = status.text.split("\0").filter((entry) => entry !== "");
  const nested = entries.filter((entry) => /^\?\? .*\/$/s.test(entry)).map((entry) => entry.slice(3));
  if (entries.length === nested.length) return "unchanged";
  const left = nested.map((path) => `:(top,exclude,literal)${path}`);
  return git(top, ["add", "--all", "--", ":/", ...left], { variables });
}

async function commitTree(
  git: WorktreeGit,
  { top, head, headTree }: WorktreeRepository,
  { tree, message }: { readonly tree: string; readonly message: string },
): Promise<GitAnswer> {
  if (headTree === tree) return { type: "done", text: head };
  const [name, email] = ["Retinue", "retinue@localhost"];
  const variables = {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  };
  const words = ["commit-tree", "--no-gpg-sign", "-p", head, "-F", "-", tree];
  return git(top, words, { variables, input: `${message}\n` });
}
