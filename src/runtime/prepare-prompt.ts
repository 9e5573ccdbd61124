import type { UserMessage } from "../conversation/message.ts";
import type { RunEnding } from "../conversation/run-event.ts";
import { isRetinueError } from "../foundation/retinue-error.ts";
import type { OpenAgent } from "./agent/open-agent.ts";
import { attachMentions } from "./attach-mentions.ts";
import type { SessionParts } from "./conversation.ts";
import { stoppedEnding } from "./run-handle.ts";
import { type SlashCommand, withExpansion } from "./skills/find-slash-command.ts";

type Content = UserMessage["content"];

export type ReadyPrompt =
  | { readonly type: "ready"; readonly content: Content }
  /** It reaches no model. */
  | { readonly type: "ended"; readonly ending: RunEnding };

/** What becomes of a prompt before the model sees it: hooks hear it as written, then the skill it calls is put in. */
export async function preparePrompt(
  {
    content,
    first,
    verbatim,
  }: { readonly content: Content; readonly first: Content; readonly verbatim: boolean },
  parts: Pick<SessionParts, "slashCommands" | "mentions" | "agent"> & { readonly opened: OpenAgent },
  signal: AbortSignal,
): Promise<ReadyPrompt> {
  const command =
    parts.slashCommands && !verbatim ? await parts.agent.skills.findCommand(content) : undefined;
  if (command?.type === "unknown")
    return { type: "ended", ending: unansweredEnding("unknown_command", command.reason) };
  const heard = await parts.opened.prepare(first, signal);
  if (heard.type === "blocked") {
    const error = `A hook refused the prompt: ${heard.reason}`;
    return { type: "ended", ending: unansweredEnding("prompt_blocked", error) };
  }
  if (command !== undefined) return expand(heard.content, { command, parts, signal });
  if (!parts.mentions || verbatim) return heard;
  return { type: "ready", content: await attachMentions(heard.content, parts.opened, signal) };
}

/** The text of the skill that a person called, in the place of the call. */
async function expand(
  content: Content,
  {
    command,
    parts,
    signal,
  }: {
    readonly command: Extract<SlashCommand, { type: "call" }>;
    readonly parts: Pick<SessionParts, "agent">;
    readonly signal: AbortSignal;
  },
): Promise<ReadyPrompt> {
  const callId = `slash-${command.skill.name}`;
  const context = parts.agent.parts.toolContext({ callId, signal, progress: () => undefined });
  try {
    const text = await parts.agent.skills.expand(command, context);
    return { type: "ready", content: withExpansion(content, command.written, text) };
  } catch (error) {
    if (signal.aborted) return { type: "ended", ending: stoppedEnding(codeOf(signal.reason)) };
    const why = error instanceof Error ? error.message : String(error);
    return { type: "ended", ending: unansweredEnding("command_failed", why) };
  }
}

/** The model never saw the prompt, and neither will the next run. */
function unansweredEnding(reason: string, error: string): RunEnding {
  const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  return {
    status: "failed",
    reason,
    text: "",
    error,
    denials: [],
    totals: { usage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0 },
  };
}

function codeOf(reason: unknown): string {
  return isRetinueError(reason) ? reason.code : "aborted";
}
