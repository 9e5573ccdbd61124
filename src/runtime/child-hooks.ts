import type { CallHookDependencies } from "./call-hooks.ts";
import { feedbackMessage, type PromptHooks, withContext } from "./prompt-hooks.ts";

export interface ChildHookDependencies extends Pick<CallHookDependencies, "runner" | "situation" | "report"> {
  readonly child: { readonly agentId: string; readonly agentType: string; readonly transcript: string };
  readonly mostRounds: number;
}

/** The hooks around a child: its start may add context, its end may be refused; each start is followed by one end. */
export function createChildHooks({
  runner,
  situation,
  report,
  child,
  mostRounds,
}: ChildHookDependencies): PromptHooks {
  const { agentId, agentType, transcript: agentTranscript } = child;
  let rounds = 0;
  let isOpen = false;

  async function stop(lastMessage: string | undefined, signal: AbortSignal) {
    isOpen = false;
    const payload = {
      agentId,
      agentType,
      agentTranscript,
      isRepeated: rounds > 0,
      ...(lastMessage === undefined ? {} : { lastMessage }),
    };
    const outcome = await runner.fire("SubagentStop", payload, await situation(signal));
    report(outcome);
    return outcome;
  }

  return {
    async prepare(content, signal) {
      isOpen = true;
      if (!runner.hears("SubagentStart")) return { type: "ready", content };
      const outcome = await runner.fire("SubagentStart", { agentId, agentType }, await situation(signal));
      report(outcome);
      const { context } = outcome;
      return { type: "ready", content: context === undefined ? content : withContext(content, [context]) };
    },
    async beforeEnd(text, { signal }) {
      if (!runner.hears("SubagentStop")) return undefined;
      const outcome = await stop(text, signal);
      const reason = [outcome.blocked ? outcome.because : undefined, outcome.context]
        .filter((part) => part !== undefined && part !== "")
        .join("\n");
      if (reason === "" || outcome.stop !== undefined || rounds >= mostRounds) return undefined;
      rounds += 1;
      isOpen = true;
      return feedbackMessage(reason);
    },
    async end() {
      if (isOpen && runner.hears("SubagentStop")) await stop(undefined, new AbortController().signal);
    },
  };
}
