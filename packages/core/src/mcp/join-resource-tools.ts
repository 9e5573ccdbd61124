import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tools/tool.ts";

/** Tools over the resources of one group of servers. */
export interface ResourceGroup {
  readonly servers: ReadonlySet<string>;
  readonly tools: readonly Tool[];
}

/** One pair of tools over several groups of servers, as names of tools must not come twice. */
export function joinResourceTools(groups: readonly ResourceGroup[]): readonly Tool[] {
  const [first, ...others] = groups.filter(({ tools }) => tools.length > 0);
  if (first === undefined || others.length === 0) return first?.tools ?? [];
  return first.tools.map((tool): Tool => {
    const parts = [first, ...others].flatMap(({ servers, tools }) => {
      const same = tools.find(({ name }) => name === tool.name);
      return same === undefined ? [] : [{ servers, tool: same }];
    });
    return {
      ...tool,
      async call(input, context) {
        const server = isRecord(input) ? input["server"] : undefined;
        const owner = parts.find(({ servers }) => typeof server === "string" && servers.has(server));
        if (owner !== undefined) return owner.tool.call(input, context);
        return server === undefined ? all(parts, input, context) : tool.call(input, context);
      },
    };
  });
}

async function all(
  parts: readonly { readonly tool: Tool }[],
  input: unknown,
  context: ToolContext,
): Promise<ToolOutcome> {
  const outcomes = await Promise.all(parts.map(({ tool }) => tool.call(input, context)));
  const content = outcomes.flatMap((outcome) =>
    typeof outcome.content === "string"
      ? [{ type: "text" as const, text: outcome.content }]
      : outcome.content,
  );
  return { content, ...(outcomes.some(({ isError }) => isError === true) ? { isError: true } : {}) };
}
