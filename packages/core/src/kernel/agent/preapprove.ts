import type { Approver } from "@retinue/gate/approver.ts";
import { decideCall } from "@retinue/gate/gate.ts";
import { suggestRules } from "@retinue/gate/suggest-rules.ts";
import type { AgentPlan, ChildPlan } from "../../planning/agent-plan.ts";
import type { Tool } from "../../tools/tool.ts";

/** A person who does not answer in this time has not granted anything. */
const answerTimeoutMs = 10 * 60_000;

/**
 * Before a child goes to the background, one question for all tools that it has and all its checks that no rule allows. The
 * rules that the person grants are a fact for its plan; everything else is refused later, because no one can be asked then.
 */
export async function preapprove(
  sketch: ChildPlan,
  {
    approver,
    main,
    tools,
    signal,
  }: {
    readonly approver: Approver;
    readonly main: AgentPlan;
    readonly tools: readonly Tool[];
    /** Aborted when the agent is not wanted any more; the question is closed then. */
    readonly signal: AbortSignal;
  },
): Promise<readonly string[]> {
  const asked = toolsToAskFor(sketch, tools);
  const needed = asked.includes("Bash") ? asked : [...asked, ...(await checksToAskFor(sketch))];
  if (needed.length === 0) return [];
  const answer = await approver.approve(
    {
      sessionId: main.sessionId,
      agentId: sketch.agent.id,
      agentPath: [main.agent, sketch.agent],
      callId: sketch.task.callId ?? sketch.agent.id,
      tool: "Agent",
      input: {
        description: sketch.task.description,
        subagent_type: sketch.task.agentType,
        prompt: sketch.task.prompt,
      },
      reason: `in the background it can ask for nothing more, and it may use ${needed.join(", ")}`,
      suggestedRules: needed,
    },
    { signal: AbortSignal.any([signal, AbortSignal.timeout(answerTimeoutMs)]) },
  );
  if (answer.type !== "allow") return [];
  return answer.for === "call" ? needed : (answer.rules ?? needed);
}

/** Effects that a person is asked about; what only reads or talks to the runtime needs no question. */
const askedEffects: ReadonlySet<string> = new Set(["edit", "execute", "network"]);

const modesWithoutQuestions: ReadonlySet<string> = new Set(["bypassPermissions", "dontAsk", "plan"]);

/** Rules for the checks that no rule allows: they are run when no one can be asked. */
async function checksToAskFor({ verify, policy, directory }: ChildPlan): Promise<readonly string[]> {
  if (modesWithoutQuestions.has(policy.mode)) return [];
  const { toolScopes: _scopes, background: _background, ...person } = policy;
  const rules: string[] = [];
  for (const { run, refused } of verify?.checks ?? []) {
    if (refused !== undefined) continue;
    const call = { tool: "Bash", effect: "execute", input: { command: run }, paths: [] } as const;
    const { type, request } = await decideCall(call, person, { directory, attended: true });
    if (type === "ask") rules.push(...suggestRules(request, person, { anchor: directory }));
  }
  return rules;
}

/** The tools of a child that no rule allows as a whole: in the background it could not ask for them. */
function toolsToAskFor(
  { tools: grants, policy }: ChildPlan,
  tools: readonly { readonly name: string; readonly effect: string }[],
): readonly string[] {
  if (modesWithoutQuestions.has(policy.mode)) return [];
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
