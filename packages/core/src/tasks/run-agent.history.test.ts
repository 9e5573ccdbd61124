import { expect, test } from "vitest";
import type { Message, UserMessage } from "../conversation/message.ts";
import type { RunEnding } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import { createAgentHistory } from "./run-agent.ts";

const plan = { system: ["Work."], reminder: "Briefly.", effort: { value: "low" } } as unknown as AgentPlan;
const said = (text: string): UserMessage => ({ role: "user", content: [{ type: "text", text }] });
const called: Message = {
  role: "assistant",
  content: [{ type: "tool_use", id: "call", name: "Read", input: {} }],
};
const ending = (reason: string): RunEnding => ({
  status: "failed",
  reason,
  text: "",
  denials: [],
  totals: { usage: noUsage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0 },
});

test("a run continues what the runs before it have said, and leaves the messages it was given as they are", () => {
  const given = [said("Earlier.")];
  const history = createAgentHistory(plan, given);
  history.follow({ type: "user-added", message: said("Now."), origin: "prompt" });
  expect(history.input(said("Next."), { maxTurns: 3 })).toEqual({
    system: ["Work."],
    history: [said("Earlier."), said("Now.")],
    prompt: said("Next."),
    reminder: "Briefly.",
    effort: "low",
    maxTurns: 3,
  });
  expect(given).toEqual([said("Earlier.")]);
});

test("a summary takes the place of the messages before those that it keeps", () => {
  const history = createAgentHistory(plan, [said("One."), said("Two."), said("Three.")]);
  const summary = said("What was said.");
  const event = { type: "context-compacted", summary, kept: 1 } as Parameters<typeof history.follow>[0];
  history.follow(event);
  expect(history.messages).toEqual([summary, said("Three.")]);
});

test("only a prompt that no model could take leaves the conversation again", () => {
  const history = createAgentHistory(plan, [said("Too long.")]);
  expect(history.undoPrompt(ending("overloaded"))).toBe(false);
  expect(history.undoPrompt(ending("context-too-long"))).toBe(true);
  expect(history.messages).toEqual([]);
});

test("a call that was cut off is answered, once", () => {
  const history = createAgentHistory(plan, [said("Read it."), called]);
  history.answerCutOffCalls();
  history.answerCutOffCalls();
  expect(history.messages).toHaveLength(3);
  expect(history.messages.at(-1)).toMatchObject({
    role: "user",
    content: [{ type: "tool_result", tool_use_id: "call", is_error: true }],
  });
});
