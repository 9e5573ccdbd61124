import { lstat, readFile, readlink, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { PendingWorktree } from "./pending-worktree.ts";
import type { WorktreeGit } from "./run-worktree-git.ts";
import { pendingFile } from "./write-pending-worktree.ts";
import { makeIndexFolder } from "./write-snapshot-commit.ts";

/**
 * Why a folder that was being filled or removed when its process died holds more than was put there: files may be missing or
 * broken off in the middle, but not be other ones. Of one that was being removed, everything that was there before may go: it had
 * been looked at then. Undefined when nothing in it is anybody's work.
 */
export async function whyTouched(
  git: WorktreeGit,
  commonDirectory: string,
  pending: PendingWorktree,
): Promise<string | undefined> {
  const folder = await makeIndexFolder(commonDirectory);
  try {
    const variables = { GIT_INDEX_FILE: join(folder, "index") };
    const inIt = (...words: string[]) =>
      git(pending.path, [`--git-dir=${commonDirectory}`, `--work-tree=${pending.path}`, ...words], {
        variables,
      });
    const index = await inIt("read-tree", pending.base);
    if (index.type === "failed") return `its first state could not be read (${index.reason})`;
    const changed = await inIt("diff-files", "--name-only", "-z", "--diff-filter=MT");
    if (changed.type === "failed") return `its state could not be read (${changed.reason})`;
    for (const file of namesOf(changed.text)) {
      const first = await inIt("cat-file", "--filters", `${pending.base}:${file}`);
      const whole = first.type === "failed" ? undefined : first.text;
      if (!(await isBeginning(join(pending.path, file), whole))) return `${file} in it was changed`;
    }
    const others = await inIt("ls-files", "--others", "-z");
    if (others.type === "failed") return `its files could not be listed (${others.reason})`;
    const began = await stat(pendingFile(commonDirectory, pending.path));
    const isExpected = (file: string): Promise<boolean> =>
      pending.stage === "adding"
        ? isBroughtAlong(file, pending)
        : isOlder(join(pending.path, file), began.mtimeMs);
    for (const file of namesOf(others.text))
      if (!(await isExpected(file))) return `${file} in it was not put there by the agent's start`;
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function namesOf(text: string): readonly string[] {
  return text.split("\0").filter((name) => name !== "");
}

/** Whether a file is one that was being written when the kill came. The last character may be cut in half. */
async function isBeginning(file: string, whole: string | undefined): Promise<boolean> {
  if (whole === undefined) return false;
  const found = await lstat(file).catch(() => undefined);
  if (found?.isFile() !== true) return false;
  const text = await readFile(file, "utf8").catch(() => undefined);
  return text !== undefined && whole.startsWith(text.slice(0, Math.max(0, text.length - 1)));
}

async function isOlder(file: string, than: number): Promise<boolean> {
  const found = await lstat(file).catch(() => undefined);
  return found === undefined || found.ctimeMs <= than;
}

/** Links and copies of files that git ignores, as they are made when a worktree is filled. */
async function isBroughtAlong(file: string, { path, top, links }: PendingWorktree): Promise<boolean> {
  const [own, source] = [join(path, file), join(top, file)];
  const found = await lstat(own).catch(() => undefined);
  if (found === undefined) return true;
  if (found.isSymbolicLink()) {
    const target = await readlink(own);
    return links.includes(file)
      ? target === source
      : (await lstat(source).catch(() => undefined))?.isSymbolicLink() === true;
  }
  return isBeginning(own, await readFile(source, "utf8").catch(() => undefined));
}
