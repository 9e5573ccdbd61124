import { type Message, type ToolResultBlock, toolCallsOf } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ScriptedCall, StepAnswer } from "@retinue/testing/script.ts";

/** One action of the run. It counts as done when a call of it has a result that is no error. */
export interface Deed {
  readonly name: string;
  readonly tool: "Bash" | "Write";
}

/** The test suite tries the same with less than `npm run torture`; the processes that a test starts inherit the variable. */
export const isShort = process.env["VITEST"] !== undefined;

export const steps = isShort ? 12 : 30;

/** What each answer of the model asks for: mostly one call, sometimes three at the same time. */
export const plan: readonly (readonly Deed[])[] = Array.from(
  { length: steps },
  (_, step): readonly Deed[] => {
    const deed = (part: string, tool: Deed["tool"]): Deed => ({ name: `step${step}${part}`, tool });
    if (step % 6 === 5) return [deed("a", "Bash"), deed("b", "Write"), deed("c", "Bash")];
    return [deed("", step % 4 === 3 ? "Write" : "Bash")];
  },
);

/** The name of an action from the id of a call; each call of an action has an id of its own. */
export function deedOf(callId: string): string {
  return callId.split("-")[1] ?? "";
}

/**
 * The model of the torture. It remembers nothing: what comes next follows from the results in the request, so a run
 * that was killed continues where its transcript ends. `mark` shows one answer from all others.
 */
export function answerTortured({ messages }: ModelRequest, mark: string): StepAnswer {
  const done = doneDeeds(messages);
  const next = plan.findIndex((deeds) => deeds.some(({ name }) => !done.has(name)));
  if (next === -1) return { text: "ALL DONE" };
  const open = (plan[next] ?? []).filter(({ name }) => !done.has(name));
  return {
    thinking: `Step ${next} is next. `.repeat(4),
    text: `I do step ${next} of ${steps} now. `.repeat(4),
    calls: open.map((deed) => callOf(deed, `call-${deed.name}-${mark}`)),
  };
}

export function doneDeeds(messages: readonly Message[]): ReadonlySet<string> {
  const good = resultsOf(messages).filter(({ is_error }) => is_error !== true);
  return new Set(good.map(({ tool_use_id }) => deedOf(tool_use_id)));
}

export function resultsOf(messages: readonly Message[]): readonly ToolResultBlock[] {
  return messages.flatMap(({ role, content }) =>
    role === "user" && typeof content !== "string"
      ? content.flatMap((block) => (block.type === "tool_result" ? [block] : []))
      : [],
  );
}

export function callIdsOf(messages: readonly Message[]): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "assistant" ? toolCallsOf(message).map(({ id }) => id) : [],
  );
}

/** Commands take a moment before and after their effect, so that a kill can fall on either side of it. */
function callOf({ tool }: Deed, id: string): ScriptedCall {
  if (tool === "Write") return { id, name: tool, input: { file_path: `written/${id}.txt`, content: id } };
  return { id, name: tool, input: { command: `sleep 0.01; echo ${id} >> log.txt; sleep 0.01; echo done` } };
}
