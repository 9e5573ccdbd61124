import type { HookRule } from "./hook-rule.ts";
import type { SourcedHookRule } from "./select-hooks.ts";

/** The hooks of one agent's own definition, tied to its run. What a subagent calls its `Stop` is the end of a subagent. */
export function agentHooks(
  hooks: readonly HookRule[],
  agent: { readonly id: string; readonly name: string; readonly isSubagent: boolean },
): readonly SourcedHookRule[] {
  const origin = { type: "agent", agentId: agent.id, name: agent.name } as const;
  return hooks.map((hook) => {
    if (!agent.isSubagent || hook.event !== "Stop") return { hook, origin };
    // Stop has no matcher, so whatever was written there was not meant as an agent's type.
    return { hook: { event: "SubagentStop", handler: hook.handler }, origin };
  });
}
