import type { ReportedEvent } from "../journal/recovery-lines.ts";
import type { CallHookDependencies } from "./call-hooks.ts";
import { feedbackMessage, type PromptHooks, withContext } from "./prompt-hooks.ts";

export interface ChildHookDependencies extends Pick<CallHookDependencies, "runner" | "situation" | "report"> {
  readonly child: {
    readonly agentId: string;
    readonly agentType: string;
    readonly transcript: string;
    /** Writes down what hooks are about to hear, before they do. */
    readonly reported?: (event: ReportedEvent) => void;
    /** It is over already, so nothing makes it go on. */
    readonly isOver?: boolean;
  };
  readonly maxRounds: number;
}

/** The hooks around a child: its start may add context, its end may be refused; each start is followed by one end. */
export function createChildHooks({
  runner,
  situation,
  report,
  child,
  maxRounds,
}: ChildHookDependencies): PromptHooks {
  const { agentId, agentType, transcript: agentTranscript } = child;
  let rounds = 0;
  let isOpen = false;

  async function stop(lastMessage: string | undefined, signal: AbortSignal) {
    isOpen = false;
    child.reported?.("SubagentStop");
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
      if (runner.hears("SubagentStart") || runner.hears("SubagentStop")) child.reported?.("SubagentStart");
      if (!runner.hears("SubagentStart")) return { type: "ready", content };
      const outcome = await runner.fire("SubagentStart", { agentId, agentType }, await situation(signal));
      report(outcome);
      const { context } = outcome;
      return { type: "ready", content: context === undefined ? content : withContext(content, [context]) };
    },
    async beforeEnd(text, { signal }) {
      if (!runner.hears("SubagentStop")) return undefined;
      const outcome = await stop(text, signal);
      const reason = [outcome.blocked ? outcome.reason : undefined, outcome.context]
        .filter((part) => part !== undefined && part !== "")
        .join("\n");
      if (reason === "" || outcome.stop !== undefined) return undefined;
      if (child.isOver === true || rounds >= maxRounds) return undefined;
      rounds += 1;
      isOpen = true;
      child.reported?.("goes-on");
      return feedbackMessage(reason);
    },
    async end(stopped) {
      if (!isOpen || !runner.hears("SubagentStop")) return;
      await withLastWord(stopped, (signal) => stop(undefined, signal));
    },
  };
}

/** How long hooks may take over the end of a child that was stopped; whoever stopped it is waiting. */
const lastWordMs = 1500;

async function withLastWord(
  stopped: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const limit = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const begin = (): void => {
    timer = setTimeout(() => limit.abort(), lastWordMs);
  };
  if (stopped?.aborted === true) begin();
  else stopped?.addEventListener("abort", begin, { once: true });
  try {
    await work(limit.signal);
  } finally {
    stopped?.removeEventListener("abort", begin);
    clearTimeout(timer);
  }
}
