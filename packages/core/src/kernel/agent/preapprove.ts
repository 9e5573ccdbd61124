import type { Approver } from "@retinue/gate/approver.ts";
import type { ChildPlan } from "../../planning/plan-run.ts";
import type { RunPlan } from "../../planning/plan-tools.ts";
import { toolsToAskFor } from "../../planning/tools-to-ask-for.ts";
import type { Tool } from "../../tools/tool.ts";

/** A person who does not answer in this time has not granted anything. */
const patienceMs = 10 * 60_000;

/**
 * Before a child goes to the background, one question for all tools that it has and that no rule allows as a whole. The
 * rules that the person grants are a fact for its plan; everything else is refused later, because no one can be asked then.
 */
export async function preapprove(
  sketch: ChildPlan,
  {
    approver,
    main,
    tools,
  }: { readonly approver: Approver; readonly main: RunPlan; readonly tools: readonly Tool[] },
): Promise<readonly string[]> {
  const needed = toolsToAskFor(sketch, tools);
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
    { signal: AbortSignal.timeout(patienceMs) },
  );
  if (answer.type !== "allow") return [];
  return answer.for === "call" ? needed : (answer.rules ?? needed);
}
