import { estimateMessageTokens, estimateRequestTokens } from "../conversation/estimate-request-tokens.ts";
import type { Message } from "../conversation/message.ts";
import { contextTokens, costOf, noUsage, type Price, type Usage } from "../conversation/usage.ts";
import type { ModelFacts, ModelRequest } from "../models/model.ts";

/** What one or more calls took, or may take. */
export interface Amount {
  /** US dollars; 0 where the price is not known. */
  readonly usd: number;
  readonly tokens: number;
}

/** The most one model call may take. */
export interface CallNeed {
  readonly model: string;
  readonly inputTokens: number;
  readonly maxOutput: number;
  readonly price?: Price;
}

export function amountOf({ inputTokens, price }: CallNeed, outputTokens: number): Amount {
  const tokens = inputTokens + outputTokens;
  if (price === undefined) return { usd: 0, tokens };
  // What the cache holds is unknown beforehand, so the dearest reading of the prompt counts.
  const fresh = costOf({ ...noUsage, inputTokens, outputTokens }, price);
  const written = costOf({ ...noUsage, cacheWriteTokens: inputTokens, outputTokens }, price);
  return { usd: Math.max(fresh, written), tokens };
}

/** How long the answer may be for what is left; below 0 where not even the prompt fits. */
export function affordableOutput(need: CallNeed, left: Amount): number {
  const prompt = amountOf(need, 0);
  const perToken = (amountOf(need, 1_000_000).usd - prompt.usd) / 1_000_000;
  const byMoney =
    perToken > 0 ? Math.floor((left.usd - prompt.usd) / perToken) : whole(left.usd - prompt.usd);
  return Math.min(byMoney, left.tokens - prompt.tokens, need.maxOutput);
}

function whole(left: number): number {
  return left >= 0 ? Number.POSITIVE_INFINITY : -1;
}

export function actualAmount(usage: Usage, price: Price | undefined): Amount {
  return {
    usd: price === undefined ? 0 : costOf(usage, price),
    tokens: contextTokens(usage) + usage.outputTokens,
  };
}

/** Says what a request may take, and learns from what earlier ones of the same agent took. */
export interface NeedEstimator {
  needOf(request: ModelRequest): CallNeed;
  /** What the last request really had as its prompt. */
  learn(promptTokens: number): void;
}

/** The estimate may be off by a fifth; after the first answer it is measured and only a little is added. */
const margins = { first: 1.3, later: 1.1, least: 0.5, most: 4 } as const;

export function createNeedEstimator(facts: ModelFacts): NeedEstimator {
  const known = new WeakMap<Message, number>();
  let margin: number = margins.first;
  let lastEstimate = 0;

  /** Each message is counted once, so that a turn costs what is new in it. */
  function tokensOf(message: Message): number {
    const tokens = known.get(message) ?? estimateMessageTokens(message);
    known.set(message, tokens);
    return tokens;
  }

  return {
    needOf({ messages, maxTokens, ...rest }) {
      const frame = estimateRequestTokens({ ...rest, messages: [] });
      lastEstimate = messages.reduce((sum, message) => sum + tokensOf(message), frame);
      return {
        model: facts.id,
        inputTokens: Math.ceil(lastEstimate * margin),
        maxOutput: Math.min(maxTokens ?? facts.maxOutputTokens, facts.maxOutputTokens),
        price: facts.price,
      };
    },
    learn(promptTokens) {
      if (lastEstimate === 0 || promptTokens === 0) return;
      const measured = (promptTokens / lastEstimate) * margins.later;
      margin = Math.min(margins.most, Math.max(margins.least, measured));
    },
  };
}
