import type { Message, UserBlock } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ScriptedCall, StepAnswer } from "@retinue/testing/script.ts";
import { childCount, childOfCall, childOfConversation } from "./children-script.ts";
import { type Deed, doneDeeds, isShort } from "./torture-script.ts";

const stepsPerChild = isShort ? 3 : 4;

/** What child `k` does in a storm, answer by answer. */
export function stormPlan(child: number): readonly (readonly Deed[])[] {
  return Array.from({ length: stepsPerChild }, (_, step): readonly Deed[] => {
    const deed = (part: string, tool: Deed["tool"]): Deed => ({ name: `step${child}x${step}${part}`, tool });
    if (step === 2) return [deed("a", "Bash"), deed("b", "Write"), deed("c", "Bash")];
    return [deed("", "Bash")];
  });
}

/** Every other child runs in the background; the main agent waits for the rest. */
export function runsInBackground(child: number): boolean {
  return child % 2 === 1;
}

/** The model of a storm. It remembers nothing: what comes next follows from the conversation alone. */
export function answerStorm(request: ModelRequest, mark: string): StepAnswer {
  const child = childOfConversation(request.messages);
  return child === undefined ? answerMain(request.messages, mark) : answerChild(child, request, mark);
}

/** How a child is, as far as a main conversation shows. */
interface KnownChild {
  id?: string;
  standing: "unknown" | "running" | "stopped" | "done";
}

function answerMain(messages: readonly Message[], mark: string): StepAnswer {
  const known = foldChildren(messages);
  const due = known.flatMap(({ standing, id }, child) => {
    if (standing === "unknown") return [startOf(child, mark)];
    return standing === "stopped" ? [startOf(child, mark, id)] : [];
  });
  const isOver = known.every(({ standing }) => standing === "done");
  const shell = shellCall(messages, mark, isOver);
  const calls = [...(shell === undefined ? [] : [shell]), ...due];
  return calls.length === 0
    ? { text: `All ${childCount} are started or done. (${mark})` }
    : { text: "I continue.", calls };
}

function startOf(child: number, mark: string, resume?: string): ScriptedCall {
  const prompt = resume === undefined ? `BE CHILD ${child}. Do all steps.` : "Continue.";
  return {
    id: `call-agent${child}-${mark}`,
    name: "Agent",
    input: {
      description: `child ${child}`,
      prompt,
      run_in_background: runsInBackground(child),
      resume,
    },
  };
}

/** One command runs in the background until all is over; after each interruption the agent asks its state. */
function shellCall(messages: readonly Message[], mark: string, isOver: boolean): ScriptedCall | undefined {
  const text = JSON.stringify(messages);
  const id = /runs in the background as task (b[0-9a-f]+)/.exec(text)?.[1];
  if (!text.includes("call-shell-")) {
    const input = { command: "while :; do sleep 0.1; done", run_in_background: true };
    return { id: `call-shell-${mark}`, name: "Bash", input };
  }
  const hasAsked = text.lastIndexOf('"call-look-') >= text.lastIndexOf("You were interrupted. Continue.");
  if (id !== undefined && isOver && !text.includes('"call-stop-'))
    return { id: `call-stop-${mark}`, name: "TaskStop", input: { task_id: id } };
  if (id === undefined || hasAsked) return undefined;
  return { id: `call-look-${mark}`, name: "TaskOutput", input: { task_id: id, block: false } };
}

/** Reads the main conversation in order; the last entry about a child counts. */
export function foldChildren(messages: readonly Message[]): readonly KnownChild[] {
  const children = Array.from({ length: childCount }, (): KnownChild => ({ standing: "unknown" }));
  for (const { role, content } of messages) {
    if (role !== "user" || typeof content === "string") continue;
    for (const block of content) takeBlock(block, children);
  }
  return children;
}

function takeBlock(block: UserBlock, children: readonly KnownChild[]): void {
  if (block.type === "text")
    for (const note of block.text.split("<task-notification>")) takeNote(note, children);
  if (block.type !== "tool_result") return;
  const known = children[childOfCall(block.tool_use_id) ?? -1];
  if (known === undefined) return;
  const text = JSON.stringify(block.content);
  const id = /\ba[0-9a-f]{16}\b/.exec(text)?.[0];
  if (id !== undefined) known.id = id;
  if (block.is_error === true) known.standing = known.id === undefined ? "unknown" : "stopped";
  else known.standing = text.includes("works in the background") ? "running" : "done";
}

function takeNote(note: string, children: readonly KnownChild[]): void {
  const id = /<task-id>(\w+)<\/task-id>/.exec(note)?.[1];
  const status = /<status>(\w+)<\/status>/.exec(note)?.[1];
  if (id === undefined || status === undefined) return;
  const child = /"child (\d+)"/.exec(note)?.[1];
  const known = children.find((one) => one.id === id) ?? children[child === undefined ? -1 : Number(child)];
  if (known === undefined) return;
  known.id = id;
  if (status === "completed") known.standing = "done";
  else known.standing = status === "resumed" ? "running" : "stopped";
}

function answerChild(child: number, { messages }: ModelRequest, mark: string): StepAnswer {
  const done = doneDeeds(messages);
  const next = stormPlan(child).find((deeds) => deeds.some(({ name }) => !done.has(name)));
  if (next === undefined) return { text: `CHILD ${child} DONE` };
  const open = next.filter(({ name }) => !done.has(name));
  return { text: "I continue.", calls: open.map((deed) => callOf(deed, `call-${deed.name}-${mark}`)) };
}

/**
 * A command does its step only where the step is not done yet, as a careful agent would. So a step appears twice in the log
 * only if an earlier command of it still ran when it was tried again.
 */
function callOf({ name, tool }: Deed, id: string): ScriptedCall {
  if (tool === "Write") return { id, name: tool, input: { file_path: `written/${id}.txt`, content: id } };
  const step = `sleep 0.05; echo '${name} ${id}' >> log.txt; sleep 0.05`;
  return { id, name: tool, input: { command: `grep -qs '^${name} ' log.txt || { ${step}; }; echo done` } };
}
