import { estimateTextTokens } from "../conversation/token-estimate.ts";
import { contextTokens, type Usage } from "../conversation/usage.ts";
import { type LimitReached, limitFault } from "../loop/limit-reached.ts";
import type { Model, ModelEvent } from "../model/model.ts";
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
      if (reserved.type === "refused") throw limitFault(reserved);
      options.onReserved?.(reserved.shortened);
      const attempt = createAttempt((usage) => actualAmount(usage, price));
      try {
        const asked =
          reserved.shortened === undefined ? request : { ...request, maxTokens: reserved.maxOutput };
        for await (const event of model.stream(asked, { signal })) {
          attempt.hear(event);
          if (event.type === "message-ended") {
            estimator.learn(contextTokens(event.usage));
            reserved.settle(actualAmount(event.usage, price));
          }
          const limit = event.type === "attempt-failed" ? reserved.renew(attempt.take()) : undefined;
          yield event;
          if (limit !== undefined) throw limitFault(limit);
        }
      } finally {
        reserved.settle(attempt.take());
      }
    },
  };
}

/** What an answer has cost so far that may never be finished. */
function createAttempt(amount: (usage: Usage) => Amount) {
  let begun: Usage | undefined;
  let written = 0;
  return {
    hear(event: ModelEvent): void {
      switch (event.type) {
        case "message-started":
          begun = event.usage;
          written = 0;
          break;
        case "text-delta":
        case "thinking-delta":
          written += estimateTextTokens(event.text);
          break;
        case "input-delta":
          written += estimateTextTokens(event.json);
      }
    },
    /** Nothing, where the provider never said what it had read. */
    take(): Amount {
      const spent =
        begun === undefined
          ? { usd: 0, tokens: 0 }
          : amount({ ...begun, outputTokens: Math.max(begun.outputTokens, written) });
      begun = undefined;
      written = 0;
      return spent;
    },
  };
}
