import type { Usage } from "../../../conversation/usage.ts";

/** Usage under the names of the Anthropic API. */
export function wireUsage(usage: Usage) {
  return {
    input_tokens: usage.inputTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    output_tokens: usage.outputTokens,
  };
}
