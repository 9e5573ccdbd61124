import { posix } from "node:path";
import type { PolicyRule } from "@retinue/gate/permission-policy.ts";
import type { AgentPlan } from "./agent-plan.ts";

/** Where an isolated child works, and which folder that is a copy of. */
export interface WorktreePlace {
  readonly path: string;
  readonly directory: string;
  /** The folder of the repository that the worktree is a copy of. */
  readonly root: string;
}

/** The same plan inside a worktree: rules that apply to the repository apply to the copy too, and nothing else is near. */
export function inWorktree<Plan extends Pick<AgentPlan, "policy" | "directory" | "cwd">>(
  plan: Plan,
  place: WorktreePlace | undefined,
): Plan {
  if (place === undefined) return plan;
  const { policy } = plan;
  const rules = (list: readonly PolicyRule[]): readonly PolicyRule[] =>
    list.flatMap((rule) => withCopy(rule, place));
  const restricting = (list: readonly PolicyRule[]): readonly PolicyRule[] =>
    list.flatMap((rule) => [...withCopy(rule, place), ...movedRule(rule, place, policy.home)]);
  const scopes = policy.toolScopes?.map((scope) => ({
    ...scope,
    anchor: counterpart(scope.anchor, place) ?? scope.anchor,
  }));
  return {
    ...plan,
    ...(plan.cwd === undefined ? {} : { cwd: { ...plan.cwd, value: startIn(plan.cwd.value, place) } }),
    directory: place.directory,
    policy: {
      ...policy,
      allow: rules(policy.allow),
      ask: restricting(policy.ask),
      deny: restricting(policy.deny),
      workingDirectories: [place.directory, ...(place.directory === place.path ? [] : [place.path])],
      ...(scopes === undefined ? {} : { toolScopes: scopes }),
    },
  };
}

/** A resumed child's folder is in its worktree already. */
function startIn(folder: string, place: WorktreePlace): string {
  if (folder === place.path || folder.startsWith(`${place.path}/`)) return folder;
  return counterpart(folder, place) ?? folder;
}

function withCopy(rule: PolicyRule, place: WorktreePlace): readonly PolicyRule[] {
  const anchor = counterpart(rule.anchor, place);
  return anchor === undefined ? [rule] : [rule, { ...rule, anchor }];
}

/** A rule about a place in the repository that is written with its full path, for the same place in the worktree. */
function movedRule(policyRule: PolicyRule, place: WorktreePlace, home: string): readonly PolicyRule[] {
  const { rule } = policyRule;
  const { specifier } = rule;
  if (specifier.type !== "path" || (specifier.anchor !== "root" && specifier.anchor !== "home")) return [];
  const path = posix.join(specifier.anchor === "root" ? "/" : home, specifier.pattern);
  const moved = counterpart(path, place);
  if (moved === undefined) return [];
  return [
    {
      ...policyRule,
      rule: { ...rule, specifier: { ...specifier, anchor: "root", pattern: moved.slice(1) } },
    },
  ];
}

/** The place in the worktree that corresponds to one in the repository. */
function counterpart(path: string, { root, path: copy }: WorktreePlace): string | undefined {
  if (path === root) return copy;
  return path.startsWith(`${root}/`) ? `${copy}${path.slice(root.length)}` : undefined;
}
