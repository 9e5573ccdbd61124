import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { OpenSdkSession } from "../open-sdk-session.ts";

/** Estimates: four characters are a token. */
function tokensOf(value: unknown): number {
  return Math.ceil(JSON.stringify(value).length / 4);
}

export interface ContextUsage {
  readonly categories: readonly (JsonRecord & { readonly name: string; readonly tokens: number })[];
  readonly totalTokens: number;
  readonly maxTokens: number;
  readonly percentage: number;
}

/** How full the context window is, by what fills it, as far as it can be estimated without asking the provider. */
export function describeContext({ session }: OpenSdkSession, modelName: string): ContextUsage & JsonRecord {
  const { plan, model, discovered } = session;
  const messages = session.messages();
  const servers = plan.tools.filter(({ name }) => name.startsWith("mcp__"));
  const agents = discovered.registry.list().map(({ id, definition }) => ({
    agentType: id,
    source: definition.source.scope,
    tokens: tokensOf([id, definition.description]),
  }));
  const used = [
    ["system_prompt", "System prompt", tokensOf(plan.system)],
    ["mcp_tools", "MCP tools", servers.length === 0 ? 0 : tokensOf(servers)],
    ["custom_agents", "Agents", agents.reduce((sum, { tokens }) => sum + tokens, 0)],
    ["messages", "Messages", messages.length === 0 ? 0 : tokensOf(messages)],
  ] as const;
  const total = used.reduce((sum, [, , tokens]) => sum + tokens, 0);
  const free = Math.max(0, model.contextWindow - total);
  const color = "inactive";
  return {
    categories: [
      ...used.map(([id, name, tokens]) => ({ id, name, tokens, color, kind: "used" })),
      { id: "free_space", name: "Free space", tokens: free, color, kind: "free" },
    ],
    totalTokens: total,
    maxTokens: model.contextWindow,
    rawMaxTokens: model.contextWindow,
    percentage: Math.round((total / model.contextWindow) * 100),
    gridRows: [],
    model: modelName,
    memoryFiles: [],
    mcpTools: servers.map((tool) => ({
      name: tool.name,
      serverName: tool.name.split("__")[1] ?? "",
      tokens: tokensOf(tool),
    })),
    agents,
    isAutoCompactEnabled: true,
    apiUsage: null,
  };
}
