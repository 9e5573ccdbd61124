import type { Approver } from "../permissions/approver.ts";
import { parseRule } from "../permissions/parse-rule.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import type { Tool } from "../tools/tool.ts";

/** Effects that a person is asked about; what only reads or talks to the runtime needs no question. */
const askedEffects: ReadonlySet<string> = new Set(["edit", "execute", "network"]);

/**
 * Before a child goes to the background, one question for all tools that it has and that no rule allows as a whole. What
 * the person grants becomes allow rules of this child; what not is refused later, because nobody can be asked then.
 */
export async function preapprove(
  plan: ChildPlan,
  {
    approver,
    main,
    tools,
  }: { readonly approver: Approver; readonly main: RunPlan; readonly tools: readonly Tool[] },
): Promise<ChildPlan> {
  const needed = toolsToAskFor(plan, tools);
  if (needed.length === 0) return plan;
  const answer = await approver.approve(
    {
      path: [main.agent, plan.agent],
      callId: plan.task.callId ?? plan.agent.id,
      tool: "Agent",
      input: {
        description: plan.task.description,
        subagent_type: plan.task.agentType,
        prompt: plan.task.prompt,
      },
      reason: `in the background it can ask for nothing more, and it may use ${needed.join(", ")}`,
      suggestedRules: needed,
    },
    { signal: AbortSignal.timeout(patienceMs) },
  );
  if (answer.type !== "allow") return plan;
  const granted = answer.for === "call" ? needed : (answer.rules ?? needed);
  return withRules(plan, granted);
}

/** A person who does not answer in this time has not granted anything. */
const patienceMs = 10 * 60_000;

function toolsToAskFor({ tools: grants, policy }: ChildPlan, tools: readonly Tool[]): readonly string[] {
  if (policy.mode === "bypassPermissions" || policy.mode === "dontAsk" || policy.mode === "plan") return [];
  const allowed = new Set(
    policy.allow.filter(({ rule }) => rule.specifier.type === "whole").map(({ rule }) => rule.canonicalTool),
  );
  return tools
    .filter(
      ({ name, effect }) =>
        askedEffects.has(effect) &&
        // In its own memory an agent needs no permission.
        grants.some((grant) => grant.name === name && grant.confinedTo === undefined) &&
        !allowed.has(name),
    )
    .filter(({ effect }) => policy.mode !== "acceptEdits" || effect !== "edit")
    .map(({ name }) => name);
}

function withRules(plan: ChildPlan, texts: readonly string[]): ChildPlan {
  const rules = texts.flatMap((text) => {
    const reading = parseRule(text, { list: "allow" });
    return reading.type === "rule"
      ? [{ rule: reading.rule, anchor: plan.directory, from: "what was granted before it started" }]
      : [];
  });
  return { ...plan, policy: { ...plan.policy, allow: [...plan.policy.allow, ...rules] } };
}
