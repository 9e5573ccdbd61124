import { randomBytes } from "node:crypto";
import { mkdir, realpath, rmdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { createWholeFile, replaceWholeFile } from "../storage/create-whole-file.ts";
import { thisProcess } from "../storage/process-identity.ts";
import {
  findDefaultBranch,
  findWorktreeRepository,
  type WorktreeRepository,
} from "./find-worktree-repository.ts";
import { runAlone } from "./run-alone.ts";
import { createWorktreeGit, type GitAnswer, oneLine, type WorktreeGit } from "./run-worktree-git.ts";
import {
  folderNumber,
  type OwnWorktree,
  readMark,
  removeUnchanged,
  removeUnfinished,
} from "./run-worktree-removal.ts";
import { formatMark, markFile, type WorktreeMark } from "./worktree-mark.ts";
import {
  contains,
  folderExcludes,
  planWorktree,
  type WorktreePlan,
  type WorktreeSettings,
} from "./worktree-plan.ts";
import { writeSnapshotCommit } from "./write-snapshot-commit.ts";
import { excludeFromStatus, makeFolders, writeExtraFiles } from "./write-worktree-files.ts";

export interface WorktreeRequest {
  readonly directory: string;
  readonly agentId: string;
  readonly agentName: string;
  readonly settings: WorktreeSettings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

export type WorktreeStart =
  | { readonly type: "made"; readonly worktree: Worktree }
  | { readonly type: "refused"; readonly because: string };

export interface Worktree {
  readonly path: string;
  readonly branch: string;
  /** The folder inside it that corresponds to the caller's directory. */
  readonly directory: string;
  /** Removes it if nothing was done in it, and says what became of it. Never rejects; a second call does nothing more. */
  finish(): Promise<WorktreeEnd>;
}

export interface WorktreeEnd {
  readonly kept: boolean;
  readonly path: string;
  readonly branch: string;
  readonly because: string;
}

/** Gives an agent a working tree and a branch of its own, whole or not at all. Never rejects. */
export async function makeWorktree(request: WorktreeRequest): Promise<WorktreeStart> {
  try {
    const worktree = await make(request);
    return { type: "made", worktree };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const because = request.signal.aborted ? "it was stopped" : why.replace(/\.$/, "");
    return { type: "refused", because: `No worktree was made, because ${because}.` };
  }
}

type Planned = WorktreePlan & { readonly type: "planned" };

/** Reasons travel as plain errors up to `makeWorktree`, so that each stage can undo what it did on their way. */
async function make(request: WorktreeRequest): Promise<Worktree> {
  const { directory, environment, signal } = request;
  const git = createWorktreeGit({ environment, signal });
  const answer = await findWorktreeRepository(git, directory);
  if (answer.type === "refused") throw new Error(answer.because);
  const { repository } = answer;
  const plan = planWorktree({
    ...request,
    repository: repository.main,
    gitDirectory: repository.commonDirectory,
    home: environment["HOME"] ?? environment["USERPROFILE"],
  });
  if (plan.type === "refused") throw new Error(plan.because);
  const base = await findBase(git, repository, request);
  const own = await runAlone(repository.commonDirectory, signal, () =>
    add(git, { request, repository, plan, base }),
  );
  try {
    await fill(git, { own, repository, plan });
    signal.throwIfAborted();
  } catch (error) {
    const undone = await removeUnfinished(git, own);
    if (undone.type === "removed") throw error;
    throw new Error(`${messageOf(error)}; ${own.mark.path} is left over: ${undone.because}`);
  }
  return handOut(own, {
    directory: join(own.mark.path, repository.inside),
    environment,
    now: nowOf(request),
  });
}

async function findBase(
  git: WorktreeGit,
  repository: WorktreeRepository,
  { settings, agentName }: WorktreeRequest,
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
          `the uncommitted changes could not be taken along (${commit.because}); worktree.baseRef: head leaves them out`,
        );
      }
      return oneLine(commit) ?? "";
    }
    default:
      throw new Error(`worktree.baseRef is ${JSON.stringify(wanted)}; write current, head or fresh`);
  }
}

interface Addition {
  readonly request: WorktreeRequest;
  readonly repository: WorktreeRepository;
  readonly plan: Planned;
  readonly base: string;
}

/** Short, and never stopped halfway: branch, folder and mark come into being together, and go together. */
async function add(git: WorktreeGit, { request, repository, plan, base }: Addition): Promise<OwnWorktree> {
  const { main, top, commonDirectory } = repository;
  const folder = await openFolder(repository, plan.folder);
  const problem = await excludeFromStatus(commonDirectory, folderExcludes([main, top], folder));
  if (problem !== undefined) throw new Error(problem);
  const path = join(folder, plan.name);
  const act = (...words: string[]) => git(main, words, { isUnstoppable: true });
  const reference = `refs/heads/${plan.branch}`;
  await mkdir(path).catch(() => {
    throw new Error(`${path} could not be made, or is there already`);
  });
  try {
    // An empty old value lets git make the branch only if there is none.
    must(await act("update-ref", reference, base, ""));
  } catch (error) {
    await rmdir(path);
    throw error;
  }
  try {
    must(await act("worktree", "add", "--no-checkout", "--", path, plan.branch));
    const found =
      oneLine(await git(path, ["rev-parse", "--absolute-git-dir"], { isUnstoppable: true })) ?? "";
    const administration = await realpath(found);
    const mark: WorktreeMark = {
      agentId: request.agentId,
      token: randomBytes(12).toString("hex"),
      path,
      folder: (await folderNumber(path)) ?? "",
      branch: plan.branch,
      base,
      started: nowOf(request)(),
      owner: thisProcess(),
    };
    createWholeFile(join(administration, markFile), formatMark(mark));
    return { mark, administration, commonDirectory };
  } catch (error) {
    await act("worktree", "remove", "--force", "--", path);
    await rmdir(path).catch(() => undefined);
    await act("update-ref", "-d", reference, base);
    throw error;
  }
}

/** A repository may bring links; none of them decides where in it the worktrees stand. */
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

interface Filling {
  readonly own: OwnWorktree;
  readonly repository: WorktreeRepository;
  readonly plan: Planned;
}

async function fill(git: WorktreeGit, { own, repository, plan }: Filling): Promise<void> {
  const { path } = own.mark;
  must(await git(path, ["reset", "--hard", "--quiet"]));
  const problem = await writeExtraFiles(git, { repository, path, links: plan.links });
  if (problem !== undefined) throw new Error(problem);
  if (!(await makeFolders(path, repository.inside))) {
    throw new Error(`the folder ${repository.inside} has no counterpart in the worktree`);
  }
}

interface HandingOut {
  readonly directory: string;
  readonly environment: WorktreeRequest["environment"];
  readonly now: () => number;
}

function handOut(own: OwnWorktree, { directory, environment, now }: HandingOut): Worktree {
  const { path, branch } = own.mark;
  const end = async (): Promise<WorktreeEnd> => {
    const git = createWorktreeGit({ environment, signal: new AbortController().signal });
    try {
      const removal = await removeUnchanged(git, own);
      if (removal.type === "removed")
        return { kept: false, path, branch, because: "nothing was changed in it" };
      await noteEnd(own, now());
      return { kept: true, path: removal.path, branch, because: removal.because };
    } catch (error) {
      return { kept: true, path, branch, because: messageOf(error) };
    }
  };
  let ending: Promise<WorktreeEnd> | undefined;
  return {
    path,
    branch,
    directory,
    finish() {
      ending ??= end();
      return ending;
    },
  };
}

/** Lets a later clean-up know that nobody works there any more, also while this process goes on. */
async function noteEnd({ administration, mark }: OwnWorktree, ended: number): Promise<void> {
  const written = await readMark(administration);
  if (written?.token !== mark.token) return;
  replaceWholeFile(join(administration, markFile), formatMark({ ...mark, ended }));
}

function must(answer: GitAnswer): void {
  if (answer.type === "failed") throw new Error(answer.because);
}

function nowOf({ now }: WorktreeRequest): () => number {
  return now ?? Date.now;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
