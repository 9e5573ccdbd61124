import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { contextTokens, type Usage } from "../conversation/usage.ts";
import { type LimitReached, type LoopLimits, limitError } from "../loop/loop-ports.ts";
import { createAttemptUsage } from "../models/attempt-usage.ts";
import type { Model } from "../models/model.ts";
import type { RunLimits } from "../planning/agent-plan.ts";
import { type Amount, actualAmount, createNeedEstimator } from "./need-estimator.ts";
import type { AgentBudget, TreeBudget } from "./tree-budget.ts";
import type { Stopwatch } from "./watch-run.ts";

/** Keeps the limits of one agent wherever it spends something. */
export interface RunGuard {
  readonly stopwatch: Stopwatch;
  /** The model, with every call of it paid from this agent's budget. */
  readonly pay: (model: Model) => Model;
  /** What it adds to the agent; nothing goes around the model of one that has no budget. */
  readonly capability: { readonly limits: LoopLimits; readonly model?: (model: Model) => Model };
}

export interface RunGuardOptions {
  readonly limits: RunLimits | undefined;
  readonly tree: TreeBudget;
  /** What it may take of that, where it was opened before; absent: as its limits say. */
  readonly budget?: AgentBudget | undefined;
  readonly stopwatch: Stopwatch;
}

export function createRunGuard({ limits, tree, stopwatch, ...opened }: RunGuardOptions): RunGuard {
  const budget = opened.budget ?? tree.agent(limits);
  let shortened: LimitReached | undefined;
  const pay = (model: Model): Model =>
    withBudget(model, {
      budget,
      whileWaiting: stopwatch.hold,
      onReserved(limit) {
        shortened = limit;
      },
    });
  const loopLimits = createLoopLimits({
    budget,
    shortened: () => shortened,
    toolTimeMs: limits?.toolTimeMs?.value,
    maxRepeats: limits?.repeatedCalls?.value,
    stopwatch,
  });
  return {
    stopwatch,
    pay,
    capability: { limits: loopLimits, ...(budget.isLimited ? { model: pay } : {}) },
  };
}

interface BudgetedOptions {
  readonly budget: AgentBudget;
  /** Around the wait for what others hold; the agent is not to blame for it. */
  readonly whileWaiting?: <T>(wait: () => Promise<T>) => Promise<T>;
  /** Called before each call with the limit that makes its answer shorter than it was asked for. */
  readonly onReserved?: (shortened: LimitReached | undefined) => void;
}

/** The same model for one agent, whose every call is paid for: the most it may cost is reserved before it is made. */
export function withBudget(model: Model, options: BudgetedOptions): Model {
  const { budget, whileWaiting = (wait) => wait() } = options;
  if (!budget.isLimited) return model;
  const { price } = model.facts;
  const estimator = createNeedEstimator(model.facts);
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
      // A model that does not respect its signal must not keep from others what it holds.
      const giveBack = (): void => reserved.settle(paid(attempt.take()));
      signal.addEventListener("abort", giveBack, { once: true });
      try {
        const asked =
          reserved.shortened === undefined ? request : { ...request, maxTokens: reserved.maxOutput };
        for await (const event of model.stream(asked, { signal })) {
          attempt.onEvent(event);
          if (event.type === "message-ended") {
            estimator.learn(contextTokens(event.usage));
            reserved.settle(paid(event.usage));
          }
          const limit =
            event.type === "attempt-failed" ? await reserved.renew(paid(attempt.take())) : undefined;
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

interface LoopLimitOptions {
  readonly budget: AgentBudget;
  readonly shortened: () => LimitReached | undefined;
  /** One tool call may take so long, by the run's own time. */
  readonly toolTimeMs: number | undefined;
  /** Absent: the loop's own default. */
  readonly maxRepeats: number | undefined;
  readonly stopwatch: Stopwatch;
}

/** What a loop must respect besides its turns. */
function createLoopLimits(options: LoopLimitOptions): LoopLimits {
  const { budget, shortened, toolTimeMs, maxRepeats, stopwatch } = options;
  return {
    maxRepeats,
    takeCalls: budget.takeCalls,
    shortened,
    ...(toolTimeMs === undefined
      ? {}
      : {
          limitCall({ tool }, signal) {
            // A child has limits of its own, and its parent waits for it.
            if (tool.effect === "spawn") return { signal, [Symbol.dispose]: () => undefined };
            const late = new AbortController();
            const over = new AbortController();
            const deadline = stopwatch.elapsed() + toolTimeMs;
            stopwatch
              .reach(() => deadline, over.signal)
              .then(
                () => late.abort(lateError(tool.name, toolTimeMs)),
                () => undefined,
              );
            return {
              signal: AbortSignal.any([signal, late.signal]),
              [Symbol.dispose]: () => over.abort(new RetinueError("call-over", "The call is over.")),
            };
          },
        }),
  };
}

function lateError(tool: string, limitMs: number): RetinueError {
  return new RetinueError(
    "tool-timeout",
    `${tool} did not end within ${limitMs / 1000} s, the limit for one call, and was stopped; it may have had part of its effect.`,
    { advice: "Do less in one call, or start long work in the background." },
  );
}
