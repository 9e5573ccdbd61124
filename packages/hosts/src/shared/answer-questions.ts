import type { Agent } from "@retinue/core/kernel/agent-tree.ts";
import type { AgentEvent } from "@retinue/core/protocol/agent-event.ts";
import type { Answer, Question, QuestionId } from "@retinue/core/protocol/question.ts";

/**
 * Follows the events of a tree and answers its questions with a function, whose signal aborts when a question needs no
 * answer any more. What it throws before that denies what was asked.
 */
export function answerQuestions(
  answer: (question: Question, signal: AbortSignal) => Promise<Answer>,
): (event: AgentEvent, submit: Agent["submit"]) => void {
  const open = new Map<QuestionId, AbortController>();
  return (event, submit) => {
    if (event.type === "question-closed") {
      open.get(event.question)?.abort();
      open.delete(event.question);
    }
    if (event.type !== "question-asked") return;
    const { question } = event;
    const closed = new AbortController();
    open.set(question.id, closed);
    void answer(question, closed.signal)
      .catch((error: unknown): Answer => {
        return { type: "deny", message: error instanceof Error ? error.message : String(error) };
      })
      .then((given) => {
        if (!closed.signal.aborted) void submit({ type: "answer", question: question.id, answer: given });
      });
  };
}
