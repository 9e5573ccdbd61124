import type { Message, UserBlock, UserMessage } from "./message.ts";

/** How a run ends whose prompt no model could take. */
interface RefusedRun {
  readonly status?: unknown;
  readonly reason?: unknown;
}

const tooLargeReasons: ReadonlySet<unknown> = new Set(["context-too-long", "context_full"]);

/**
 * Whether a prompt that was never answered is taken out of its conversation because of how its run ended. It would be in every
 * later request as well, so that the conversation could never be continued. A refusal that does not say why is believed to
 * be about the prompt only where that holds something large.
 */
export function undoesPrompt({ status, reason }: RefusedRun, prompt: UserMessage): boolean {
  // Results belong to the calls before them, and stay as long as these do.
  if (status !== "failed" || blocksOf(prompt).some(({ type }) => type === "tool_result")) return false;
  return (
    tooLargeReasons.has(reason) ||
    (reason === "invalid-request" &&
      blocksOf(prompt).some((block) =>
        block.type === "text" ? block.text.length > largeText : block.type !== "tool_result",
      ))
  );
}

/** The conversation without the prompts at its end that a run could not get answered. */
export function withoutUndone(messages: readonly Message[], ending: RefusedRun): readonly Message[] {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.filter(
    (message, at) => at <= last || message.role !== "user" || !undoesPrompt(ending, message),
  );
}

const largeText = 100_000;

function blocksOf({ content }: UserMessage): readonly UserBlock[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
