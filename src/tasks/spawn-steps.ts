import type { RunEvent, SpawnStep } from "../conversation/run-event.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { ChildPlan } from "../planning/plan-run.ts";

/** What was decided in each step of a start, for those who watch. `hooks` lies between the two halves: there they ran. */
export function stepsOf(
  plan: ChildPlan,
  definition: AgentDefinition,
): { readonly before: RunEvent[]; readonly after: RunEvent[] } {
  const { task, policy } = plan;
  const event = (step: SpawnStep, value: unknown): RunEvent => ({ type: "spawn-advanced", step, value });
  return {
    before: [
      event("limits", { maxTurns: plan.maxTurns?.value }),
      event("definition", {
        agentType: task.agentType,
        scope: definition.source.scope,
        file: definition.source.file,
      }),
      event("id", { agentId: plan.agent.id, resumed: task.resumed }),
    ],
    after: [
      event("hooks", { event: "SubagentStart" }),
      event("model", plan.model),
      event(
        "tools",
        plan.tools.map(({ name }) => name),
      ),
      event("permissions", {
        mode: policy.mode,
        allow: policy.allow.length,
        ask: policy.ask.length,
        deny: policy.deny.length,
      }),
      event("memory", plan.memory ?? null),
      event("prompt", { parts: plan.system.length, characters: plan.system.join("").length }),
      event("configuration", {
        background: task.background,
        isolation: task.isolation ?? null,
        effort: plan.effort?.value ?? null,
        directory: plan.directory,
      }),
      event(
        "scoped-hooks",
        (definition.hooks ?? []).map((hook) => hook.event),
      ),
      event("launch", { description: task.description }),
    ],
  };
}
