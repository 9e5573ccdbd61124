import type { Message } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ScriptedCall, StepAnswer } from "@retinue/testing/script.ts";
import { type Deed, doneDeeds, isShort, resultsOf } from "./torture-script.ts";

export const childCount = isShort ? 4 : 8;
const stepsPerChild = isShort ? 3 : 7;

/** What child `k` does, answer by answer: mostly one call, sometimes three at the same time. */
export function childPlan(child: number): readonly (readonly Deed[])[] {
  return Array.from({ length: stepsPerChild }, (_, step): readonly Deed[] => {
    const deed = (part: string, tool: Deed["tool"]): Deed => ({ name: `step${child}x${step}${part}`, tool });
    if (step % 3 === 2) return [deed("a", "Bash"), deed("b", "Write"), deed("c", "Bash")];
    return [deed("", (step + child) % 4 === 3 ? "Write" : "Bash")];
  });
}

/** The children that a main conversation knows of: started, or cut off and named. */
export function knownChildren(messages: readonly Message[]): ReadonlySet<number> {
  const known = resultsOf(messages).filter(
    ({ is_error, content }) => is_error !== true || /resume: \\?"a[0-9a-f]+/.test(JSON.stringify(content)),
  );
  return new Set(known.flatMap(({ tool_use_id }) => childOfCall(tool_use_id) ?? []));
}

export function childOfCall(callId: string): number | undefined {
  const number = /^call-agent(\d+)-/.exec(callId)?.[1];
  return number === undefined ? undefined : Number(number);
}

/** Which child a conversation is, from its task; undefined for the main one. */
export function childOfConversation(messages: readonly Message[]): number | undefined {
  const number = /BE CHILD (\d+)\./.exec(JSON.stringify(messages[0]?.content ?? ""))?.[1];
  return number === undefined ? undefined : Number(number);
}

/** The model of all of them. It remembers nothing: what comes next follows from the results in the request. */
export function answerFamily(request: ModelRequest, mark: string): StepAnswer {
  const child = childOfConversation(request.messages);
  return child === undefined ? answerMain(request, mark) : answerChild(child, request, mark);
}

function answerMain({ messages }: ModelRequest, mark: string): StepAnswer {
  const known = knownChildren(messages);
  const missing = Array.from({ length: childCount }, (_, child) => child).filter(
    (child) => !known.has(child),
  );
  if (missing.length === 0) return { text: `I have started all ${childCount} and wait. (${mark})` };
  return {
    text: `I start ${missing.length} agents.`,
    calls: missing.map((child) => ({
      id: `call-agent${child}-${mark}`,
      name: "Agent",
      input: {
        description: `child ${child}`,
        prompt: `BE CHILD ${child}. Do all steps.`,
        run_in_background: true,
      },
    })),
  };
}

function answerChild(child: number, { messages }: ModelRequest, mark: string): StepAnswer {
  const done = doneDeeds(messages);
  const next = childPlan(child).find((deeds) => deeds.some(({ name }) => !done.has(name)));
  if (next === undefined) return { text: `CHILD ${child} DONE` };
  const open = next.filter(({ name }) => !done.has(name));
  return {
    text: "I continue. ".repeat(3),
    calls: open.map((deed) => callOf(deed, `call-${deed.name}-${mark}`)),
  };
}

/** Commands take a moment before and after their effect, so that a kill can fall on either side of it. */
function callOf({ tool }: Deed, id: string): ScriptedCall {
  if (tool === "Write") return { id, name: tool, input: { file_path: `written/${id}.txt`, content: id } };
  return { id, name: tool, input: { command: `sleep 0.01; echo ${id} >> log.txt; sleep 0.01; echo done` } };
}
