import type { PolicyRule } from "../../permissions/permission-policy.ts";
import type { ChildPlan } from "../../planning/plan-run.ts";

/** Where an isolated child works, and what that place stands for. */
export interface WorktreePlace {
  readonly path: string;
  readonly directory: string;
  /** The folder of the repository that the worktree is a copy of. */
  readonly root: string;
}

/** The same plan inside a worktree: rules that speak of the repository speak of the copy too, and nothing else is near. */
export function inWorktree(plan: ChildPlan, place: WorktreePlace, system: readonly string[]): ChildPlan {
  const { policy } = plan;
  const rules = (list: readonly PolicyRule[]): readonly PolicyRule[] =>
    list.flatMap((rule) => withCopy(rule, place));
  const scopes = policy.toolScopes?.map((scope) => ({
    ...scope,
    anchor: counterpart(scope.anchor, place) ?? scope.anchor,
  }));
  return {
    ...plan,
    system,
    directory: place.directory,
    policy: {
      ...policy,
      allow: rules(policy.allow),
      ask: rules(policy.ask),
      deny: rules(policy.deny),
      workingDirectories: [place.directory, ...(place.directory === place.path ? [] : [place.path])],
      ...(scopes === undefined ? {} : { toolScopes: scopes }),
    },
  };
}

function withCopy(rule: PolicyRule, place: WorktreePlace): readonly PolicyRule[] {
  const anchor = counterpart(rule.anchor, place);
  return anchor === undefined ? [rule] : [rule, { ...rule, anchor }];
}

/** The place in the worktree that corresponds to one in the repository. */
function counterpart(path: string, { root, path: copy }: WorktreePlace): string | undefined {
  if (path === root) return copy;
  return path.startsWith(`${root}/`) ? `${copy}${path.slice(root.length)}` : undefined;
}
