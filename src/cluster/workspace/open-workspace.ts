// @io
import { createHash } from "node:crypto";
import { mkdir, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { RetinueError } from "../../foundation/retinue-error.ts";
import { openGitWorkspace } from "./open-git-workspace.ts";
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

export interface OpenWorkspaceOptions {
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
