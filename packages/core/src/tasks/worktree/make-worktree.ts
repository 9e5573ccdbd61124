// @io

import { randomBytes } from "node:crypto";
import { lstat, mkdir, readFile, realpath, rmdir } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { createWholeFile, replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { thisProcess } from "@retinue/base/storage/process-identity.ts";
import { runAlone } from "../run-alone.ts";
import {
  findOwnWorktrees,
  folderNumber,
  type OwnWorktree,
  readMark,
  removeUnchanged,
  removeUnfinished,
  whyInUse,
  whyNotOurs,
} from "./find-own-worktrees.ts";
import {
  findDefaultBranch,
  findWorktreeRepository,
  type WorktreeRepository,
} from "./find-worktree-repository.ts";
import { recoverWorktrees } from "./recover-worktrees.ts";
import { createWorktreeGit, type GitAnswer, oneLine, type WorktreeGit } from "./worktree-git.ts";
import { formatMark, markFile, type WorktreeMark } from "./worktree-mark.ts";
import {
  contains,
  folderExcludes,
  type PlannedWorktree,
  planWorktree,
  type WorktreeSettings,
} from "./worktree-plan.ts";
import { excludeFromStatus, makeFolders, writeExtraFiles } from "./write-extra-files.ts";
import { removePending, writePending } from "./write-pending.ts";
import { writeSnapshotCommit } from "./write-snapshot-commit.ts";

export interface WorktreeRequest {
  readonly directory: string;
  readonly agentId: string;
  readonly agentName: string;
  /** The name of its folder and its branch, in place of what would be made of the agent. */
  readonly own?: { readonly name: string; readonly branch: string };
  readonly settings: WorktreeSettings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether a person trusts the repository, so that its filters may run. */
  readonly trusted: boolean;
  readonly signal: AbortSignal;
  /** Takes up the kept worktree of the same agent again, if there is one. */
  readonly resume?: boolean;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

type WorktreeStart =
  | { readonly type: "made"; readonly worktree: Worktree }
  | { readonly type: "refused"; readonly reason: string };

export interface Worktree {
  readonly path: string;
  readonly branch: string;
  /** The folder inside it that corresponds to the caller's directory. */
  readonly directory: string;
  /** Its agent is written down now; before that, the one that finds this process dead removes the worktree. */
  markStarted(): void;
  /** Removes it if nothing was done in it, and says what became of it. Never rejects; a second call does nothing more. */
  finish(): Promise<WorktreeEnd>;
}

interface WorktreeEnd {
  readonly kept: boolean;
  readonly path: string;
  readonly branch: string;
  readonly reason: string;
}

/** Gives an agent a working tree and a branch of its own, whole or not at all. Never rejects. */
export async function makeWorktree(request: WorktreeRequest): Promise<WorktreeStart> {
  try {
    return await make(request);
  } catch (error) {
    return refused(reasonOf(error, request.signal));
  }
}

/** Reasons travel as plain errors up to `makeWorktree`, so that each stage can undo what it did on their way. */
async function make(request: WorktreeRequest): Promise<WorktreeStart> {
  const { directory, environment, signal, agentId } = request;
  const git = createWorktreeGit(request);
  const answer = await findWorktreeRepository(git, directory);
  if (answer.type === "refused") throw new Error(answer.reason);
  const { repository } = answer;
  const plan = planWorktree({
    ...request,
    repository: repository.main,
    gitDirectory: repository.commonDirectory,
    home: environment["HOME"] ?? environment["USERPROFILE"],
  });
  if (plan.type === "refused") throw new Error(plan.reason);
  await recoverWorktrees(git, repository.commonDirectory);
  const old = request.resume === true ? await takeUp(repository, request) : undefined;
  if (old !== undefined) return handOut(old, repository, request);
  const base = await findWorktreeBase(git, repository, request);
  const own = await runAlone(repository.commonDirectory, signal, () =>
    addWorktree(git, { agentId, started: nowOf(request)(), repository, plan, base }),
  );
  try {
    await fillWorktree(git, { own, repository, plan });
    signal.throwIfAborted();
  } catch (error) {
    const undone = await removeUnfinished(git, own);
    if (undone.type === "removed") throw error;
    return refused(`${reasonOf(error, signal)}; ${own.mark.path} is left over: ${undone.reason}`);
  }
  return handOut(own, repository, request);
}

/** The kept worktree of this agent, which counts as in use from now on. */
async function takeUp(
  { commonDirectory, inside }: WorktreeRepository,
  { agentId, signal }: WorktreeRequest,
): Promise<OwnWorktree | undefined> {
  return runAlone(commonDirectory, signal, async () => {
    const all = await findOwnWorktrees(commonDirectory);
    const own = all.find(({ mark }) => mark.agentId === agentId);
    if (own === undefined) return undefined;
    const { ended: _, ...mark } = own.mark;
    const reason = whyInUse(own.mark) ?? (await whyNotOurs(own))?.reason;
    if (reason !== undefined) {
      throw new Error(`the one of this agent, ${mark.path}, cannot be reused: ${reason}`);
    }
    if (!(await makeFolders(mark.path, inside))) throw new Error(`${mark.path} has no folder ${inside}`);
    const taken = { ...own, mark: { ...mark, owner: thisProcess() } };
    replaceWholeFile(join(own.administration, markFile), formatMark(taken.mark));
    return taken;
  });
}

function handOut(own: OwnWorktree, { inside }: WorktreeRepository, request: WorktreeRequest): WorktreeStart {
  const { path, branch } = own.mark;
  const end = async (): Promise<WorktreeEnd> => {
    const git = createWorktreeGit({ ...request, signal: new AbortController().signal });
    try {
      const removal = await removeUnchanged(git, own);
      if (removal.type === "removed")
        return { kept: false, path, branch, reason: "nothing was changed in it" };
      await noteEnd(own, nowOf(request)());
      removePending(own.commonDirectory, { path });
      return { kept: true, path: removal.path, branch, reason: removal.reason };
    } catch (error) {
      return { kept: true, path, branch, reason: messageOf(error) };
    }
  };
  let ending: Promise<WorktreeEnd> | undefined;
  const finish = () => {
    ending ??= end();
    return ending;
  };
  const markStarted = (): void => removePending(own.commonDirectory, { path });
  return {
    type: "made",
    worktree: { path, branch, directory: join(path, inside), markStarted: markStarted, finish },
  };
}

/** Lets a later clean-up know that it is not in use any more, also while this process continues. */
async function noteEnd({ administration, mark }: OwnWorktree, ended: number): Promise<void> {
  const written = await readMark(administration);
  if (written?.token !== mark.token) return;
  replaceWholeFile(join(administration, markFile), formatMark({ ...mark, ended }));
}

function nowOf({ now }: WorktreeRequest): () => number {
  return now ?? Date.now;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function reasonOf(error: unknown, signal: AbortSignal): string {
  return signal.aborted ? "it was stopped" : messageOf(error).replace(/\.$/, "");
}

function refused(reason: string): WorktreeStart {
  return { type: "refused", reason: `No worktree was made, because ${reason}.` };
}

interface BaseRequest {
  readonly settings: WorktreeSettings;
  readonly agentName: string;
}

/** The commit that a worktree begins with; throws with a reason where there is none. */
async function findWorktreeBase(
  git: WorktreeGit,
  repository: WorktreeRepository,
  { settings, agentName }: BaseRequest,
): Promise<string> {
  const wanted = settings.baseRef ?? "current";
  switch (wanted) {
    case "head":
      return repository.head;
    case "fresh": {
      const found = await findDefaultBranch(git, repository.top);
      if (found !== undefined) return found;
      throw new Error("git has no default branch here; set worktree.baseRef to head or current");
    }
    case "current": {
      const message = `Uncommitted changes as ${JSON.stringify(agentName)} found them`;
      const commit = await writeSnapshotCommit(git, repository, message);
      if (commit.type === "failed") {
        throw new Error(
          `the uncommitted changes could not be copied (${commit.reason}); worktree.baseRef: head leaves them out`,
        );
      }
      return oneLine(commit) ?? "";
    }
    default:
      throw new Error(`worktree.baseRef is ${JSON.stringify(wanted)}; write current, head or fresh`);
  }
}

interface WorktreeAddition {
  readonly agentId: string;
  /** Milliseconds since 1970. */
  readonly started: number;
  readonly repository: WorktreeRepository;
  readonly plan: PlannedWorktree;
  readonly base: string;
}

/** Short, and never stopped halfway: branch, folder and mark come into being together, or it throws with a reason. */
async function addWorktree(git: WorktreeGit, addition: WorktreeAddition): Promise<OwnWorktree> {
  const { repository, plan, base } = addition;
  const { main, top, commonDirectory } = repository;
  const folder = await openFolder(repository, plan.folder);
  const diagnostic = await excludeFromStatus(commonDirectory, folderExcludes([main, top], folder));
  if (diagnostic !== undefined) throw new Error(diagnostic);
  const path = join(folder, plan.name);
  const act = (...words: string[]) => git(main, words, { isUnstoppable: true });
  const reference = `refs/heads/${plan.branch}`;
  if (await isThere(path)) throw new Error(`${path} could not be created, or already exists`);
  if ((await act("show-ref", "--verify", "--quiet", reference)).type === "done")
    throw new Error(`git update-ref: reference already exists: ${reference}`);
  // From here on, the one that finds this process dead knows what it was about to make.
  writePending(commonDirectory, pendingOf(addition, path));
  const giveUp = async (error: unknown): Promise<never> => {
    removePending(commonDirectory, { path });
    throw error;
  };
  await mkdir(path).catch(() => giveUp(new Error(`${path} could not be created, or already exists`)));
  try {
    // An empty old value lets git make the branch only if there is none.
    must(await act("update-ref", reference, base, ""));
  } catch (error) {
    await rmdir(path);
    return giveUp(error);
  }
  try {
    must(await act("worktree", "add", "--no-checkout", "--", path, plan.branch));
    const administration = await findAdministration(path, commonDirectory);
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

/** Git has just written the pointer to its record of the worktree. */
async function findAdministration(path: string, commonDirectory: string): Promise<string> {
  const pointer = await readFile(join(path, ".git"), "utf8");
  const found = await realpath(resolve(path, pointer.replace(/^gitdir: /, "").replace(/\r?\n$/, "")));
  if (contains(join(commonDirectory, "worktrees"), found)) return found;
  throw new Error(`git keeps its record of ${path} in ${found}, where none was expected`);
}

/** A repository may bring links; none of them decides where in it the worktrees are. */
async function openFolder({ main, commonDirectory }: WorktreeRepository, folder: string): Promise<string> {
  if (contains(main, folder)) {
    if (await makeFolders(main, relative(main, folder))) return folder;
    throw new Error(
      `${folder} is not a real folder, or could not be created; links on the way are not followed`,
    );
  }
  await mkdir(folder, { recursive: true });
  const real = await realpath(folder);
  if (contains(commonDirectory, real)) throw new Error(`${folder} leads into git's own data`);
  return real;
}

interface WorktreeFilling {
  readonly own: OwnWorktree;
  readonly repository: WorktreeRepository;
  readonly plan: PlannedWorktree;
}

/** Checks the files out and brings along what git ignores; throws with a reason. */
async function fillWorktree(git: WorktreeGit, { own, repository, plan }: WorktreeFilling): Promise<void> {
  const { path } = own.mark;
  must(await git(path, ["reset", "--hard", "--quiet"]));
  const diagnostic = await writeExtraFiles(git, { repository, path, links: plan.links });
  if (diagnostic !== undefined) throw new Error(diagnostic);
  if (!(await makeFolders(path, repository.inside))) {
    throw new Error(`the folder ${repository.inside} does not exist in the worktree`);
  }
}

function must(answer: GitAnswer): void {
  if (answer.type === "failed") throw new Error(answer.reason);
}
