import { randomBytes } from "node:crypto";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { makeWorktree } from "../../tasks/worktree/make-worktree.ts";
import { readWorktreeSettings } from "../../tasks/worktree/read-worktree-settings.ts";
import type { ProjectFacts } from "./project-facts.ts";

export interface SessionWorktree {
  /** The folder inside it that corresponds to the working folder. */
  readonly directory: string;
  readonly path: string;
  readonly branch: string;
  /** By which it is opened again. */
  readonly name: string;
}

/** A working tree and a branch for a whole session: a new one, or the one that a session of the same name has left. It is kept. */
export async function openSessionWorktree(
  { discovered, trust, environment }: ProjectFacts,
  { name = `session-${randomBytes(3).toString("hex")}`, signal }: SessionWorktreeOptions,
): Promise<SessionWorktree> {
  const { settings, paths } = discovered;
  const reading = readWorktreeSettings(settings.settings.plain.worktree);
  if (reading.type === "refused") throw new RetinueError("no-worktree", reading.reason);
  const own = checkName(name).replaceAll("/", "+");
  const made = await makeWorktree({
    directory: paths.cwd,
    agentId: `worktree-${own}`,
    agentName: own,
    own: { name: own, branch: `worktree-${own}` },
    settings: { ...reading.settings, baseRef: reading.settings.baseRef ?? "head" },
    environment,
    trusted: trust.trusted,
    signal,
    resume: true,
  });
  if (made.type === "refused")
    throw new RetinueError("no-worktree", made.reason, {
      advice:
        "A worktree needs a git repository with a commit. Leave --worktree out to work in the folder itself.",
    });
  made.worktree.markStarted();
  const { directory, path, branch } = made.worktree;
  return { directory, path, branch, name };
}

interface SessionWorktreeOptions {
  /** Made up when absent. */
  readonly name?: string | undefined;
  readonly signal: AbortSignal;
}

function checkName(name: string): string {
  const parts = name.split("/");
  if (parts.every((part) => /^[\w.-]+$/.test(part) && part !== "." && part !== "..") && name.length <= 100)
    return name;
  throw new RetinueError("misuse", `${JSON.stringify(name)} cannot name a worktree.`, {
    advice: "Use letters, digits, dots, hyphens and underscores, in parts between slashes.",
  });
}
