import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { childOfConversation, knownChildren } from "./children-script.ts";

/** How many children with a worktree of their own are started. */
export const worktreeCount = 25;

/** A main agent starts all children that it has not started yet; each child only looks around. */
export function answerWorktrees({ messages }: ModelRequest, mark: string): StepAnswer {
  const child = childOfConversation(messages);
  if (child !== undefined) return { text: `CHILD ${child} DONE` };
  const known = knownChildren(messages);
  const missing = Array.from({ length: worktreeCount }, (_, index) => index).filter((one) => !known.has(one));
  if (missing.length === 0) return { text: `All are started. (${mark})` };
  return {
    text: "I start them.",
    calls: missing.map((one) => ({
      id: `call-agent${one}-${mark}`,
      name: "Agent",
      input: {
        description: `child ${one}`,
        prompt: `BE CHILD ${one}. Look around.`,
        isolation: "worktree",
        run_in_background: true,
      },
    })),
  };
}
