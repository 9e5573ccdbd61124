// @io
import { constants } from "node:fs";
import { copyFile, lstat, mkdir, readFile, realpath, symlink } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { updateFile } from "@retinue/config/settings/update-file.ts";
import type { WorktreeRepository } from "./find-worktree-repository.ts";
import type { WorktreeGit } from "./worktree-git.ts";
import { excludePattern } from "./worktree-plan.ts";

export interface ExtraFiles {
  readonly repository: WorktreeRepository;
  readonly path: string;
  readonly links: readonly string[];
}

/** The file that names, in the syntax of .gitignore, which ignored files a worktree gets a copy of. */
const includeFile = ".worktreeinclude";
const maxCopies = 10_000;

/** Links and copies what git ignores and the worktree still needs. Returns why it could not, or undefined. */
export async function writeExtraFiles(git: WorktreeGit, extra: ExtraFiles): Promise<string | undefined> {
  const { repository, path } = extra;
  const linked = await linkFolders(git, extra);
  const named = await findNamed(git, repository.top);
  if (typeof named === "string") return named;
  if (named.length > maxCopies) {
    return `${includeFile} names ${named.length} files, and at most ${maxCopies} are copied; list large folders in worktree.symlinkDirectories instead`;
  }
  const copied: string[] = [];
  for (const file of named) {
    git.signal.throwIfAborted();
    if (await copyOne(file, { from: repository.top, to: path })) copied.push(file);
  }
  return hideUntracked(git, extra, new Set([...linked, ...copied]));
}

/** Adds lines to the repository's own exclude file, once. Returns why it could not, or undefined. */
export async function excludeFromStatus(
  commonDirectory: string,
  lines: readonly string[],
): Promise<string | undefined> {
  const file = join(commonDirectory, "info", "exclude");
  const missingIn = (text: string) => {
    const present = new Set(text.split(/\r?\n/));
    return lines.filter((line) => !present.has(line));
  };
  if (missingIn(await readFile(file, "utf8").catch(() => "")).length === 0) return undefined;
  const update = await updateFile(file, (text = "") => {
    const missing = missingIn(text);
    if (missing.length === 0) return { type: "unchanged" };
    const gap = text === "" || text.endsWith("\n") ? "" : "\n";
    return { type: "write", text: `${text}${gap}${missing.join("\n")}\n` };
  });
  return update.type === "refused" ? update.why : undefined;
}

/** Makes the folders of a relative way below a root, and none through a link that could lead out of it. */
export async function makeFolders(root: string, way: string): Promise<boolean> {
  let at = root;
  for (const part of way.split(sep).filter((name) => name !== "" && name !== ".")) {
    at = join(at, part);
    await mkdir(at).catch(() => undefined);
    const found = await lstat(at).catch(() => undefined);
    if (found === undefined || !found.isDirectory()) return false;
  }
  return true;
}

async function linkFolders(git: WorktreeGit, { repository, path, links }: ExtraFiles): Promise<string[]> {
  const folders: string[] = [];
  for (const link of links) if (await isFolder(join(repository.top, link))) folders.push(link);
  const made: string[] = [];
  for (const link of await findIgnoredFolders(git, repository.top, folders)) {
    if (!(await makeFolders(path, dirname(link)))) continue;
    const outcome = symlink(join(repository.top, link), join(path, link), "junction");
    if (
      await outcome.then(
        () => true,
        () => false,
      )
    )
      made.push(link);
  }
  return made;
}

/** Also one that a link leads to. */
async function isFolder(path: string): Promise<boolean> {
  const found = await realpath(path).then(
    (real) => lstat(real),
    () => undefined,
  );
  return found?.isDirectory() === true;
}

/** Git refuses to answer at all where one of them lies behind a link; that one is not ignored, the others may be. */
async function findIgnoredFolders(
  git: WorktreeGit,
  top: string,
  folders: readonly string[],
): Promise<readonly string[]> {
  const together = await findIgnored(git, top, folders);
  if (typeof together !== "string") return folders.filter((folder) => together.has(folder));
  const apart = await Promise.all(folders.map((folder) => findIgnored(git, top, [folder])));
  return apart.flatMap((answer) => (typeof answer === "string" ? [] : [...answer]));
}

async function findIgnored(
  git: WorktreeGit,
  top: string,
  paths: readonly string[],
): Promise<ReadonlySet<string> | string> {
  if (paths.length === 0) return new Set();
  const answer = await git(top, ["check-ignore", "-z", "--stdin"], { input: `${paths.join("\0")}\0` });
  // Exit code 1 says that none of them is ignored.
  if (answer.type === "failed") return answer.exitCode === 1 ? new Set() : answer.reason;
  return new Set(answer.text.split("\0").filter((path) => path !== ""));
}

/** Files that are both named by the include file and ignored by git. */
async function findNamed(git: WorktreeGit, top: string): Promise<readonly string[] | string> {
  const hasList = await lstat(join(top, includeFile)).then(
    () => true,
    () => false,
  );
  if (!hasList) return [];
  const listed = await git(top, ["ls-files", "--others", "--ignored", `--exclude-from=${includeFile}`, "-z"]);
  if (listed.type === "failed") return listed.reason;
  const files = listed.text.split("\0").filter((file) => file !== "");
  const ignored = await findIgnored(git, top, files);
  return typeof ignored === "string" ? ignored : [...ignored].filter((file) => !file.endsWith("/"));
}

/** Never over a file that is there. A link is made anew to where it leads, because it may have been relative. */
async function copyOne(
  file: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<boolean> {
  const [source, target] = [join(from, file), join(to, file)];
  const found = await lstat(source).catch(() => undefined);
  const isLink = found?.isSymbolicLink() === true;
  if (!isLink && found?.isFile() !== true) return false;
  if (!(await makeFolders(to, dirname(file)))) return false;
  const copy = isLink
    ? realpath(source).then((real) => symlink(real, target))
    : copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  return copy.then(
    () => true,
    () => false,
  );
}

/** `node_modules/` ignores a folder but no link to one, and an older base ignores less: what was put in is no change. */
async function hideUntracked(
  git: WorktreeGit,
  { repository, path }: ExtraFiles,
  made: ReadonlySet<string>,
): Promise<string | undefined> {
  if (made.size === 0) return undefined;
  const status = await git(path, ["ls-files", "--others", "--exclude-standard", "-z"]);
  if (status.type === "failed") return status.reason;
  const untracked = status.text.split("\0").map((file) => file.split("/").join(sep));
  const seen = untracked.filter((file) => made.has(file) && !/[\r\n]/.test(file));
  return excludeFromStatus(repository.commonDirectory, seen.map(excludePattern));
}
