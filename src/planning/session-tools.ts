import { describeRule, removesTool } from "../permissions/decide.ts";
import type { PolicyRule } from "../permissions/permission-policy.ts";
import type { AvailableTool } from "../tools/grants/match-tools.ts";
import { removedTools } from "../tools/grants/read-denials.ts";
import type { WithheldTool } from "../tools/grants/tool-grants.ts";
import type { RunPlan } from "./run-plan.ts";

/** The tools of a session, as its limits leave them to the agents below the main one. */
export interface SessionTools {
  readonly offered: readonly AvailableTool[];
  readonly withheld: readonly WithheldTool[];
}

/** Limits of one run besides those of the session. */
export interface ToolLimits {
  /** Deny rules of the skill that is its task. */
  readonly skillDeny?: readonly PolicyRule[];
  /** Built-in tools that the run cannot have although the session has them, each with the reason. */
  readonly refused?: ReadonlyMap<string, string>;
}

/** What limits everybody in a session: `--tools`, deny rules for whole tools, and `disallowedTools` of the agents above. */
export function limitTools(
  available: readonly AvailableTool[],
  parent: Pick<RunPlan, "sessionTools" | "policy" | "agent">,
  { skillDeny = [], refused }: ToolLimits = {},
): SessionTools {
  const { policy, agent } = parent;
  const chosen = parent.sessionTools === undefined ? undefined : new Set(parent.sessionTools);
  const entries = (policy.toolScopes ?? []).flatMap(({ removes = [] }) => removes);
  const removed = removedTools(entries, available);
  const deny = [...policy.deny, ...skillDeny];
  const reasonFor = (tool: AvailableTool): string | undefined => {
    if (chosen !== undefined && tool.origin === "builtin" && !chosen.has(tool.name))
      return "the session is limited to other tools (`--tools`)";
    const rule = deny.find((candidate) => removesTool(tool, { deny: [candidate] }));
    if (rule !== undefined) return `the rule ${describeRule(rule)} denies it`;
    if (removed.has(tool.name)) return `\`disallowedTools\` of ${agent.name} excludes it`;
    return tool.origin === "builtin" ? refused?.get(tool.name) : undefined;
  };
  const judged = available.map((tool) => ({ tool, reason: reasonFor(tool) }));
  return {
    offered: judged.flatMap(({ tool, reason }) => (reason === undefined ? [tool] : [])),
    withheld: judged.flatMap(({ tool, reason }) => (reason === undefined ? [] : [{ tool, reason }])),
  };
}
