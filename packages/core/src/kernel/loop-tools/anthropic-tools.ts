import { checkArgument } from "@retinue/base/foundation/check-arguments.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { resolveToolName } from "@retinue/config/tools/tool-entry.ts";
import type { LoopTool } from "./tools-for-loops.ts";
import { loopTools } from "./tools-for-loops.ts";

/** Tools in the words of the Anthropic SDK, without depending on it. */
export interface AnthropicTools {
  /** For `tools` of `messages.create`, beside the program's own. */
  readonly definitions: {
    name: string;
    description: string;
    input_schema: { type: "object"; [key: string]: unknown };
  }[];
  /** Runs the calls to these tools that an answer holds, all at the same time; calls to other tools are left alone. */
  answer(
    content: readonly { readonly type: string }[],
    options?: { readonly signal?: AbortSignal },
  ): Promise<{ type: "tool_result"; tool_use_id: string; content: string; is_error?: boolean }[]>;
}

export function toAnthropicTools(tools: readonly LoopTool[]): AnthropicTools {
  checkArgument("The first argument of toAnthropicTools()", loopTools, tools);
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  return {
    definitions: tools.map(({ name, description, inputSchema }) => ({
      name,
      description,
      input_schema: { ...inputSchema, type: "object" },
    })),
    answer: (content, { signal } = {}) =>
      Promise.all(
        content.flatMap((block) => {
          const call = readCall(block);
          const tool = call === undefined ? undefined : find(call.name, byName);
          if (call === undefined || tool === undefined) return [];
          return [
            tool.call(call.input, { signal, callId: call.id }).then(({ text, isError }) => ({
              type: "tool_result" as const,
              tool_use_id: call.id,
              content: text,
              ...(isError ? { is_error: true } : {}),
            })),
          ];
        }),
      ),
  };
}

/** Models that learned the name `Task` mean Agent. */
function find(name: string, tools: ReadonlyMap<string, LoopTool>): LoopTool | undefined {
  const meaning = resolveToolName(name);
  return tools.get(name) ?? (meaning.type === "renamed" ? tools.get(meaning.name) : undefined);
}

function readCall(block: unknown): { id: string; name: string; input: unknown } | undefined {
  if (!isRecord(block)) return undefined;
  const { type, id, name, input } = block;
  return type === "tool_use" && typeof id === "string" && typeof name === "string"
    ? { id, name, input }
    : undefined;
}
