import { isRecord, kindOf } from "@retinue/base/foundation/json-record.ts";
import type { Tool, ToolContext, ToolOutcome } from "../../tools/tool.ts";
import { callNames, type GivenTool } from "./normalize-runtime-options.ts";
import { readSchema } from "./read-schema.ts";

/** Brings a tool of any shape that programs have into ours: input as zod 4, zod 3, Standard Schema or JSON Schema. */
export function adaptTool({ name, tool }: GivenTool): Tool {
  const what = `The input schema of the tool ${JSON.stringify(name)}`;
  const schema = tool["input"] ?? tool["inputSchema"] ?? tool["parameters"];
  const input = readSchema(schema, { subject: `input of ${name}`, what, written: tool["inputSchema"] });
  const method = callNames.find((key) => typeof tool[key] === "function") ?? "call";
  // Checked above: it is a function of the program, whose result is checked below.
  const call = tool[method] as (input: unknown, context: unknown) => unknown;
  return {
    effect: "execute",
    ...tool,
    name,
    description: typeof tool["description"] === "string" ? tool["description"] : "",
    origin: tool["origin"] === "mcp" ? "mcp" : "program",
    input: input.type,
    inputSchema: input.jsonSchema,
    async call(given: unknown, context: ToolContext): Promise<ToolOutcome> {
      const checked = await input.check?.(given);
      if (checked?.type === "invalid") return { content: checked.reason, isError: true };
      const value = checked === undefined ? given : checked.value;
      return toOutcome(await call.call(tool, value, contextFor(method, context)));
    },
  } as Tool;
}

/** The AI SDK and the Agent SDK name the same things otherwise. */
function contextFor(method: string, context: ToolContext): unknown {
  if (method === "call") return context;
  return { ...context, toolCallId: context.callId, abortSignal: context.signal, messages: [] };
}

/** A text, an outcome of ours, or any value, which the model sees as JSON. */
export function toOutcome(value: unknown): ToolOutcome {
  if (typeof value === "string") return { content: value };
  if (isOutcome(value)) return value;
  if (value === undefined) return { content: "Done." };
  const json: string | undefined = JSON.stringify(value);
  if (json === undefined)
    return { content: `The tool returned ${kindOf(value)}, which is not a valid result.`, isError: true };
  return { content: json, data: value };
}

function isOutcome(value: unknown): value is ToolOutcome {
  if (!isRecord(value)) return false;
  const { content } = value;
  return (
    typeof content === "string" ||
    (Array.isArray(content) && content.every((block) => isRecord(block) && typeof block["type"] === "string"))
  );
}
