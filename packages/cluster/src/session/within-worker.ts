import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import type { GrantedTool } from "@retinue/config/tools/tool-grants.ts";
import type { AgentPlan, Decided, Nesting, RunLimits } from "@retinue/core/planning/agent-plan.ts";
import { inWorktree } from "@retinue/core/planning/in-worktree.ts";
import { type AcceptedRight, narrowChecks, narrowPolicy } from "@retinue/core/planning/within-own-rights.ts";
import type { PermissionPolicy } from "@retinue/gate/permission-policy.ts";
import type { Workspace } from "../workspace/open-workspace.ts";
import type { WorkspacePlan } from "../workspace/workspace-plan.ts";

/**
 * A main agent's plan that was decided elsewhere, carried out here. `own` is what this worker would have decided for the same
 * request. What the model is sent and which tools it has come from the plan; what either forbids holds, limits are the lower of
 * both, and what is allowed is decided by this worker: the plan adds to it only what `accepts` names. What only a worker knows is
 * its own: tools of its MCP servers and program, folders, the sandbox.
 */
export function withinWorker(plan: AgentPlan, own: AgentPlan, accepts: readonly AcceptedRight[]): AgentPlan {
  const { policy, cut } = narrowPolicy(plan.policy, own.policy, accepts);
  // Built-in tools that both have, in the order of the plan, then what only this worker can know of.
  const here = new Map(own.tools.map((tool) => [tool.name, tool]));
  const names = new Set(plan.tools.map(({ name }) => name));
  const both = plan.tools.flatMap((tool) => {
    const mine = here.get(tool.name);
    return mine === undefined ? [] : [joinGrants(tool, mine)];
  });
  const tools = [
    ...both,
    ...own.tools.filter(({ name }) => !names.has(name) && toolFacts.get(name) === undefined),
  ];
  // The program that asked is elsewhere, and starts no agents here.
  const { memory: _memory, mcpServers: _servers, programSpawn: _programSpawn, nesting, ...rest } = plan;
  return {
    ...rest,
    ...narrowChecks(plan, own, accepts),
    sessionId: own.sessionId,
    agent: own.agent,
    model: own.model,
    // The prompt names the model; where none was named, this worker has chosen it.
    system: plan.system.map((text) => text.replaceAll(plan.model.value, own.model.value)),
    tools,
    spawn: own.spawn === "none" ? "none" : plan.spawn,
    policy: { ...policy, ...joinScopes(plan.policy, own.policy, tools) },
    ...lowerOf("maxTurns", plan.maxTurns, own.maxTurns),
    ...lowest("limits", plan, own),
    ...lowest("treeLimits", plan, own),
    ...(nesting === undefined || own.nesting === undefined
      ? {}
      : { nesting: lowerNesting(nesting, own.nesting) }),
    ...(own.mcpServers === undefined ? {} : { mcpServers: own.mcpServers }),
    ...(own.memory === undefined ? {} : { memory: own.memory }),
    directory: own.directory,
    notes: [...new Set([...plan.notes, ...own.notes, ...cut])],
  };
}

/** This worker's own, with what the plan excludes as well. */
function joinScopes(
  { toolScopes: planned = [] }: PermissionPolicy,
  { toolScopes: own = [] }: PermissionPolicy,
  tools: readonly GrantedTool[],
): Pick<PermissionPolicy, "toolScopes"> {
  const last = own.at(-1);
  if (last === undefined) return {};
  const deny = planned.flatMap((scope) => scope.deny ?? []);
  const removes = planned.flatMap((scope) => scope.removes ?? []);
  const onlyReads = last.onlyReads === true || planned.some((scope) => scope.onlyReads === true);
  return {
    toolScopes: [
      ...own.slice(0, -1),
      {
        ...last,
        tools,
        ...(deny.length === 0 ? {} : { deny: [...new Set([...(last.deny ?? []), ...deny])] }),
        ...(removes.length === 0 ? {} : { removes: [...new Set([...(last.removes ?? []), ...removes])] }),
        ...(onlyReads ? { onlyReads } : {}),
      },
    ],
  };
}

function joinGrants(planned: GrantedTool, own: GrantedTool): GrantedTool {
  const deny = [...new Set([...(planned.deny ?? []), ...(own.deny ?? [])])];
  const only =
    planned.allowOnly === undefined || own.allowOnly === undefined
      ? (planned.allowOnly ?? own.allowOnly)
      : planned.allowOnly.filter((specifier) => own.allowOnly?.includes(specifier));
  return {
    ...own,
    ...planned,
    ...(only === undefined ? {} : { allowOnly: only }),
    ...(deny.length === 0 ? {} : { deny }),
  };
}

function lowest<Key extends "limits" | "treeLimits">(key: Key, plan: AgentPlan, own: AgentPlan) {
  const a: RunLimits = plan[key] ?? {};
  const b: RunLimits = own[key] ?? {};
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])] as (keyof RunLimits)[];
  if (names.length === 0) return {};
  return { [key]: Object.assign({}, ...names.map((name) => lowerOf(name, a[name], b[name]))) as RunLimits };
}

function lowerOf(key: string, a: Decided<number> | undefined, b: Decided<number> | undefined) {
  if (a === undefined || b === undefined) return a === undefined && b === undefined ? {} : { [key]: a ?? b };
  return { [key]: b.value < a.value ? b : a };
}

function lowerNesting(plan: Nesting, own: Nesting): Nesting {
  return {
    depth: own.depth.value < plan.depth.value ? own.depth : plan.depth,
    agents: own.agents.value < plan.agents.value ? own.agents : plan.agents,
  };
}

/** The plan where its files are on this worker. */
export function inWorkspace<Plan extends AgentPlan & { readonly sessionDirectory?: string }>(
  plan: Plan,
  { type }: Pick<WorkspacePlan, "type">,
  { directory, root = directory }: Pick<Workspace, "directory" | "root">,
): Plan {
  const planned = plan.sessionDirectory ?? plan.directory;
  if (type !== "git") {
    if (planned === directory) return plan;
    throw new RetinueError(
      "unreadable-plan",
      `The plan was made for ${planned}, but the workspace is ${directory}.`,
      { advice: "Plan it again in the folder of the workspace." },
    );
  }
  // The same plan in a copy of its repository, by the rule for working trees.
  const below = directory.slice(root.length);
  const origin = planned.endsWith(below) ? planned.slice(0, planned.length - below.length) : planned;
  const placed = inWorktree(plan, { path: root, directory, root: origin });
  return {
    ...placed,
    ...(plan.sessionDirectory === undefined ? {} : { sessionDirectory: directory }),
    system: plan.system.map((text) => moveFolder(text, origin, root)),
  };
}

/** The prompt says in which folder the agent works. */
function moveFolder(text: string, from: string, to: string): string {
  const escaped = from.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text.replace(new RegExp(`${escaped}(?![\\w.-])`, "g"), () => to);
}
