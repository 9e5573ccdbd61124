import { abortable } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "./approver.ts";

export interface AskOptions {
  readonly signal: AbortSignal;
  /** Looked at when the turn comes, and after every answer: an answer that another question has given already. */
  readonly answered?: () => ApprovalAnswer | undefined;
}

/** Puts questions to one approver, whichever agents they come from: one at a time, unless it takes several. */
export interface AskQueue {
  ask(request: ApprovalRequest, options: AskOptions): Promise<ApprovalAnswer>;
  /** Settles open questions that what was granted since answers; to be called when something was granted. */
  recheck(): void;
  /** Questions that wait for their turn. */
  waiting(): number;
}

interface Turn {
  readonly agentId: string;
  readonly begin: () => void;
}

export function createAskQueue(approver: Approver): AskQueue {
  return approver.isConcurrent === true ? createOpenQueue(approver) : createTurnQueue(approver);
}

/** All questions are open at the same time. */
function createOpenQueue(approver: Approver): AskQueue {
  const open = new Set<() => void>();
  return {
    waiting: () => 0,
    recheck() {
      for (const look of [...open]) look();
    },
    async ask(request, { signal, answered }) {
      signal.throwIfAborted();
      const settled = Promise.withResolvers<ApprovalAnswer>();
      const withdrawn = new AbortController();
      const look = (): void => {
        const known = answered?.();
        if (known === undefined) return;
        settled.resolve(known);
        withdrawn.abort(new RetinueError("answered", "Another answer settled this question."));
      };
      const either = AbortSignal.any([signal, withdrawn.signal]);
      const asked = abortable(approver.approve(request, { signal: either }), either);
      asked.then(settled.resolve, settled.reject);
      open.add(look);
      try {
        return await settled.promise;
      } finally {
        open.delete(look);
      }
    },
  };
}

/** In the order of arrival, but an agent that was just asked lets another one go first. */
function createTurnQueue(approver: Approver): AskQueue {
  const turns: Turn[] = [];
  let isAsking = false;
  let lastAgent: string | undefined;

  const next = (): void => {
    const other = turns.findIndex(({ agentId }) => agentId !== lastAgent);
    const [turn] = turns.splice(Math.max(other, 0), 1);
    isAsking = turn !== undefined;
    lastAgent = turn?.agentId ?? lastAgent;
    turn?.begin();
  };

  /** Resolves when the turn comes; a question whose run is stopped leaves the queue. */
  const waitForTurn = async (agentId: string, signal: AbortSignal): Promise<void> => {
    const started = Promise.withResolvers<void>();
    const turn: Turn = { agentId, begin: started.resolve };
    turns.push(turn);
    if (!isAsking) next();
    try {
      await abortable(started.promise, signal);
    } catch (error) {
      const at = turns.indexOf(turn);
      if (at === -1) next();
      else turns.splice(at, 1);
      throw error;
    }
  };

  return {
    waiting: () => turns.length,
    // Each question looks for itself when its turn comes.
    recheck: () => undefined,
    async ask(request, { signal, answered }) {
      signal.throwIfAborted();
      await waitForTurn(request.agentPath.at(-1)?.id ?? "", signal);
      try {
        const known = answered?.();
        if (known !== undefined) return known;
        signal.throwIfAborted();
        return await abortable(approver.approve(request, { signal }), signal);
      } finally {
        next();
      }
    },
  };
}
