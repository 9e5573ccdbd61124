import type { LimitReached } from "../../loop/limit-reached.ts";
import type { RunLimits } from "../../planning/run-limits.ts";
import { type Amount, amountOf, type CallNeed } from "./need-estimator.ts";

/** The sums of one agent or of a whole tree. */
export interface Account {
  readonly usd: number | undefined;
  readonly tokens: number | undefined;
  /** Neither spent nor held by a call that is going on. */
  left(): Amount;
  unspent(): Amount;
  spent(): Amount;
  hold(amount: Amount): void;
  release(amount: Amount): void;
  pay(amount: Amount): void;
  callsLeft(): number;
  takeCalls(count: number): void;
  callsRefusal(): LimitReached;
  /** What is missing: for a call, or for anything at all. */
  refusal(needed?: Amount): LimitReached;
}

export function createAccount(
  whose: string,
  { cost, tokens, toolCalls }: Pick<RunLimits, "cost" | "tokens" | "toolCalls"> = {},
): Account {
  const most: Amount = { usd: cost?.value ?? unlimited, tokens: tokens?.value ?? unlimited };
  let spent: Amount = { usd: 0, tokens: 0 };
  let held: Amount = { usd: 0, tokens: 0 };
  let holders = 0;
  let calls = 0;
  const unspent = (): Amount => minus(most, spent);
  const left = (): Amount => minus(unspent(), held);
  return {
    usd: cost?.value,
    tokens: tokens?.value,
    left,
    unspent,
    spent: () => spent,
    hold(amount) {
      holders += 1;
      held = plus(held, amount);
    },
    release(amount) {
      holders -= 1;
      // Sums of fractions leave a hair behind, and somebody would wait for ever for the one that holds it.
      held = holders === 0 ? { usd: 0, tokens: 0 } : atLeastNothing(minus(held, amount));
    },
    pay(amount) {
      spent = plus(spent, amount);
    },
    callsLeft: () => Math.max(0, (toolCalls?.value ?? unlimited) - calls),
    takeCalls(count) {
      calls += count;
    },
    callsRefusal: () => ({
      reason: "max_tool_calls",
      error: `The limit of ${toolCalls?.value ?? 0} tool calls ${whose} was reached.`,
    }),
    refusal(needed) {
      const now = left();
      const byTokens =
        cost === undefined || (tokens !== undefined && now.tokens < (needed?.tokens ?? 1) && now.usd > 0);
      if (byTokens && tokens !== undefined) {
        const next = needed === undefined ? "" : `; the next call may take up to ${needed.tokens}`;
        return {
          reason: "max_total_tokens",
          error: `Token limit reached: ${Math.max(0, now.tokens)} of ${tokens.value} tokens ${whose} left${next}.`,
        };
      }
      const next = needed === undefined ? "" : `; the next call may cost up to ${money(needed.usd)}`;
      return {
        reason: "max_budget",
        error: `Budget limit reached: ${money(Math.max(0, now.usd))} of ${money(most.usd)} US dollars ${whose} left${next}.`,
      };
    },
  };
}

/** The account that has too little for a call with an answer of this length, in words. */
export function refusalOf(accounts: readonly Account[], need: CallNeed, outputTokens: number): LimitReached {
  const needed = amountOf(need, outputTokens);
  const short = accounts.find((account) => {
    const { usd, tokens } = account.left();
    return usd < needed.usd || tokens < needed.tokens;
  });
  return (short ?? accounts[0])?.refusal(needed) ?? { reason: "max_budget", error: "Budget limit reached." };
}

const unlimited = Number.POSITIVE_INFINITY;

function plus(a: Amount, b: Amount): Amount {
  return { usd: a.usd + b.usd, tokens: a.tokens + b.tokens };
}

function minus(a: Amount, b: Amount): Amount {
  return { usd: a.usd - b.usd, tokens: a.tokens - b.tokens };
}

/** Sums of fractions may end a hair below nothing. */
function atLeastNothing({ usd, tokens }: Amount): Amount {
  return { usd: Math.max(0, usd), tokens: Math.max(0, tokens) };
}

/** Rounded down, so that what is left is never overstated; two digits at least. */
function money(usd: number): string {
  const text = (Math.floor(usd * 10_000 + 1e-6) / 10_000).toFixed(4);
  return text.replace(/0{1,2}$/, "");
}
