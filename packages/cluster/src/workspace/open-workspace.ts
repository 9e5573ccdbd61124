// @io
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, realpath, rm, stat } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import {
  createWorktreeGit,
  type GitAnswer,
  oneLine,
  type WorktreeGit,
} from "@retinue/core/tasks/worktree/worktree-git.ts";
import { isInside } from "@retinue/gate/permission-policy.ts";
import type { WorkspacePlan } from "./workspace-plan.ts";

/** The files of an agent on this worker, while it runs here. */
export interface Workspace {
  readonly directory: string;
  /** The top folder of a clone that `directory` is in. */
  readonly root?: string;
  /**
   * Makes the files available to other workers, and gives what the next one needs to continue from here; undefined where
   * nothing has to be done. Throws a conflict when another worker has saved meanwhile.
   */
  save(message: string): Promise<string | undefined>;
  /** Frees what this worker keeps for the agent. */
  close(): Promise<void>;
}

interface OpenWorkspaceOptions {
  readonly plan: WorkspacePlan;
  readonly agent: string;
  /** What the last `save` gave, on whichever worker. */
  readonly saved: string | undefined;
  /** A folder of this worker for copies of repositories. */
  readonly root: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Makes sure that this worker still owns the agent. */
  readonly confirm: () => Promise<void>;
}

export async function openWorkspace(options: OpenWorkspaceOptions): Promise<Workspace> {
  const { plan } = options;
  switch (plan.type) {
    case "git": {
      const folder = join(options.root, folderName(options.agent));
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { recursive: true, mode: 0o700 });
      return openGitWorkspace({ ...options, plan, folder });
    }
    case "pinned":
      if (plan.machine !== hostname()) throw elsewhere(plan.directory, plan.machine);
      return openFolder(plan.directory);
    case "shared":
      return openFolder(plan.directory);
  }
}

async function openFolder(directory: string): Promise<Workspace> {
  const found = await stat(directory).catch(() => undefined);
  if (found?.isDirectory() !== true)
    throw new RetinueError(
      "workspace-missing",
      `The folder ${directory} of this agent is not on this worker.`,
      {
        advice: "Mount it on every worker, or give the agent a git workspace.",
      },
    );
  return { directory, save: async () => undefined, close: async () => undefined };
}

/** Readable where the name allows it, and different for different agents. */
function folderName(agent: string): string {
  const hash = createHash("sha256").update(agent).digest("hex").slice(0, 12);
  return `${agent.replace(/[^\w-]+/g, "-").slice(0, 40)}-${hash}`;
}

function elsewhere(directory: string, machine: string): RetinueError {
  return new RetinueError(
    "workspace-missing",
    `The folder ${directory} of this agent is on ${machine}, not here.`,
  );
}

type GitPlan = Extract<WorkspacePlan, { readonly type: "git" }>;

interface GitWorkspaceOptions extends Omit<OpenWorkspaceOptions, "plan"> {
  readonly plan: GitPlan;
  /** Empty, and only for this workspace. */
  readonly folder: string;
}

/**
 * A clone that the agent works in, and beside it a repository that only the worker uses: what the agent writes into the
 * configuration or the hooks of its clone is never run by the worker. Files are saved as commits on the agent's branch.
 */
async function openGitWorkspace(options: GitWorkspaceOptions): Promise<Workspace> {
  const { plan, folder, saved, environment, signal } = options;
  const git = createWorktreeGit({
    environment,
    protocols: "https:ssh:file",
    // Its own repositories, which nothing else configures.
    trusted: true,
    signal,
  });
  const store = join(folder, "store.git");
  const files = join(folder, "files");
  try {
    await must(git(folder, ["init", "--quiet", "--bare", store]), "prepare");
    await must(
      git(store, ["fetch", "--quiet", "--", plan.repository, "+refs/heads/*:refs/remotes/origin/*"]),
      "fetch",
    );
    const start = saved ?? plan.base;
    if ((await git(store, ["cat-file", "-e", `${start}^{commit}`])).type === "failed")
      throw new RetinueError(
        "workspace-missing",
        `The commit ${start} is not on any branch of ${plan.repository}.`,
        {
          advice: "Push it before you start the agent.",
        },
      );
    await must(git(store, ["update-ref", `refs/heads/${plan.branch}`, start]), "prepare");
    await must(git(folder, ["clone", "--quiet", "--branch", plan.branch, "--", store, files]), "clone");
    await must(git(files, ["remote", "set-url", "origin", plan.repository]), "clone");
    await must(git(store, ["read-tree", start]), "prepare");
    const directory = plan.subdirectory === undefined ? files : join(files, plan.subdirectory);
    const save = createSave(git, { options, store, files, start });
    return { directory, root: files, save, close: () => rm(folder, { recursive: true, force: true }) };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

interface SaveParts {
  readonly options: GitWorkspaceOptions;
  readonly store: string;
  readonly files: string;
  readonly start: string;
}

function createSave(git: WorktreeGit, { options, store, files, start }: SaveParts): Workspace["save"] {
  const { plan, confirm } = options;
  const variables = {
    GIT_DIR: store,
    GIT_WORK_TREE: files,
    GIT_AUTHOR_NAME: "Retinue",
    GIT_AUTHOR_EMAIL: "retinue@localhost",
    GIT_COMMITTER_NAME: "Retinue",
    GIT_COMMITTER_EMAIL: "retinue@localhost",
  };
  let last = start;
  return async (message) => {
    await must(git(files, ["add", "--all", "--", ":/"], { variables }), "save");
    const tree = await must(git(files, ["write-tree"], { variables }), "save");
    const before = await must(git(store, ["rev-parse", `${last}^{tree}`]), "save");
    if (tree === before) return last;
    const words = ["commit-tree", "--no-gpg-sign", "-p", last, "-F", "-", tree];
    const commit = await must(git(files, words, { variables, input: `${message}\n` }), "save");
    await push(git, { plan, store, commit, confirm });
    last = commit;
    return last;
  };
}

interface Push {
  readonly plan: GitPlan;
  readonly store: string;
  readonly commit: string;
  readonly confirm: () => Promise<void>;
}

/** The log decides who owns the agent; a worker that lost it without knowing may still have pushed, which is overruled. */
async function push(git: WorktreeGit, { plan, store, commit, confirm }: Push): Promise<void> {
  const ref = `refs/heads/${plan.branch}`;
  await confirm();
  const first = await git(store, [
    "push",
    "--quiet",
    "--no-verify",
    "--",
    plan.repository,
    `${commit}:${ref}`,
  ]);
  if (first.type === "done") return;
  const listed = await git(store, ["ls-remote", "--", plan.repository, ref]);
  const tip = oneLine(listed)?.split(/\s/)[0] ?? "";
  await confirm();
  const lease = `--force-with-lease=${ref}:${tip}`;
  const words = ["push", "--quiet", "--no-verify", lease, "--", plan.repository, `${commit}:${ref}`];
  await must(git(store, words), "push");
}

async function must(answer: Promise<GitAnswer>, operation: string): Promise<string> {
  const given = await answer;
  if (given.type === "done") return oneLine(given) ?? "";
  throw new RetinueError(
    "workspace-failed",
    `The git workspace of this agent could not ${operation}: ${given.reason}.`,
    {
      advice: "Check that this worker can reach the repository and may push to it.",
    },
  );
}

/**
 * Throws where a plan wants to work on a part of this machine's disk that this worker was not given. What a plan claims
 * counts for nothing here: any writer to the store may have written it.
 */
export async function refuseWorkspace(plan: WorkspacePlan, folders: readonly string[]): Promise<void> {
  const place = placeOf(plan);
  if (place === undefined) return;
  const real = await realpath(place).catch(() => undefined);
  // What is not there is reported where it is opened.
  if (real === undefined) return;
  if (real === "/") throw refused(place, "a worker does not work in the whole file system");
  if (folders.length === 0) return;
  const own = await Promise.all(folders.map((folder) => realpath(folder).catch(() => undefined)));
  const isOwn = isInside(
    real,
    own.filter((folder) => folder !== undefined),
  );
  if (!isOwn) throw refused(place, `this worker works below ${folders.join(", ")}`);
}

/** The folder of this disk that a workspace is, or is a copy of. */
function placeOf(plan: WorkspacePlan): string | undefined {
  if (plan.type !== "git") return plan.directory;
  if (plan.repository.startsWith("/")) return plan.repository;
  return plan.repository.startsWith("file://") ? fileURLToPath(plan.repository) : undefined;
}

function refused(place: string, why: string): RetinueError {
  return new RetinueError("workspace-refused", `The plan of this agent is for ${place}, but ${why}.`, {
    advice: "Give the worker that folder with --folder, or plan the agent for one that it has.",
  });
}

/** The folder for the clones of one worker process, gone with it. */
export interface WorkspaceRoot {
  readonly folder: string;
  remove(): Promise<void>;
}

const prefix = "retinue-workspaces-";

/** Makes a folder that only this process uses, and removes those of processes that were killed. */
export async function makeWorkspaceRoot(base: string = tmpdir()): Promise<WorkspaceRoot> {
  await mkdir(base, { recursive: true });
  for (const name of await readdir(base)) {
    const pid = Number(new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(pid) || isAlive(pid)) continue;
    const found = await stat(join(base, name)).catch(() => undefined);
    if (found?.uid === process.getuid?.()) await rm(join(base, name), { recursive: true, force: true });
  }
  const folder = await mkdtemp(join(base, `${prefix}${process.pid}-`));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user is alive as well.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
