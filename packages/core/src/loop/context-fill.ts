import { estimateMessageTokens } from "../conversation/estimate-request-tokens.ts";
import type { Message } from "../conversation/message.ts";
import { contextTokens, type Usage } from "../conversation/usage.ts";

/** How full a conversation is: what the provider counted at the last answer, and an estimate of what came since. */
export interface ContextFill {
  filled(): number;
  /** The part that is the same in every request: system prompt and tools. */
  fixed(): number;
  /** An estimate, set right by how far estimates were off at the last answer. */
  tokensOf(message: Message): number;
  /** By how much estimates are multiplied. */
  scale(): number;
  added(message: Message): void;
  /** Called when the answer itself was added. */
  answered(usage: Usage): void;
  replaced(messages: readonly Message[]): void;
}

/** Each message is estimated once, so a turn costs what is new in it. */
export function createContextFill(fixedEstimate: () => number, history: readonly Message[]): ContextFill {
  const estimates = new WeakMap<Message, number>();
  let fixed: number | undefined;
  let scale = 1;
  let known: { readonly tokens: number; readonly estimate: number } | undefined;
  let total = 0;

  const fixedTokens = (): number => {
    fixed ??= fixedEstimate();
    return fixed;
  };
  const estimate = (message: Message): number => {
    const before = estimates.get(message);
    if (before !== undefined) return before;
    const fresh = estimateMessageTokens(message);
    estimates.set(message, fresh);
    return fresh;
  };
  const sum = (messages: readonly Message[]): number =>
    messages.reduce((tokens, message) => tokens + estimate(message), 0);
  const scaled = (tokens: number): number => Math.ceil(tokens * scale);

  total = sum(history);
  return {
    filled() {
      if (known === undefined) return scaled(fixedTokens() + total);
      return known.tokens + scaled(total - known.estimate);
    },
    fixed: () => scaled(fixedTokens()),
    tokensOf: (message) => scaled(estimate(message)),
    scale: () => scale,
    added(message) {
      total += estimate(message);
    },
    answered(usage) {
      // Some servers count nothing; then only the estimate is left.
      if (contextTokens(usage) === 0) {
        known = undefined;
        return;
      }
      const tokens = contextTokens(usage) + usage.outputTokens;
      scale = Math.min(maxScale, Math.max(leastScale, tokens / (fixedTokens() + total)));
      known = { tokens, estimate: total };
    },
    replaced(messages) {
      known = undefined;
      total = sum(messages);
    },
  };
}

/** An estimate that is further off than this is not the estimate's error. */
const leastScale = 0.5;
const maxScale = 3;
