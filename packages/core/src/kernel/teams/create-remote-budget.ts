import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { LimitReached } from "../../loop/loop-ports.ts";
import { type Amount, amountOf, type CallNeed } from "../../tasks/need-estimator.ts";
import {
  type AgentBudget,
  createTreeBudget,
  type Reservation,
  type Reserved,
  type TakenCalls,
  type TreeBudget,
} from "../../tasks/tree-budget.ts";

/** What a member in a process of its own asks of the process that keeps the budget of the tree. */
export type BudgetRequest =
  | { readonly op: "reserve"; readonly id: number; readonly need: CallNeed }
  | { readonly op: "renew"; readonly id: number; readonly reservation: number; readonly spent: Amount }
  | { readonly op: "settle"; readonly reservation: number; readonly spent: Amount }
  | { readonly op: "calls"; readonly id: number; readonly count: number };

interface BudgetAnswer {
  readonly id: number;
  readonly reserved?: Pick<Reservation, "type" | "maxOutput" | "shortened"> | Exclude<Reserved, Reservation>;
  readonly limit?: LimitReached;
  readonly taken?: TakenCalls;
}

const nothing: Amount = { usd: 0, tokens: 0 };

/** The budget of a tree that another process keeps: limits of the agent are kept here, those of the tree there. */
export function createRemoteBudget(send: (request: BudgetRequest) => void): {
  readonly budget: TreeBudget;
  /** Takes a line of the other process. */
  take(line: JsonRecord): void;
} {
  const waiting = new Map<number, (answer: BudgetAnswer) => void>();
  let count = 0;
  const link: BudgetLink = {
    send,
    nextId() {
      count += 1;
      return count;
    },
    ask(request) {
      const answer = Promise.withResolvers<BudgetAnswer>();
      waiting.set(request.id, answer.resolve);
      send(request);
      return answer.promise;
    },
    take(line) {
      const { id } = line;
      if (typeof id !== "number") return;
      // Both ends are the same version of the same program.
      waiting.get(id)?.(line as unknown as BudgetAnswer);
      waiting.delete(id);
    },
  };
  const own = createTreeBudget(undefined);
  return {
    take: link.take,
    budget: {
      spent: own.spent,
      refusal: () => undefined,
      agent: (limits) => agentBudget(own.agent(limits), link),
    },
  };
}

interface BudgetLink {
  readonly send: (request: BudgetRequest) => void;
  readonly nextId: () => number;
  readonly ask: (request: Exclude<BudgetRequest, { readonly op: "settle" }>) => Promise<BudgetAnswer>;
  readonly take: (line: JsonRecord) => void;
}

function agentBudget(here: AgentBudget, link: BudgetLink): AgentBudget {
  return {
    isLimited: true,
    refusal: here.refusal,
    async reserve(need, { signal }) {
      const mine = await here.reserve(need, { signal });
      if (mine.type === "refused") return mine;
      try {
        const theirs = await reserveThere({ ...need, maxOutput: mine.maxOutput }, signal, link);
        if (theirs.type === "reserved") return bothOf(mine, theirs);
        mine.settle(nothing);
        return theirs;
      } catch (error) {
        mine.settle(nothing);
        throw error;
      }
    },
    async takeCalls(wanted) {
      const mine = await here.takeCalls(wanted);
      const { taken } = await link.ask({ op: "calls", id: link.nextId(), count: mine.granted });
      return taken?.limit === undefined ? mine : taken;
    },
  };
}

async function reserveThere(
  need: CallNeed,
  signal: AbortSignal,
  { send, ask, nextId }: BudgetLink,
): Promise<Reserved> {
  signal.throwIfAborted();
  const id = nextId();
  const settle = (spent: Amount): void => send({ op: "settle", reservation: id, spent });
  const stopped = Promise.withResolvers<never>();
  // Also where it is granted in this moment: what is settled is given back.
  const stop = (): void => {
    settle(nothing);
    stopped.reject(signal.reason);
  };
  signal.addEventListener("abort", stop, { once: true });
  try {
    const { reserved } = await Promise.race([ask({ op: "reserve", id, need }), stopped.promise]);
    if (reserved === undefined || reserved.type === "refused") return reserved ?? noAnswer;
    const renew = async (spent: Amount): Promise<LimitReached | undefined> =>
      (await ask({ op: "renew", id: nextId(), reservation: id, spent })).limit;
    return { ...reserved, renew, settle };
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

const noAnswer: Reserved = {
  type: "refused",
  reason: "max_budget",
  error: "The lead does not keep a budget.",
};

function bothOf(mine: Reservation, theirs: Reservation): Reservation {
  const shortened = theirs.shortened ?? mine.shortened;
  let isOpen = true;
  return {
    type: "reserved",
    maxOutput: theirs.maxOutput,
    shortened,
    async renew(spent) {
      const here = await mine.renew(spent);
      return (await theirs.renew(spent)) ?? here;
    },
    settle(spent) {
      if (!isOpen) return;
      isOpen = false;
      mine.settle(spent);
      theirs.settle(spent);
    },
  };
}

/** Answers one member from the budget of the tree; disposed of when its process has ended. */
export function serveBudget(tree: TreeBudget, answer: (line: BudgetAnswer) => void) {
  const agent = tree.agent(undefined);
  const open = new Map<
    number,
    { readonly stop: AbortController; readonly need: CallNeed; held?: Reservation }
  >();

  async function reserve(id: number, need: CallNeed): Promise<void> {
    const entry: { stop: AbortController; need: CallNeed; held?: Reservation } = {
      stop: new AbortController(),
      need,
    };
    open.set(id, entry);
    const reserved = await agent.reserve(need, { signal: entry.stop.signal });
    if (reserved.type === "refused") {
      open.delete(id);
      return answer({ id, reserved });
    }
    entry.held = reserved;
    const { renew: _renew, settle: _settle, ...facts } = reserved;
    answer({ id, reserved: facts });
  }

  function settle(id: number, spent: Amount): void {
    const entry = open.get(id);
    open.delete(id);
    if (entry?.held === undefined) entry?.stop.abort();
    else entry.held.settle(spent);
  }

  async function serve(request: BudgetRequest): Promise<void> {
    switch (request.op) {
      case "reserve":
        return reserve(request.id, request.need);
      case "renew": {
        const limit = await open.get(request.reservation)?.held?.renew(request.spent);
        return answer({ id: request.id, limit });
      }
      case "calls":
        return answer({ id: request.id, taken: await agent.takeCalls(request.count) });
      case "settle":
        return settle(request.reservation, request.spent);
    }
  }

  return {
    take(request: unknown): void {
      // A member that is stopped while it waits gets no answer.
      if (isRecord(request)) void serve(request as unknown as BudgetRequest).catch(() => undefined);
    },
    /** It is unknown what an answer has cost that a dead process was reading; its prompt was paid for. */
    [Symbol.dispose](): void {
      for (const [id, { need }] of open) settle(id, amountOf(need, 0));
    },
  };
}
