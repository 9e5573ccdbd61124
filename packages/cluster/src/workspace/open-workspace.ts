// @io
import { createHash } from "node:crypto";
import { mkdir, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import {
  createWorktreeGit,
  type GitAnswer,
  oneLine,
  type WorktreeGit,
} from "@retinue/core/tasks/worktree/worktree-git.ts";
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
    // Its own repositories, which no one else configures.
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
        `The commit ${start} is on no branch of ${plan.repository}.`,
        {
          advice: "Push it before the agent is started.",
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

/** The log says who owns the agent; a worker that lost it without knowing may still have pushed, which is overruled. */
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

async function must(answer: Promise<GitAnswer>, deed: string): Promise<string> {
  const given = await answer;
  if (given.type === "done") return oneLine(given) ?? "";
  throw new RetinueError(
    "workspace-failed",
    `The git workspace of this agent could not ${deed}: ${given.reason}.`,
    {
      advice: "Check that this worker can reach the repository and may push to it.",
    },
  );
}
