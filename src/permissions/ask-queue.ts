import { abortable } from "../foundation/abortable.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "./approver.ts";

export interface AskOptions {
  readonly signal: AbortSignal;
  /** Looked at when the turn comes: an answer that an earlier question has given already. */
  readonly answered?: () => ApprovalAnswer | undefined;
}

/** Puts questions to one approver, one at a time, whichever agents they come from. */
export interface AskQueue {
  ask(request: ApprovalRequest, options: AskOptions): Promise<ApprovalAnswer>;
  /** Questions that wait for their turn. */
  waiting(): number;
}

interface Turn {
  readonly agentId: string;
  readonly begin: () => void;
}

/** In the order of arrival, but an agent that was just asked lets another one go first. */
export function createAskQueue(approver: Approver): AskQueue {
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
    const begun = Promise.withResolvers<void>();
    const turn: Turn = { agentId, begin: begun.resolve };
    turns.push(turn);
    if (!isAsking) next();
    try {
      await abortable(begun.promise, signal);
    } catch (error) {
      const at = turns.indexOf(turn);
      if (at === -1) next();
      else turns.splice(at, 1);
      throw error;
    }
  };

  return {
    waiting: () => turns.length,
    async ask(request, { signal, answered }) {
      signal.throwIfAborted();
      await waitForTurn(request.path.at(-1)?.id ?? "", signal);
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
