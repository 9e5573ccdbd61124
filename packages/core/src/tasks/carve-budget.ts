import type { LimitReached } from "../loop/loop-ports.ts";
import type { Amount } from "./need-estimator.ts";
import {
  type AgentBudget,
  createTreeBudget,
  type Reservation,
  type TreeBudget,
  type TreeBudgetOptions,
} from "./tree-budget.ts";

interface CarvedOptions extends TreeBudgetOptions {
  /** The name of the agent whose budget it is. */
  readonly name: string;
  /** The budget of the whole session. */
  readonly tree: Pick<TreeBudget, "refusal">;
}

/**
 * The budget of the agents that an agent starts: whatever one of them takes, it takes from its own limits and at the same time
 * from those of the agent above, and so from those of every agent above that one and of the whole tree.
 */
export function carveBudget(above: AgentBudget, { name, tree, ...options }: CarvedOptions): TreeBudget {
  let spent: Amount = { usd: 0, tokens: 0 };
  const named = (limit: LimitReached): LimitReached => ({
    ...limit,
    error: `${limit.error} That is what ${name} has, which started this agent.`,
  });
  return {
    spent: () => spent,
    refusal: tree.refusal,
    agent(limits) {
      const own = createTreeBudget(undefined, options).agent(limits);
      return {
        isLimited: own.isLimited || above.isLimited,
        async reserve(need, wait) {
          const outer = await above.reserve(need, wait);
          if (outer.type === "refused") return { ...outer, ...named(outer) };
          try {
            const inner = await own.reserve({ ...need, maxOutput: outer.maxOutput }, wait);
            if (inner.type === "reserved") {
              return joined(inner, outer, (amount) => {
                spent = { usd: spent.usd + amount.usd, tokens: spent.tokens + amount.tokens };
              });
            }
            outer.settle(nothing);
            return inner;
          } catch (error) {
            outer.settle(nothing);
            throw error;
          }
        },
        async takeCalls(count) {
          // What its own limit leaves, of which the one above may leave less.
          const mine = await own.takeCalls(count);
          const outer = await above.takeCalls(mine.granted);
          const limit = outer.limit === undefined ? mine.limit : named(outer.limit);
          return { granted: outer.granted, limit };
        },
        refusal(need) {
          const mine = own.refusal(need);
          if (mine !== undefined) return mine;
          const outer = above.refusal(need);
          return outer === undefined ? undefined : named(outer);
        },
      };
    },
  };
}

const nothing: Amount = { usd: 0, tokens: 0 };

function joined(inner: Reservation, outer: Reservation, onPaid: (amount: Amount) => void): Reservation {
  let isOpen = true;
  return {
    type: "reserved",
    maxOutput: inner.maxOutput,
    ...((inner.shortened ?? outer.shortened) === undefined
      ? {}
      : { shortened: inner.shortened ?? outer.shortened }),
    async renew(amount) {
      onPaid(amount);
      const limit = await outer.renew(amount);
      return (await inner.renew(amount)) ?? limit;
    },
    settle(amount) {
      if (!isOpen) return;
      isOpen = false;
      onPaid(amount);
      inner.settle(amount);
      outer.settle(amount);
    },
  };
}
