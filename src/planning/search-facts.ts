import { decide, type PermissionPolicy } from "../permissions/decide.ts";

export const webSearchName = "WebSearch";

/**
 * Why the provider's own web search is not offered to a run, or undefined. The provider runs it without asking, so there is
 * no call to decide about: it needs a model that has it and a rule or mode that allows it beforehand.
 */
export function refuseSearch(
  tool: { readonly name: string; readonly origin: string },
  { policy, model, canSearch }: SearchFacts,
): string | undefined {
  if (tool.name !== webSearchName || tool.origin !== "builtin") return undefined;
  if (!canSearch) return `the model ${model} has no web search of its own`;
  const { toolScopes: _scopes, ...rights } = policy;
  const call = { tool: webSearchName, effect: "network", paths: [], input: {} };
  if (decide(call, rights).type === "allow") return undefined;
  return 'no rule allows it, and the provider searches without asking; allow it with --allowedTools "WebSearch"';
}

export interface SearchFacts {
  readonly policy: PermissionPolicy;
  readonly model: string;
  readonly canSearch: boolean;
}
