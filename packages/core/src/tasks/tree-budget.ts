import { abortable } from "@retinue/base/foundation/abortable.ts";
import type { LimitReached } from "../loop/loop-ports.ts";
import type { Model } from "../models/model.ts";
import type { ChildPlan, RunLimits } from "../planning/agent-plan.ts";
import {
  type Amount,
  affordableOutput,
  amountOf,
  type CallNeed,
  createNeedEstimator,
} from "./need-estimator.ts";

/** Held until the call is over, so that no other call can spend it. */
export interface Reservation {
  readonly type: "reserved";
  /** The longest answer that is paid for. */
  readonly maxOutput: number;
  /** Set when the answer has to be shorter than was asked for, with the limit that made it so. */
  readonly shortened?: LimitReached;
  /** An attempt failed but cost something: it is paid, and the same is held again for the next, if there is as much. */
  renew(spent: Amount): LimitReached | undefined | Promise<LimitReached | undefined>;
  /** Pays what the call really took and gives the rest back. Counts once. */
  settle(spent: Amount): void;
}

/** How many calls may be made, and the limit where it is not all of them. */
export interface TakenCalls {
  readonly granted: number;
  readonly limit?: LimitReached;
}

export type Reserved = Reservation | (LimitReached & { readonly type: "refused" });

/** What one agent may take, within what all agents of its tree may. */
export interface AgentBudget {
  /** False when no limit of money or tokens holds here, so that nothing needs to be reserved. */
  readonly isLimited: boolean;
  /** Waits while others hold what is missing; refuses only when giving back could not help. */
  reserve(need: CallNeed, options: { readonly signal: AbortSignal }): Promise<Reserved>;
  /** How many of so many tool calls may still be made, and the limit where it is not all of them. */
  takeCalls(count: number): TakenCalls | Promise<TakenCalls>;
  /** Why not even the shortest answer could be had now, whatever others give back. */
  refusal(need: CallNeed): LimitReached | undefined;
}

export interface TreeBudget {
  agent(limits: RunLimits | undefined): AgentBudget;
  /** What all agents together took so far. */
  spent(): Amount;
  /** Why no agent could do anything more. */
  refusal(): LimitReached | undefined;
}

export interface TreeBudgetOptions {
  /** What happens to calls of a model whose price is not known, where money is limited. */
  readonly unknownPrice?: "allow" | "refuse" | undefined;
  /** Whose budget it is, in messages. */
  readonly whose?: string;
}

/** An answer this long is worth starting while others hold the rest; a shorter one only when nothing more will come. */
const comfortableOutput = 8192;
const leastOutput = 1024;

interface Waiter {
  readonly decide: () => boolean;
}

export function createTreeBudget(
  limits: RunLimits | undefined,
  { unknownPrice = "allow", whose = "of the whole tree" }: TreeBudgetOptions = {},
): TreeBudget {
  const tree = createAccount(whose, limits);
  const line = createLine();
  return {
    spent: tree.spent,
    refusal: () => exhausted(tree),
    agent(own) {
      const accounts = [createAccount("of the agent", own), tree];
      const decide = (need: CallNeed) =>
        decideReservation(accounts, need, { unknownPrice, onSettled: line.decideWaiting });
      return {
        isLimited: accounts.some(({ usd, tokens }) => usd !== undefined || tokens !== undefined),
        reserve: (need, { signal }) => line.enter(() => decide(need), signal),
        takeCalls: (count) => takeCalls(accounts, count),
        refusal(need) {
          const least = Math.min(leastOutput, need.maxOutput);
          return affordableOutput(need, leftAfterReservations(accounts)) < least
            ? refusalOf(accounts, need, least)
            : exhausted(tree);
        },
      };
    },
  };
}

/** Those that wait for a reservation, in the order of arrival. */
interface WaitingLine {
  /** Decides for the first ones, until one has to wait: a later one does not take what an earlier one waits for. */
  decideWaiting(): void;
  enter(decide: () => Reserved | "wait", signal: AbortSignal): Promise<Reserved>;
}

function createLine(): WaitingLine {
  const waiters: Waiter[] = [];
  const decideWaiting = (): void => {
    while (waiters[0]?.decide() === true) waiters.shift();
  };
  return {
    decideWaiting,
    async enter(decide, signal) {
      signal.throwIfAborted();
      const answer = Promise.withResolvers<Reserved>();
      const waiter: Waiter = {
        decide() {
          const decided = decide();
          if (decided === "wait") return false;
          answer.resolve(decided);
          return true;
        },
      };
      waiters.push(waiter);
      decideWaiting();
      try {
        return await abortable(answer.promise, signal);
      } catch (error) {
        const at = waiters.indexOf(waiter);
        if (at !== -1) waiters.splice(at, 1);
        // It was granted in the moment it was stopped.
        else void answer.promise.then((given) => given.type === "reserved" && given.settle(nothing));
        decideWaiting();
        throw error;
      }
    },
  };
}

export function decideReservation(
  accounts: readonly Account[],
  need: CallNeed,
  {
    unknownPrice,
    onSettled = () => undefined,
  }: Pick<TreeBudgetOptions, "unknownPrice"> & { readonly onSettled?: () => void },
): Reserved | "wait" {
  if (unknownPrice === "refuse" && isUnpriced(accounts, need)) return { type: "refused", ...unpriced(need) };
  const reserve = (output: number): Reservation => createReservation(accounts, { need, output }, onSettled);
  const now = affordableOutput(need, leftOf(accounts));
  if (now >= need.maxOutput) return reserve(need.maxOutput);
  const comfortable = Math.min(comfortableOutput, need.maxOutput);
  const least = Math.min(leastOutput, need.maxOutput);
  if (now >= comfortable) {
    // The rest is left for the others, who would have to wait for this answer otherwise.
    const half = affordableOutput(need, halfOf(leftOf(accounts)));
    return reserve(Math.min(now, Math.max(comfortable, half)));
  }
  const ever = affordableOutput(need, leftAfterReservations(accounts));
  if (ever >= least && ever > now) return "wait";
  if (now >= least) return reserve(now);
  return { type: "refused", ...refusalOf(accounts, need, least) };
}

function createReservation(
  accounts: readonly Account[],
  { need, output }: { readonly need: CallNeed; readonly output: number },
  onSettled: () => void,
): Reservation {
  const amount = amountOf(need, output);
  let isOpen = true;
  for (const account of accounts) account.hold(amount);
  const limit = output < need.maxOutput ? refusalOf(accounts, need, need.maxOutput) : undefined;
  return {
    type: "reserved",
    maxOutput: output,
    shortened: limit,
    renew(spent) {
      for (const account of accounts) account.pay(spent);
      const left = leftOf(accounts);
      return left.usd < 0 || left.tokens < 0 ? refusalOf(accounts, need, output) : undefined;
    },
    settle(spent) {
      if (!isOpen) return;
      isOpen = false;
      for (const account of accounts) {
        account.release(amount);
        account.pay(spent);
      }
      onSettled();
    },
  };
}

function isUnpriced(accounts: readonly Account[], { price }: CallNeed): boolean {
  return price === undefined && accounts.some(({ usd }) => usd !== undefined);
}

const nothing: Amount = { usd: 0, tokens: 0 };

function leftOf(accounts: readonly Account[]): Amount {
  return smallest(accounts.map((account) => account.left()));
}

/** What would be left if everything that is held now came back. */
function leftAfterReservations(accounts: readonly Account[]): Amount {
  return smallest(accounts.map((account) => account.unspent()));
}

function smallest(amounts: readonly Amount[]): Amount {
  return {
    usd: Math.min(...amounts.map(({ usd }) => usd)),
    tokens: Math.min(...amounts.map(({ tokens }) => tokens)),
  };
}

function halfOf({ usd, tokens }: Amount): Amount {
  return { usd: usd / 2, tokens: Math.floor(tokens / 2) };
}

function takeCalls(accounts: readonly Account[], count: number): TakenCalls {
  const granted = Math.min(count, ...accounts.map((account) => account.callsLeft()));
  for (const account of accounts) account.takeCalls(granted);
  const limit = granted < count ? accounts.find((account) => account.callsLeft() === 0) : undefined;
  return limit === undefined ? { granted } : { granted, limit: limit.callsRefusal() };
}

function exhausted(tree: Account): LimitReached | undefined {
  if (tree.callsLeft() === 0) return tree.callsRefusal();
  const { usd, tokens } = tree.unspent();
  return usd <= 0 || tokens <= 0 ? tree.refusal() : undefined;
}

function unpriced({ model }: CallNeed): LimitReached {
  return {
    reason: "max_budget",
    error: `Budget limit reached: the price of ${model} is unknown, and the setting limits.unknownPrice refuses such calls where money is limited.`,
  };
}

/** The sums of one agent or of a whole tree. */
interface Account {
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
  { costUsd: cost, tokens, toolCalls }: Pick<RunLimits, "costUsd" | "tokens" | "toolCalls"> = {},
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
      // Sums of fractions leave a hair behind, and a call would wait for ever for the call that holds it.
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
function refusalOf(accounts: readonly Account[], need: CallNeed, outputTokens: number): LimitReached {
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

/** A child whose very first call cannot be paid for is not started. */
export function refuseUnpaid(
  { limits, system, task }: ChildPlan,
  { facts }: Model,
  budget: TreeBudget | undefined,
): string | undefined {
  const account = budget?.agent(limits);
  if (account?.isLimited !== true) return undefined;
  const messages = [{ role: "user" as const, content: task.prompt }];
  const need = createNeedEstimator(facts).needOf({ system, tools: [], messages });
  return account.refusal(need)?.error;
}
