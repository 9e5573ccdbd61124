import type { ToolName } from "../foundation/tool-table.ts";
import { decide, type PermissionPolicy } from "../permissions/decide.ts";

export const webSearchName: ToolName = "WebSearch";

/** The built-in tools that a run cannot have because of its model or its rules. */
export function refusedTools(facts: SearchFacts): ReadonlyMap<string, string> {
  const reason = refuseSearch(facts);
  return new Map(reason === undefined ? [] : [[webSearchName, reason]]);
}

/**
 * Why the provider's own web search is not offered to a run, or undefined. The provider runs it without asking, so there is
 * no call to decide about: it needs a model that has it and a rule or mode that allows it beforehand.
 */
function refuseSearch({ policy, model, canSearch }: SearchFacts): string | undefined {
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
