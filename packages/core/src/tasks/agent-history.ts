import type { Message, UserMessage } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { withoutUndone } from "../conversation/undone-prompts.ts";
import { interruptedResults } from "../journal/rebuild-conversation.ts";
import type { LoopInput } from "../loop/loop-ports.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";

/**
 * The conversation of an agent over several runs: of the main agent over its prompts, of a teammate over its pieces of work.
 * A transcript is read back in the same way.
 */
export interface AgentHistory {
  /** Changed in place. */
  readonly messages: readonly Message[];
  /** What the loop gets for a run that continues here. */
  input(
    prompt: UserMessage | undefined,
    limits: Pick<LoopInput, "maxTurns" | "lastTurn" | "askWhenSilent">,
  ): LoopInput;
  /** Adds what an event says. */
  follow(event: RunEvent): void;
  /** A prompt that no model could take leaves the conversation again; whether there was one. */
  undoPrompt(ending: RunEnding): boolean;
  /** Answers calls that were cut off, so that the next run can begin. */
  answerCutOffCalls(): void;
}

export function createAgentHistory(plan: AgentPlan, history: readonly Message[]): AgentHistory {
  const messages = [...history];
  return {
    messages,
    input(prompt, limits) {
      const { system, reminder, effort } = plan;
      return { system, history: messages, prompt, reminder, effort: effort?.value, ...limits };
    },
    follow(event) {
      if (event.type === "user-added" || event.type === "assistant-answered") messages.push(event.message);
      if (event.type === "context-compacted") messages.splice(0, messages.length - event.kept, event.summary);
    },
    undoPrompt(ending) {
      const kept = withoutUndone(messages, ending);
      if (kept.length === messages.length) return false;
      messages.splice(0, messages.length, ...kept);
      return true;
    },
    answerCutOffCalls() {
      const content = interruptedResults(messages);
      if (content.length > 0) messages.push({ role: "user", content });
    },
  };
}
