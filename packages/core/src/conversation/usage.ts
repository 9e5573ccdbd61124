/** Tokens of one or more model calls. `inputTokens` are those that were neither read from nor written to the cache. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
}

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
  };
}

/** Everything the model read: what fills its window. */
export function contextTokens(usage: Usage): number {
  return usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
}

/** US dollars per million tokens. */
export interface Rates {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

export interface Price extends Rates {
  /** Some models charge other rates for the whole call when its prompt is longer than this many tokens. */
  readonly longPrompt?: Rates & { readonly overTokens: number };
}

/** The cost of one model call. Costs add up; usages of several calls with a long-prompt price do not. */
export function costOf(usage: Usage, price: Price): number {
  const million = 1_000_000;
  const { longPrompt } = price;
  const rates = longPrompt !== undefined && contextTokens(usage) > longPrompt.overTokens ? longPrompt : price;
  return (
    (usage.inputTokens * rates.input +
      usage.outputTokens * rates.output +
      usage.cacheReadTokens * rates.cacheRead +
      usage.cacheWriteTokens * rates.cacheWrite) /
    million
  );
}

export function wireUsage(usage: Usage) {
  return {
    input_tokens: usage.inputTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    output_tokens: usage.outputTokens,
  };
}
