import type { ModelFacts, ServerTool } from "../../../models/model.ts";

export interface WebSearchOptions {
  readonly maxUses?: number;
  readonly allowedDomains?: readonly string[];
  readonly blockedDomains?: readonly string[];
}

/** The provider's own web search, for models that have one; there is no WebSearch tool for others. */
export function webSearchServerTool(
  facts: Pick<ModelFacts, "supportsServerTools">,
  { maxUses = 8, allowedDomains = [], blockedDomains = [] }: WebSearchOptions = {},
): ServerTool | undefined {
  if (!facts.supportsServerTools) return undefined;
  if (allowedDomains.length === 0) {
    return { name: "web_search", maxUses, ...(blockedDomains.length > 0 ? { blockedDomains } : {}) };
  }
  // A provider takes only one of the two lists, so what is blocked is taken out of what is allowed.
  const left = allowedDomains.filter(
    (domain) => !blockedDomains.some((blocked) => domain === blocked || domain.endsWith(`.${blocked}`)),
  );
  return left.length === 0 ? undefined : { name: "web_search", maxUses, allowedDomains: left };
}
