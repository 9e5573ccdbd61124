import { randomUUID } from "node:crypto";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "@retinue/gate/approver.ts";
import { checkOptions } from "../options/check-options.ts";

/** A question that is waiting for an answer. Plain JSON. */
export interface PendingApproval extends ApprovalRequest {
  readonly id: string;
}

/** Questions for people who answer elsewhere, such as on a page: give it to a session as its `approver`. */
export interface ApprovalQueue extends Approver {
  /** Those that wait now, of all sessions or of one. */
  pending(sessionId?: string): readonly PendingApproval[];
  /**
   * Answers a question. Throws where it was answered before, its run has ended, or it is one of another session than the person's who
   * answers: give `sessionId` wherever the id comes from a page.
   */
  answer(id: string, answer: ApprovalAnswer, options?: { readonly sessionId?: string | undefined }): void;
  /** Calls back when a question is put and when it is settled; the returned function ends it. */
  onChange(listener: (change: ApprovalChange) => void): () => void;
}

export type ApprovalChange =
  | { readonly type: "asked"; readonly approval: PendingApproval }
  | {
      readonly type: "settled";
      readonly approval: PendingApproval;
      /** Absent: the question was withdrawn. */
      readonly answer?: ApprovalAnswer;
    };

export function createApprovalQueue(): ApprovalQueue {
  const waiting = new Map<
    string,
    { readonly approval: PendingApproval; readonly settle: (answer: ApprovalAnswer) => void }
  >();
  const listeners = new Set<(change: ApprovalChange) => void>();
  const changes: ApprovalChange[] = [];
  /** All listeners get the changes in the same order, also where one of them answers while it is notified of a question. */
  const publish = (change: ApprovalChange): void => {
    if (changes.push(change) > 1) return;
    const errors: unknown[] = [];
    for (let next = changes[0]; next !== undefined; next = changes[0]) {
      for (const listener of listeners) {
        try {
          listener(next);
        } catch (error) {
          errors.push(error);
        }
      }
      changes.shift();
    }
    if (errors.length > 0) throw errors[0];
  };
  return {
    isConcurrent: true,
    approve(request, { signal }) {
      const approval: PendingApproval = { ...request, id: randomUUID() };
      return new Promise((resolve, reject) => {
        const withdraw = (): void => {
          waiting.delete(approval.id);
          publish({ type: "settled", approval });
          reject(signal.reason);
        };
        if (signal.aborted) return reject(signal.reason);
        signal.addEventListener("abort", withdraw, { once: true });
        waiting.set(approval.id, {
          approval,
          settle(answer) {
            signal.removeEventListener("abort", withdraw);
            waiting.delete(approval.id);
            publish({ type: "settled", approval, answer });
            resolve(answer);
          },
        });
        publish({ type: "asked", approval });
      });
    },
    pending(sessionId) {
      if (sessionId !== undefined) checkArgument("The first argument of pending()", checks.filled, sessionId);
      return [...waiting.values()]
        .map(({ approval }) => approval)
        .filter((approval) => sessionId === undefined || approval.sessionId === sessionId);
    },
    answer(id, answer, options = {}) {
      checkArgument("The first argument of answer()", checks.filled, id);
      checkOptions("answer", options);
      const question = waiting.get(id);
      const isOthers = options.sessionId !== undefined && options.sessionId !== question?.approval.sessionId;
      if (question === undefined || isOthers)
        throw new RetinueError(
          "unknown-approval",
          `No question with the id ${quote(id)} is waiting for an answer.`,
          {
            advice: "It was answered before, or the run that asked has ended.",
          },
        );
      question.settle(readAnswer(answer));
    },
    onChange(listener) {
      checkArgument("The listener of onChange()", checks.call, listener);
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** Answers of pages come from the network: what is none of the known ones answers nothing. */
function readAnswer(given: unknown): ApprovalAnswer {
  const { type, for: scope, rules, message } = Object(given);
  const isText = message === undefined || typeof message === "string";
  if ((type === "deny" || type === "deny-and-stop") && isText) return { type, message };
  if (type === "allow" && scope === "call") return { type, for: scope };
  const isList =
    rules === undefined || (Array.isArray(rules) && rules.every((rule) => typeof rule === "string"));
  if (type === "allow" && (scope === "agent" || scope === "session" || scope === "save") && isList)
    return { type, for: scope, rules };
  throw new RetinueError(
    "invalid-answer",
    `An answer must be { type: "allow", for: "call" | "agent" | "session" | "save" }, { type: "deny" } or { type: "deny-and-stop" }, but is ${quote(given, 80)}.`,
  );
}
