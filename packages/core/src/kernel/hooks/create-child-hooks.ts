import type { Receipt } from "../../conversation/receipt.ts";
import type { SpentRecord } from "../../conversation/spent-record.ts";
import type { EventOutcome } from "../../hooks/aggregate.ts";
import type { ReportedEvent } from "../../journal/transcript-writer.ts";
import type { CallHookDependencies } from "./call-hooks.ts";
import { feedbackMessage, type PromptHooks, withContext } from "./prompt-hooks.ts";

export interface ChildHookDependencies extends Pick<CallHookDependencies, "runner" | "situation" | "report"> {
  readonly child: {
    readonly agentId: string;
    readonly agentType: string;
    readonly transcript: string;
    /** Writes down what hooks are about to hear, before they do. */
    readonly reported?: (event: ReportedEvent) => Promise<void>;
    /** What the runtime vouches for, as it is now. */
    readonly receipt?: (text?: string) => Receipt;
    /** What it has taken so far. */
    readonly spent?: () => SpentRecord | undefined;
    /** It is over already, so nothing makes it continue. */
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
    await child.reported?.("SubagentStop");
    const payload = {
      agentId,
      agentType,
      agentTranscript,
      isRepeated: rounds > 0,
      lastMessage,
      receipt: child.receipt?.(lastMessage),
      spent: child.spent?.(),
    };
    const outcome = await runner.fire("SubagentStop", payload, await situation(signal));
    report(outcome);
    return outcome;
  }

  return {
    async prepare(content, signal) {
      // A child that was stopped before it began has no start, and then no stop either.
      signal.throwIfAborted();
      isOpen = true;
      if (runner.receives("SubagentStart") || runner.receives("SubagentStop"))
        await child.reported?.("SubagentStart");
      if (!runner.receives("SubagentStart")) return { type: "ready", content };
      const outcome = await withLastWord(signal, async (own) =>
        runner.fire("SubagentStart", { agentId, agentType }, await situation(own)),
      );
      report(outcome);
      const { context } = outcome;
      return { type: "ready", content: context === undefined ? content : withContext(content, [context]) };
    },
    async beforeEnd(text, { signal }) {
      if (!runner.receives("SubagentStop")) return undefined;
      // Also where the child is stopped meanwhile: hooks that have heard of its start hear of its end.
      const outcome = await withLastWord(signal, (own) => stop(text, own));
      const reason = reasonOf(outcome);
      if (reason === "" || outcome.stop !== undefined) return undefined;
      if (child.isOver === true || rounds >= maxRounds) return undefined;
      rounds += 1;
      isOpen = true;
      await child.reported?.("goes-on");
      return feedbackMessage(reason);
    },
    async end(stopped) {
      if (!isOpen || !runner.receives("SubagentStop")) return;
      await withLastWord(stopped, (signal) => stop(undefined, signal));
    },
  };
}

function reasonOf({ blocked, reason, context }: EventOutcome): string {
  return [blocked ? reason : undefined, context]
    .filter((part) => part !== undefined && part !== "")
    .join("\n");
}

/** How long hooks may take over the start or end of a child that was stopped; the one that stopped it is waiting. */
const lastWordMs = 1500;

async function withLastWord<Outcome>(
  stopped: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<Outcome>,
): Promise<Outcome> {
  const limit = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const begin = (): void => {
    timer = setTimeout(() => limit.abort(), lastWordMs);
  };
  if (stopped?.aborted === true) begin();
  else stopped?.addEventListener("abort", begin, { once: true });
  try {
    return await work(limit.signal);
  } finally {
    stopped?.removeEventListener("abort", begin);
    clearTimeout(timer);
  }
}
