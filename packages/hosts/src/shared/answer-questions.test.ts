import type { AgentEvent } from "@retinue/core/protocol/agent-event.ts";
import type { Op } from "@retinue/core/protocol/op.ts";
import type { Answer, Question } from "@retinue/core/protocol/question.ts";
import { expect, test } from "vitest";
import { answerQuestions } from "./answer-questions.ts";

const source = { agentId: "main", seq: 1, at: 0 };

function asked(id: string): AgentEvent {
  const question: Question = {
    kind: "plan",
    id,
    path: [{ id: "main", name: "main" }],
    callId: "call-1",
    plan: undefined,
  };
  return { type: "question-asked", question, ...source };
}

function follow(answer: (question: Question, signal: AbortSignal) => Promise<Answer>) {
  const ops: Op[] = [];
  const onEvent = answerQuestions(answer);
  const submit = async (op: Op) => {
    ops.push(op);
    return { text: "" };
  };
  return { ops, show: (event: AgentEvent) => onEvent(event, submit) };
}

test("each question of a tree is answered by the function of its host [PRM-12]", async () => {
  const { ops, show } = follow(async ({ id }) => ({ type: "approve", plan: id }));
  show(asked("question-1"));
  show({ type: "notice", level: "info", text: "Not a question.", ...source });
  await expect
    .poll(() => ops)
    .toEqual([{ type: "answer", question: "question-1", answer: { type: "approve", plan: "question-1" } }]);
});

test("a host that cannot ask denies what was asked, with the reason [PRM-12]", async () => {
  const { ops, show } = follow(async () => {
    throw new Error("the editor is gone");
  });
  show(asked("question-1"));
  await expect
    .poll(() => ops)
    .toEqual([
      { type: "answer", question: "question-1", answer: { type: "deny", message: "the editor is gone" } },
    ]);
});

test("a question that is closed is withdrawn, and a late answer goes nowhere [PRM-12]", async () => {
  const late = Promise.withResolvers<Answer>();
  const signals: AbortSignal[] = [];
  const { ops, show } = follow((_question, signal) => {
    signals.push(signal);
    return late.promise;
  });
  show(asked("question-1"));
  show({ type: "question-closed", question: "question-1", ...source });
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  late.resolve({ type: "approve" });
  await late.promise;
  await Promise.resolve();
  expect(ops).toEqual([]);
});
