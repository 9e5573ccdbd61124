import { contextTokens, type Usage } from "../conversation/usage.ts";
import { type LimitReached, limitError } from "../loop/limit-reached.ts";
import { createAttemptUsage } from "../model/attempt-usage.ts";
import type { Model } from "../model/model.ts";
import type { AgentBudget } from "./budget.ts";
import { type Amount, actualAmount, createNeedEstimator } from "./budget-need.ts";

export interface BudgetedOptions {
  readonly budget: AgentBudget;
  /** Around the wait for what others hold; the agent is not to blame for it. */
  readonly whileWaiting?: <T>(wait: () => Promise<T>) => Promise<T>;
  /** Hears before each call which limit makes its answer shorter than it was asked for. */
  readonly onReserved?: (shortened: LimitReached | undefined) => void;
}

/** The same model for one agent, whose every call is paid for: the most it may cost is reserved before it is made. */
export function withBudget(model: Model, options: BudgetedOptions): Model {
  const { budget, whileWaiting = (wait) => wait() } = options;
  const { price } = model.facts;
  const estimator = createNeedEstimator(model.facts);
  if (!budget.isLimited) return model;
  return {
    facts: model.facts,
    async *stream(request, { signal }) {
      const need = estimator.needOf(request);
      const reserved = await whileWaiting(() => budget.reserve(need, { signal }));
      if (reserved.type === "refused") throw limitError(reserved);
      options.onReserved?.(reserved.shortened);
      const attempt = createAttemptUsage(() => need.inputTokens);
      const paid = (usage: Usage | undefined): Amount =>
        usage === undefined ? { usd: 0, tokens: 0 } : actualAmount(usage, price);
      // A model that does not heed its signal must not keep from others what it holds.
      const giveBack = (): void => reserved.settle(paid(attempt.take()));
      signal.addEventListener("abort", giveBack, { once: true });
      try {
        const asked =
          reserved.shortened === undefined ? request : { ...request, maxTokens: reserved.maxOutput };
        for await (const event of model.stream(asked, { signal })) {
          attempt.hear(event);
          if (event.type === "message-ended") {
            estimator.learn(contextTokens(event.usage));
            reserved.settle(paid(event.usage));
          }
          const limit = event.type === "attempt-failed" ? reserved.renew(paid(attempt.take())) : undefined;
          yield event;
          if (limit !== undefined) throw limitError(limit);
        }
      } finally {
        signal.removeEventListener("abort", giveBack);
        giveBack();
      }
    },
  };
}
