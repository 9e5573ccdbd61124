import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import type { QuotaPort } from "../../loop/loop-ports.ts";
import type { Model } from "../../models/model.ts";
import { ModelError } from "../../models/model-error.ts";
import type { QuotaWindow } from "../../models/quota-window.ts";
import { withBudget } from "../../tasks/run-guard.ts";
import { createTreeBudget } from "../../tasks/tree-budget.ts";
import type { Capability } from "./open-agent.ts";

/** What the agents of a session may take after a wait for a quota, until somebody gives the session another prompt. */
export interface UnattendedBudget {
  /** From here on calls are paid from it. */
  begin(): void;
  /** Somebody is there. */
  end(): void;
  around(model: Model): Model;
}

export function createUnattendedBudget(
  maxUsd: number | undefined,
  options: { readonly unknownPrice?: "allow" | "refuse" | undefined } = {},
): UnattendedBudget {
  let current: ReturnType<ReturnType<typeof createTreeBudget>["agent"]> | undefined;
  return {
    begin() {
      if (maxUsd === undefined || current !== undefined) return;
      const limits = { costUsd: { value: maxUsd, from: "quota.maxUsdUnattended" } };
      const whose = "that may be spent unattended after a wait for the quota (quota.maxUsdUnattended)";
      current = createTreeBudget(limits, { ...options, whose }).agent(undefined);
    },
    end() {
      current = undefined;
    },
    around: (model) => ({
      get facts() {
        return model.facts;
      },
      stream: (request, asked) =>
        (current === undefined ? model : withBudget(model, { budget: current })).stream(request, asked),
    }),
  };
}

export interface QuotaWaitOptions {
  readonly windowOf: (provider: string) => QuotaWindow;
  readonly clock: WaitClock;
  readonly unattended: UnattendedBudget;
  readonly isMain: boolean;
  /** Around each wait: clocks stand still, and another agent gets the place. */
  readonly whileWaiting: <T>(wait: () => Promise<T>) => Promise<T>;
}

/** A window may open earlier than was said, and a computer may have slept. */
const lookAgainMs = 30_000;

/** An agent that waits where the quota of its provider is used up, instead of failing. */
export function waitForQuota(options: QuotaWaitOptions): Capability {
  const { windowOf, clock, unattended, isMain, whileWaiting } = options;
  let isLastTurn = false;
  let provider = "";
  const wait = async (signal: AbortSignal, until = 0): Promise<void> => {
    const window = windowOf(provider);
    // What others than the window say, such as other machines, it does not know.
    const said = window.standing().type === "open" ? until : 0;
    await whileWaiting(async () => {
      while (true) {
        const standing = window.standing();
        const left = Math.max(said, standing.type === "open" ? 0 : standing.until) - window.now();
        if (left <= 0) return;
        await clock.sleep(Math.min(left + 1, lookAgainMs), signal);
      }
    });
    unattended.begin();
  };
  const quota: QuotaPort = {
    closing() {
      const standing = windowOf(provider).standing();
      return standing.type === "closing" ? { provider, until: standing.until } : undefined;
    },
    mayBegin: isMain,
    lastTurn() {
      isLastTurn = true;
      return {
        [Symbol.dispose]() {
          isLastTurn = false;
        },
      };
    },
    wait: ({ signal }) => wait(signal),
  };
  return {
    quota,
    model(inner) {
      provider = inner.facts.provider;
      const paid = unattended.around(inner);
      return {
        get facts() {
          return inner.facts;
        },
        async *stream(request, { signal }) {
          while (true) {
            provider = inner.facts.provider;
            try {
              yield* paid.stream(request, { signal });
              return;
            } catch (error) {
              if (!(error instanceof ModelError) || error.closedUntil === undefined) throw error;
              if (isLastTurn || signal.aborted) throw error;
              yield { type: "quota-waiting", provider, until: error.closedUntil };
              await wait(signal, error.closedUntil);
              yield { type: "quota-renewed", provider };
            }
          }
        },
      };
    },
  };
}
