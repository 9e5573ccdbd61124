import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** Where the files of an agent are, and how they get to the worker that runs it next. */
export type WorkspacePlan =
  /** The same path on every worker, such as a network file system. `root` is the folder that workers announce. */
  | { readonly type: "shared"; readonly directory: string; readonly root: string }
  /** Only on one machine: the agent cannot continue elsewhere. */
  | { readonly type: "pinned"; readonly directory: string; readonly machine: string }
  /** A branch of its own in a repository, pushed after every turn. */
  | {
      readonly type: "git";
      readonly repository: string;
      /** The commit it starts from. */
      readonly base: string;
      readonly branch: string;
      /** The folder below the root of the repository that the agent works in. */
      readonly subdirectory?: string;
    };

/** What a worker must have for this workspace. */
export function workspaceNeeds(plan: WorkspacePlan): readonly string[] {
  switch (plan.type) {
    case "shared":
      return [folderNeed(plan.root)];
    case "pinned":
      return [`machine:${plan.machine}`];
    case "git":
      return ["git"];
  }
}

export function folderNeed(folder: string): string {
  return `folder:${folder}`;
}

/** One sentence for people: what happens to the files when another worker takes over. */
export function describeWorkspace(plan: WorkspacePlan): string {
  const shape = checks.shape({ type: checks.oneOf(["shared", "pinned", "git"]) }, ["type"]);
  checkArgument("The first argument of describeWorkspace()", shape, plan);
  switch (plan.type) {
    case "shared":
      return `${plan.directory}, shared by all workers: another worker continues with the same files.`;
    case "pinned":
      return `${plan.directory} on ${plan.machine}: only workers on that machine can continue it.`;
    case "git":
      return `${plan.repository}, branch ${plan.branch}: another worker continues with the files of the last finished turn.`;
  }
}

export function readWorkspacePlan(value: unknown): WorkspacePlan {
  if (!isRecord(value)) throw unreadable();
  const { type, directory, root, machine, repository, base, branch, subdirectory } = value;
  if (type === "shared" && isText(directory) && isText(root)) return { type, directory, root };
  if (type === "pinned" && isText(directory) && isText(machine)) return { type, directory, machine };
  if (type === "git" && isText(repository) && isText(base) && isText(branch)) {
    const below = subdirectory === undefined || isText(subdirectory) ? subdirectory : undefined;
    checkGitWords({ repository, base, branch, below });
    return { type, repository, base, branch, subdirectory: below };
  }
  throw unreadable();
}

/** These become arguments of git and part of a path; git also has addresses that run programs. */
function checkGitWords({
  repository,
  base,
  branch,
  below = "",
}: {
  readonly repository: string;
  readonly base: string;
  readonly branch: string;
  readonly below: string | undefined;
}): void {
  if (!/^(https:\/\/|ssh:\/\/|file:\/\/|\/|[\w.-]+@[\w.-]+:(?!:))/.test(repository)) throw unreadable();
  if (!/^[0-9a-f]{40,64}$/.test(base)) throw unreadable();
  if (!/^[A-Za-z0-9][\w./-]{0,200}$/.test(branch) || branch.includes("..")) throw unreadable();
  if (below.startsWith("/") || below.split(/[\\/]/).includes("..")) throw unreadable();
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "" && !value.includes("\0");
}

function unreadable(): RetinueError {
  return new RetinueError(
    "unreadable-plan",
    "The workspace in the plan of this agent cannot be understood.",
    {
      advice: "Update this worker to the version that planned the agent.",
    },
  );
}
