import { createHash } from "node:crypto";
import { RetinueError } from "../../foundation/retinue-error.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "../../permissions/approver.ts";
import type { AgentContext } from "../agent-program.ts";
import type { JsonValue } from "../store.ts";
import { isForOneCall, type Question, type SessionProgress } from "./session-progress.ts";

/** Answers from the log; a question without an answer is written down and ends the activation. */
export function createParkingApprover(
  context: AgentContext,
  progress: SessionProgress,
  stop: AbortController,
): { readonly approver: Approver; question(): Question | undefined } {
  const answers = new Map(progress.answers);
  let open: Question | undefined;
  const ask = async (request: ApprovalRequest): Promise<ApprovalAnswer> => {
    const question = toQuestion(request);
    const answer = answers.get(question.id);
    if (answer !== undefined) {
      await context.record([{ type: "used", question: question.id }]);
      if (isForOneCall(answer)) answers.delete(question.id);
      return answer;
    }
    if (open === undefined) {
      open = question;
      await context.record([{ type: "asked", question: question as unknown as JsonValue }]);
    }
    stop.abort(new RetinueError("parked", "The agent waits for a person."));
    return new Promise(() => undefined);
  };
  const approver: Approver = {
    approve(request, { signal }) {
      return new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        ask(request).then(resolve, (error) => {
          stop.abort(error);
          reject(error);
        });
      });
    },
  };
  return { approver, question: () => open };
}

function toQuestion({ tool, input, reason, path }: ApprovalRequest): Question {
  const text = JSON.stringify([tool, input, path.map(({ name }) => name)]);
  const id = createHash("sha256").update(text).digest("hex").slice(0, 16);
  // Input of a call comes from a model's JSON.
  return { id, tool, input: input as JsonValue, reason: reason, path: path.map(({ name }) => name) };
}
