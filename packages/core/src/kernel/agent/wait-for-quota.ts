import { join } from "node:path";
import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import type { QuotaPort } from "../../loop/loop-ports.ts";
import type { Model } from "../../models/model.ts";
import { ModelError } from "../../models/model-error.ts";
import type { QuotaWindow, QuotaWindows } from "../../models/quota-window.ts";
import { withBudget } from "../../tasks/run-guard.ts";
import { type LedgerBudgetOptions, openUnattendedLedger } from "../../tasks/unattended-ledger.ts";
import type { Capability } from "./open-agent.ts";

/** What the agents of a session may take after a wait for a quota, until a person gives the session another prompt. */
export interface UnattendedBudget {
  /** From here on calls to the provider are paid from it. */
  begin(provider: string): Promise<void>;
  /** The session is attended again. */
  end(): Promise<void>;
  /** The session is closed. */
  close(): Promise<void>;
  around(model: Model): Model;
}

interface UnattendedBudgetOptions extends Omit<LedgerBudgetOptions, "maxUsd"> {
  readonly session: string;
  /** Where there is no limit, nothing is written down. */
  readonly maxUsd: number | undefined;
  readonly quotas: QuotaWindows;
  readonly clock: WaitClock;
  /** Whether a command of an agent has started the session: then its prompts are no person's. */
  readonly isOfAgent: boolean;
}

export function createUnattendedBudget(options: UnattendedBudgetOptions): UnattendedBudget {
  const { session, maxUsd, quotas, clock, isOfAgent, unknownPrice } = options;
  const nothing = async (): Promise<void> => undefined;
  if (maxUsd === undefined) return { begin: nothing, end: nothing, close: nothing, around: (model) => model };
  const ledger = openUnattendedLedger({ file: join(quotas.directory, "unattended.json"), clock });
  return {
    begin: (provider) => ledger.begin({ session, account: quotas.accountOf(provider) }),
    end: () => (isOfAgent ? nothing() : ledger.end(session)),
    close: () => ledger.close(session),
    around: (model) => ({
      get facts() {
        return model.facts;
      },
      async *stream(request, asked) {
        const payer = { session, account: quotas.accountOf(model.facts.provider) };
        const counts = ledger.counts(payer);
        if (!counts && isOfAgent && ledger.isInUse(payer.account)) await ledger.begin(payer);
        else if (!counts) return yield* model.stream(request, asked);
        const budget = ledger.budget(payer, { maxUsd, unknownPrice });
        return yield* withBudget(model, { budget }).stream(request, asked);
      },
    }),
  };
}

export interface QuotaWaitOptions {
  readonly windowOf: (provider: string) => QuotaWindow;
  readonly clock: WaitClock;
  readonly unattended: UnattendedBudget;
  readonly isMain: boolean;
  /** Around each wait: clocks are paused, and another agent gets the place. */
  readonly whileWaiting: <T>(wait: () => Promise<T>) => Promise<T>;
}

/** A window may open earlier than announced, and a computer may have slept. */
const lookAgainMs = 30_000;

/** An agent that waits where the quota of its provider is used up, instead of failing. */
export function waitForQuota(options: QuotaWaitOptions): Capability {
  const { windowOf, clock, unattended, isMain, whileWaiting } = options;
  let isLastTurn = false;
  let provider = "";
  const wait = async (signal: AbortSignal, until = 0): Promise<void> => {
    const window = windowOf(provider);
    // The window has no knowledge of what others report, such as other machines.
    const reportedUntil = window.standing().type === "open" ? until : 0;
    await whileWaiting(async () => {
      while (true) {
        const standing = window.standing();
        const left = Math.max(reportedUntil, standing.type === "open" ? 0 : standing.until) - window.now();
        if (left <= 0) return;
        await clock.sleep(Math.min(left + 1, lookAgainMs), signal);
      }
    });
    await unattended.begin(provider);
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
