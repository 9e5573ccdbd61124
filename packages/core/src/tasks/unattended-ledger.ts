// @io
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { withFileLock } from "@retinue/base/storage/owner-lock.ts";
import {
  livenessOf,
  type ProcessIdentity,
  thisProcess,
  toIdentity,
} from "@retinue/base/storage/process-identity.ts";
import { amountOf } from "./need-estimator.ts";
import { type AgentBudget, createAccount, decideReservation } from "./tree-budget.ts";

/** What the sessions of a user take while they are unattended, over all processes: one sum for each account of a provider. */
export interface UnattendedLedger {
  /** From here on, what the session takes from the account counts. */
  begin(payer: Payer): Promise<void>;
  /** Whether it counts already; also where that began in a process that has ended. */
  counts(payer: Payer): boolean;
  /** Whether any session that is open takes from the account unattended. */
  isInUse(account: string): boolean;
  /** The session is attended again: what it took no longer counts, and neither does what closed sessions took. */
  end(session: string): Promise<void>;
  /** The session is closed; what it took counts until it is attended again, or continues. */
  close(session: string): Promise<void>;
  budget(payer: Payer, options: LedgerBudgetOptions): AgentBudget;
}

export interface Payer {
  readonly session: string;
  readonly account: string;
}

export interface LedgerBudgetOptions {
  readonly maxUsd: number;
  readonly unknownPrice?: "allow" | "refuse" | undefined;
}

interface LedgerEntry extends Payer {
  readonly usd: number;
  /** Absent once the session is closed. */
  readonly process?: ProcessIdentity | undefined;
}

/** What a call that is going on may take. */
interface Hold extends Payer {
  readonly id: string;
  readonly usd: number;
  readonly process: ProcessIdentity;
}

interface LedgerState {
  readonly entries: readonly LedgerEntry[];
  readonly holds: readonly Hold[];
}

const lookMs = 200;
const nothing: LedgerState = { entries: [], holds: [] };
const whose = "that may be spent unattended after a wait for the quota (quota.maxUsdUnattended)";

export function openUnattendedLedger({
  file,
  clock,
}: {
  readonly file: string;
  readonly clock: WaitClock;
}): UnattendedLedger {
  // Where nothing can be written, this process counts for itself.
  let own: LedgerState | undefined;
  const read = (): LedgerState => own ?? readState(file);
  const change = async (decide: (state: LedgerState) => LedgerState): Promise<void> => {
    const next = (): LedgerState => decide(withoutGone(read()));
    if (own !== undefined) {
      own = next();
      return;
    }
    let after: LedgerState | undefined;
    try {
      await withFileLock(file, () => {
        after = next();
        replaceWholeFile(file, `${JSON.stringify({ version: 1, ...after })}\n`);
      });
    } catch {
      own = after ?? next();
    }
  };

  return {
    begin: (payer) => change((state) => pay(state, payer, 0)),
    counts: (payer) => read().entries.some(isOf(payer)),
    isInUse: (account) => read().entries.some((entry) => entry.account === account && isOpen(entry)),
    async end(session) {
      if (own === undefined && !existsSync(file)) return;
      await change(({ entries, holds }) => ({
        entries: entries.filter((entry) => entry.session !== session && isOpen(entry)),
        holds: holds.filter((hold) => hold.session !== session),
      }));
    },
    async close(session) {
      if (!read().entries.some((entry) => entry.session === session)) return;
      await change((state) => ({
        ...state,
        entries: state.entries.map(({ process, ...entry }) =>
          entry.session === session ? entry : { ...entry, process },
        ),
      }));
    },
    budget(payer, { maxUsd, unknownPrice }) {
      const accountIn = ({ entries, holds }: LedgerState) => {
        const ofAccount = ({ account }: Payer): boolean => account === payer.account;
        const account = createAccount(whose, {
          costUsd: { value: maxUsd, from: "quota.maxUsdUnattended" },
        });
        account.pay({ usd: sum(entries.filter(ofAccount)), tokens: 0 });
        const held = sum(holds.filter(ofAccount));
        if (held > 0) account.hold({ usd: held, tokens: 0 });
        return account;
      };
      return {
        isLimited: true,
        async reserve(need, { signal }) {
          const id = randomUUID();
          while (true) {
            signal.throwIfAborted();
            let decided: ReturnType<typeof decideReservation> = "wait";
            await change((state) => {
              decided = decideReservation([accountIn(state)], need, { unknownPrice });
              if (decided === "wait" || decided.type === "refused") return state;
              const { usd } = amountOf(need, decided.maxOutput);
              return { ...state, holds: [...state.holds, { ...payer, id, usd, process: thisProcess() }] };
            });
            const found = decided as ReturnType<typeof decideReservation>;
            if (found !== "wait") {
              if (found.type === "refused") return found;
              return {
                ...found,
                async renew(spent) {
                  await change((state) => pay(state, payer, spent.usd));
                  const account = accountIn(read());
                  return account.left().usd < 0 ? account.refusal() : undefined;
                },
                settle(spent) {
                  void change((state) => {
                    const holds = state.holds.filter((hold) => hold.id !== id);
                    if (holds.length === state.holds.length) return state;
                    return pay({ ...state, holds }, payer, spent.usd);
                  });
                },
              };
            }
            await clock.sleep(lookMs, signal);
          }
        },
        takeCalls: (count) => ({ granted: count }),
        refusal(need) {
          const { unspent, refusal } = accountIn(read());
          return unspent().usd < amountOf(need, 0).usd ? refusal(amountOf(need, 0)) : undefined;
        },
      };
    },
  };
}

/** The same with so much more for one payer, which is open in this process. */
function pay({ entries, holds }: LedgerState, payer: Payer, usd: number): LedgerState {
  const before = entries.find(isOf(payer))?.usd ?? 0;
  const others = entries.filter((entry) => !isOf(payer)(entry));
  const { session, account } = payer;
  return { entries: [...others, { session, account, usd: before + usd, process: thisProcess() }], holds };
}

/** A call whose process died counts as what it held: its cost is unknown. */
function withoutGone(state: LedgerState): LedgerState {
  const gone = state.holds.filter(({ process }) => livenessOf(process) === "gone");
  const entries = state.entries.map((entry) => ({
    ...entry,
    usd: entry.usd + sum(gone.filter(isOf(entry))),
  }));
  return { entries, holds: state.holds.filter((hold) => !gone.includes(hold)) };
}

function isOpen({ process }: LedgerEntry): boolean {
  return process !== undefined && livenessOf(process) !== "gone";
}

function isOf({ session, account }: Payer) {
  return (other: Payer): boolean => other.session === session && other.account === account;
}

function sum(members: readonly { readonly usd: number }[]): number {
  return members.reduce((total, { usd }) => total + usd, 0);
}

/** Total: a file that cannot be read says nothing. */
function readState(file: string): LedgerState {
  let value: unknown;
  try {
    value = parseJson(readFileSync(file, "utf8"));
  } catch {
    return nothing;
  }
  if (!isRecord(value) || value["version"] !== 1) return nothing;
  const entries = listOf(value["entries"]).map(({ process, ...entry }) => ({
    ...entry,
    ...(process === undefined ? {} : { process }),
  }));
  const holds = listOf(value["holds"]).flatMap(({ id, process, ...payer }): Hold[] =>
    id === undefined || process === undefined ? [] : [{ ...payer, id, process }],
  );
  return { entries, holds };
}

function listOf(value: unknown) {
  const members: readonly unknown[] = Array.isArray(value) ? value : [];
  return members.flatMap((member) => {
    if (!isRecord(member)) return [];
    const { session, account, usd, id } = member;
    if (typeof session !== "string" || typeof account !== "string") return [];
    if (typeof usd !== "number" || !Number.isFinite(usd) || usd < 0) return [];
    const process = toIdentity(member["process"]);
    return [{ session, account, usd, process, ...(typeof id === "string" ? { id } : {}) }];
  });
}
