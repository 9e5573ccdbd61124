import { randomUUID } from "node:crypto";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { isConflict, type JsonValue, type Store } from "../store.ts";

/** The money of one tree of agents, kept in the store, so that it holds over all workers and hand-overs. */
export interface SharedBudget {
  /**
   * Holds at most `most` and at least `least` US dollars before a call is made. While others hold what is missing it waits;
   * undefined when even giving everything back would not leave enough.
   */
  reserve(
    request: { readonly least: number; readonly most: number; readonly agent: string },
    options: { readonly signal: AbortSignal },
  ): Promise<Hold | undefined>;
  /** Calls of an agent that were under way when its worker died may have cost everything they held. */
  chargeAbandoned(agent: string): Promise<void>;
  state(): Promise<BudgetState>;
}

export interface Hold {
  readonly usd: number;
  /** Pays what the call took and gives the rest back. Counts once. */
  settle(usd: number): Promise<void>;
}

export interface BudgetState {
  readonly limit: number;
  readonly spent: number;
  readonly held: number;
}

/** How often the ledger is read again for money that others gave back, where no event arrives. */
const lookMs = 500;

export function budgetLog(tree: string): string {
  return `budget/${tree}`;
}

export function createSharedBudget({ log, bus }: Store, tree: string, limitUsd: number): SharedBudget {
  const name = budgetLog(tree);
  const limit = toMicro(limitUsd);
  const { ledger, refresh, change, inTurn } = openLedger(log, name);
  const settle = async (key: string, usd: number): Promise<void> => {
    await inTurn(() => change(() => (ledger.holds.has(key) ? [{ settle: key, usd: toMicro(usd) }] : [])));
    bus.publish(name, null);
  };

  return {
    async reserve({ least, most, agent }, { signal }) {
      const key = `${agent}/${randomUUID()}`;
      while (true) {
        signal.throwIfAborted();
        // Resolves when the ledger may have changed, or after a while.
        const received = Promise.withResolvers<void>();
        const timer = setTimeout(received.resolve, lookMs);
        const subscribed = bus.subscribe(name, () => received.resolve()).catch(() => undefined);
        signal.addEventListener("abort", () => received.resolve(), { once: true });
        const close = (): void => {
          clearTimeout(timer);
          received.resolve();
          void subscribed.then((subscription) => subscription?.close());
        };
        const changed = { received: received.promise.then(close), close };
        const answer = await inTurn(async () => {
          await refresh();
          const written = await change(() => {
            const left = limit - ledger.spent - heldOf(ledger);
            return left < toMicro(least) ? [] : [{ hold: key, usd: Math.min(left, toMicro(most)) }];
          });
          if (written.length > 0) return ledger.holds.get(key) ?? 0;
          return limit - ledger.spent < toMicro(least) ? "refused" : "wait";
        }).finally(() => (signal.aborted ? changed.close() : undefined));
        if (answer === "wait") {
          await changed.received;
          continue;
        }
        changed.close();
        if (answer === "refused") return undefined;
        return { usd: answer / micro, settle: (usd) => settle(key, usd) };
      }
    },
    async chargeAbandoned(agent) {
      await inTurn(async () => {
        await refresh();
        await change(() =>
          [...ledger.holds]
            .filter(([key]) => key.startsWith(`${agent}/`))
            .map(([key, usd]) => ({ settle: key, usd })),
        );
      });
    },
    async state() {
      await refresh();
      return { limit: limitUsd, spent: ledger.spent / micro, held: heldOf(ledger) / micro };
    },
  };
}

/** The ledger of a tree, as recorded in its log, and the only ways to change it. */
function openLedger(log: Store["log"], name: string) {
  const ledger: Ledger = { lastSeq: 0, spent: 0, holds: new Map() };
  const refresh = async (): Promise<void> => {
    for (const { seq, record } of await log.read(name, ledger.lastSeq)) {
      apply(ledger, record);
      ledger.lastSeq = seq;
    }
  };
  /** Decides on what is known, and again on what is newer if another worker was faster. */
  const change = async (decide: () => readonly JsonValue[]): Promise<readonly JsonValue[]> => {
    while (true) {
      const records = decide();
      if (records.length === 0) return records;
      const before = ledger.lastSeq;
      try {
        await log.append(name, records, before);
      } catch (error) {
        if (!isConflict(error)) throw error;
        await refresh();
        continue;
      }
      await refresh();
      return records;
    }
  };
  // One change at a time from this process: they would only refuse each other.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const turn = last.then(work);
    last = turn.catch(() => undefined);
    return turn;
  };
  return { ledger, refresh, change, inTurn };
}

interface Ledger {
  lastSeq: number;
  /** In millionths of a dollar, so that sums are exact. */
  spent: number;
  readonly holds: Map<string, number>;
}

const micro = 1_000_000;

/** Rounded up: a ceiling is never exceeded by fractions. */
function toMicro(usd: number): number {
  return Math.ceil(usd * micro - 1e-6);
}

function heldOf({ holds }: Ledger): number {
  return [...holds.values()].reduce((sum, usd) => sum + usd, 0);
}

function apply(ledger: Ledger, record: JsonValue): void {
  if (!isRecord(record) || typeof record["usd"] !== "number") return;
  const { hold, settle, usd } = record;
  if (typeof hold === "string") ledger.holds.set(hold, usd);
  if (typeof settle !== "string" || !ledger.holds.delete(settle)) return;
  ledger.spent += usd;
}
