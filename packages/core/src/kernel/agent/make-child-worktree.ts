import type { ChildPlan } from "../../planning/agent-plan.ts";
import type { ChildFacts } from "../../planning/plan-agent.ts";
import type { KeptWorktree, RefusedChild } from "../../tasks/run-child.ts";
import { makeWorktree } from "../../tasks/worktree/make-worktree.ts";
import { readWorktreeSettings } from "../../tasks/worktree/read-worktree-settings.ts";
import type { ChildSession } from "./child-session.ts";

/** A working tree of a child's own. */
export interface ChildWorktree {
  readonly type: "made";
  readonly place: NonNullable<ChildFacts["worktree"]>;
  /** The child is on disk now, so that another process that finds this one dead knows whose place it is. */
  readonly markStarted: () => void;
  readonly finish: () => Promise<KeptWorktree | undefined>;
}

const worktreeLimitMs = 120_000;

/** Makes the child's own working tree, or takes the one it has, until its caller is stopped and within a limit. */
export async function makeChildWorktree(
  { agent, task, sessionDirectory }: ChildPlan,
  { services: { runtime } }: Pick<ChildSession, "services">,
  signal: AbortSignal,
): Promise<ChildWorktree | RefusedChild> {
  const settings = readWorktreeSettings(runtime.discovered.settings.settings.plain.worktree);
  if (settings.type === "refused") return settings;
  const made = await makeWorktree({
    directory: sessionDirectory,
    agentId: agent.id,
    agentName: agent.name,
    settings: settings.settings,
    environment: runtime.environment,
    trusted: runtime.trusted,
    signal: AbortSignal.any([signal, AbortSignal.timeout(worktreeLimitMs)]),
    resume: task.resumed,
  });
  if (made.type === "refused") return made;
  const { worktree } = made;
  const { path, directory } = worktree;
  return {
    type: "made",
    place: { path, directory, root: runtime.discovered.paths.projectRoot },
    markStarted: worktree.begun,
    async finish() {
      const { kept, path, branch } = await worktree.finish();
      return kept ? { path, branch } : undefined;
    },
  };
}
