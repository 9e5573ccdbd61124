// @io
import { contextTokens, costOf } from "@retinue/core/conversation/usage.ts";
import { limitError } from "@retinue/core/loop/loop-ports.ts";
import { createAttemptUsage } from "@retinue/core/models/attempt-usage.ts";
import type { Model } from "@retinue/core/models/model.ts";
import { ModelError } from "@retinue/core/models/model-error.ts";
import { affordableOutput, amountOf, createNeedEstimator } from "@retinue/core/tasks/need-estimator.ts";
import type { SharedBudget } from "./shared-budget.ts";
import type { SharedCoolDowns } from "./shared-cool-downs.ts";

export interface LimitedModelOptions {
  readonly agent: string;
  readonly budget: SharedBudget | undefined;
  readonly coolDowns: SharedCoolDowns;
  /** Called when the provider could not be reached several times in a row, before the next attempt. */
  readonly unreachable?: (message: string) => Promise<void>;
}

/** So many attempts take a few seconds; the rest take minutes. */
const attemptsBeforeDoubt = 4;

/** The shortest answer that is worth a call. */
const leastOutput = 1_024;

/** A model whose calls keep the limits that all workers share: pauses of providers, and the money of the tree. */
export function withSharedLimits(
  model: Model,
  { agent, budget, coolDowns, unreachable }: LimitedModelOptions,
): Model {
  const { facts } = model;
  const { price, provider, id } = facts;
  const estimator = createNeedEstimator(facts);
  return {
    facts,
    async *stream(request, { signal }) {
      refuseWithoutQuota(facts, coolDowns.left(provider, id));
      await coolDowns.wait(provider, id, signal);
      const need = estimator.needOf(request);
      const least = amountOf(need, Math.min(leastOutput, need.maxOutput)).usd;
      const most = amountOf(need, need.maxOutput).usd;
      const reserve = async (amount: { readonly least: number; readonly most: number }) => {
        const held = await budget?.reserve({ ...amount, agent }, { signal });
        if (budget !== undefined && held === undefined) throw limitError(await refusalOf(budget));
        return held;
      };
      let hold = await reserve({ least, most });
      const granted = hold?.usd ?? most;
      const attempts = createAttemptUsage(() => need.inputTokens);
      let spent = 0;
      const pay = (): void => {
        const usage = attempts.take();
        if (usage !== undefined && price !== undefined) spent += costOf(usage, price);
      };
      const maxTokens =
        hold === undefined || hold.usd >= most ? undefined : affordableOutput(need, leftOf(hold.usd));
      try {
        const asked = maxTokens === undefined ? request : { ...request, maxTokens };
        for await (const event of model.stream(asked, { signal })) {
          attempts.onEvent(event);
          if (event.type === "message-ended") estimator.learn(contextTokens(event.usage));
          if (event.type === "attempt-failed") {
            if (event.code === "rate-limited") coolDowns.refused(provider, id, event.delayMs);
            if (event.code === "connection-failed" && event.attempt >= attemptsBeforeDoubt)
              await unreachable?.(event.message);
            pay();
            // The next attempt needs as much as this one, of what is left after paying for it.
            if (spent > 0 && hold !== undefined) {
              await hold.settle(spent);
              spent = 0;
              hold = undefined;
              hold = await reserve({ least: granted, most: granted });
            }
          }
          yield event;
        }
      } catch (error) {
        const closedUntil = error instanceof ModelError ? error.closedUntil : undefined;
        if (closedUntil !== undefined) coolDowns.refused(provider, id, Math.max(0, closedUntil - Date.now()));
        throw error;
      } finally {
        pay();
        await hold?.settle(spent);
      }
    },
  };
}

/** What is longer than any request waits is a quota that another worker has found used up. */
const maxPauseMs = 600_000;

function refuseWithoutQuota({ provider }: Model["facts"], leftMs: number): void {
  if (leftMs <= maxPauseMs) return;
  const closedUntil = Date.now() + leftMs;
  const until = new Date(closedUntil).toISOString();
  throw new ModelError("quota-exhausted", `The quota of ${provider} is used up until ${until}.`, {
    closedUntil,
  });
}

function leftOf(usd: number) {
  return { usd, tokens: Number.POSITIVE_INFINITY };
}

async function refusalOf(budget: SharedBudget): Promise<Parameters<typeof limitError>[0]> {
  const { limit, spent } = await budget.state();
  const left = Math.max(0, limit - spent).toFixed(4);
  return {
    reason: "max_budget",
    error: `Budget limit reached: ${left} of ${limit} US dollars of the whole tree left, over all workers.`,
  };
}
