import type { ToolSearchMode } from "@retinue/config/settings/read-environment.ts";
import { parseToolEntry } from "@retinue/config/tools/tool-entry.ts";
import type { AgentPlan, PlannedDefinition } from "../../planning/agent-plan.ts";
import {
  createToolSearch,
  type ToolSearch,
  takesMore,
  toolSearchName,
} from "../../tools/create-tool-search.ts";
import type { Tool } from "../../tools/tool.ts";

/** What decides whether the tools of MCP servers are loaded on demand. */
export interface DeferralFacts {
  /** ENABLE_TOOL_SEARCH; absent: when they take more than a tenth of the window. */
  readonly mode: ToolSearchMode | undefined;
  /** Tokens that fit into a request to the agent's model. */
  readonly contextWindow: number;
}

/** Whether these tools are too many to be shown from the start. */
export function areDeferred(
  tools: readonly Tool[],
  { mode = { abovePercent: 10 }, contextWindow }: DeferralFacts,
): boolean {
  const deferrable = tools.filter(isDeferrable);
  if (mode === "never" || deferrable.length === 0) return false;
  return mode === "always" || takesMore(deferrable, { percent: mode.abovePercent, contextWindow });
}

interface SearchParts extends DeferralFacts {
  readonly definition: Pick<PlannedDefinition, "tools"> | undefined;
  /** All tools that the agent has. */
  readonly granted: readonly Tool[];
}

/** The search of an agent that has one; undefined where it gets all its tools from the start. */
export function openToolSearch(
  plan: Pick<AgentPlan, "tools" | "loadedTools">,
  { definition, granted, ...facts }: SearchParts,
): ToolSearch | undefined {
  const isGranted = plan.tools.some(({ name }) => name === toolSearchName);
  // A program's own tool of that name takes its place.
  if (!isGranted || granted.some(({ name }) => name === toolSearchName)) return undefined;
  // Who names a tool wants it to be there.
  const named = new Set((definition?.tools ?? []).map((entry) => parseToolEntry(entry).name));
  const deferred = granted.filter((tool) => isDeferrable(tool) && !named.has(tool.name));
  return areDeferred(deferred, facts) ? createToolSearch(deferred, plan.loadedTools) : undefined;
}

/** Tools over resources belong to no server and stay. */
function isDeferrable({ origin, mcp, isAlwaysLoaded }: Tool): boolean {
  return origin === "mcp" && mcp !== undefined && isAlwaysLoaded !== true;
}
