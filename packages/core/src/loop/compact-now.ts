import type { Message } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import type { CompactionOutcome } from "./compact-conversation.ts";
import { createCompactor } from "./compactor.ts";
import { endingOfCause, type LoopInput, type LoopPorts } from "./loop-ports.ts";
import { requestOf } from "./run-agent-loop.ts";
import { createTally } from "./tally.ts";

/** Compacts a conversation because somebody asked for it. The last event is always `run-ended`; nothing is thrown. */
export async function* compactNow(
  { input, instructions }: { readonly input: LoopInput; readonly instructions: string | undefined },
  ports: LoopPorts,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  const tally = createTally(ports.now);
  const messages: Message[] = [...input.history];
  const request = () => requestOf({ input, ports, messages });
  const compactor = createCompactor({ ports, messages, request, tally, signal });
  let ending: Ending;
  try {
    ending = endingOf(yield* compactor.compactNow(instructions));
  } catch (error) {
    ending = { text: "", ...endingOfCause(signal.aborted ? signal.reason : error, signal.aborted) };
  }
  yield { type: "run-ended", ending: { ...ending, ...tally.result() } };
}

type Ending = Pick<RunEnding, "status" | "reason" | "error" | "text">;

function endingOf(outcome: CompactionOutcome): Ending {
  switch (outcome.type) {
    case "compacted": {
      const { preTokens, postTokens, by } = outcome.event;
      const how = by === "model" ? "" : " The model gave no summary, so it was made by rule.";
      const text = `The conversation was compacted from about ${preTokens} to about ${postTokens} tokens.${how}`;
      return { status: "completed", reason: "compacted", text };
    }
    case "nothing":
      return {
        status: "completed",
        reason: "nothing_to_compact",
        text: `Nothing was compacted. ${outcome.reason}`,
      };
    case "blocked":
      return {
        status: "failed",
        reason: "compact_blocked",
        text: "",
        error: `The conversation was not compacted: ${outcome.reason}`,
      };
    case "impossible":
      return { status: "failed", reason: "context_full", text: "", error: outcome.reason };
  }
}
