import type { AgentTotals } from "./agent-event.ts";
import type { Usage } from "./usage.ts";

/** What one agent has taken, by model too, in the words that hooks and programs read. */
export interface SpentRecord {
  readonly usage: TokenRecord;
  /** Absent where a price is not known. */
  readonly total_cost_usd?: number;
  readonly num_turns: number;
  readonly tool_uses: number;
  readonly model_usage: Readonly<Record<string, TokenRecord & { readonly cost_usd?: number }>>;
}

interface TokenRecord {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
}

export function spentRecord({ totals, models }: Pick<AgentTotals, "totals" | "models">): SpentRecord {
  const byModel = Object.entries(models).map(
    ([model, { usage, costUsd }]) =>
      [model, { ...tokenRecord(usage), ...(costUsd === undefined ? {} : { cost_usd: costUsd }) }] as const,
  );
  return {
    usage: tokenRecord(totals.usage),
    total_cost_usd: totals.costUsd,
    num_turns: totals.turns,
    tool_uses: totals.toolUses,
    model_usage: Object.fromEntries(byModel),
  };
}

function tokenRecord(usage: Usage): TokenRecord {
  return {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
  };
}
