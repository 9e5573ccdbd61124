import { z } from "zod";
import { Fault } from "../foundation/fault.ts";
import { defineTool, type Tool } from "../tools/tool.ts";

/** A zod schema, or a JSON Schema as plain data. */
export type OutputSchema<Output = unknown> = z.ZodType<Output> | Readonly<Record<string, unknown>>;

/** Lets a run hand in a value that was checked against a schema. */
export interface TypedOutput {
  readonly tool: Tool;
  /** The value handed in, once there is one. */
  readonly value: () => { readonly output: unknown } | undefined;
}

export const outputToolName = "StructuredOutput";

/** Told to an agent that stopped without handing in its value. */
export const outputReminder = `Hand in your result now by calling ${outputToolName}; a text alone does not count.`;

export function createTypedOutput(schema: OutputSchema): TypedOutput {
  const type = toZod(schema);
  let given: { output: unknown } | undefined;
  // Models are asked for an object; any other type travels as its only field.
  const isObject = z.toJSONSchema(type, { io: "input", unrepresentable: "any" })["type"] === "object";
  const input = isObject ? type : z.object({ value: type });
  const tool = defineTool<unknown>({
    name: outputToolName,
    description:
      "Hands in the final result of this run, in the form the caller asked for. Call it once, at the end.",
    effect: "coordinate",
    input,
    async call(value) {
      given = { output: isObject ? value : Reflect.get(Object(value), "value") };
      return { content: "The result was accepted.", data: given.output };
    },
  });
  return { tool, value: () => given };
}

function toZod(schema: OutputSchema): z.ZodType {
  if (schema instanceof z.ZodType) return schema;
  if ("_zod" in schema) return schema as unknown as z.ZodType;
  try {
    return z.fromJSONSchema(schema);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Fault("invalid-schema", `The output schema cannot be used: ${reason}`, {
      advice: 'Give a JSON Schema object such as {"type":"object","properties":{…}}.',
      cause: error,
    });
  }
}
