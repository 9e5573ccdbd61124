import * as z from "zod";
import { isRecord } from "../foundation/json-record.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tools/tool.ts";
import { callNames, type GivenTool } from "./normalize-options.ts";
import { zod3JsonSchema } from "./zod3-json-schema.ts";

/** Brings a tool of any shape that programs have into ours: input as zod 4, zod 3, Standard Schema or JSON Schema. */
export function adaptTool({ name, tool }: GivenTool): Tool {
  const schema = tool["input"] ?? tool["inputSchema"] ?? tool["parameters"];
  const input = readInput(name, schema, tool["inputSchema"]);
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
  return { content: value === undefined ? "Done." : JSON.stringify(value), data: value };
}

function isOutcome(value: unknown): value is ToolOutcome {
  if (!isRecord(value)) return false;
  const { content } = value;
  return (
    typeof content === "string" ||
    (Array.isArray(content) && content.every((block) => isRecord(block) && typeof block["type"] === "string"))
  );
}

type Checked =
  | { readonly type: "valid"; readonly value: unknown }
  | { readonly type: "invalid"; readonly reason: string };

interface InputReading {
  /** What the loop checks by itself. */
  readonly type?: z.ZodType;
  readonly jsonSchema?: Readonly<Record<string, unknown>>;
  /** Checks by the schema's own library, just before the call. */
  readonly check?: (value: unknown) => Promise<Checked>;
}

function readInput(name: string, schema: unknown, written: unknown): InputReading {
  if (schema === undefined) return {};
  if (isZod4(schema)) return { type: schema };
  if (isZod3(schema)) return { jsonSchema: zod3JsonSchema(schema), check: standardCheck(name, schema) };
  if (isStandard(schema)) {
    const jsonSchema = standardJsonSchema(schema) ?? plainSchema(written);
    if (jsonSchema === undefined) throw unusable(name, "its library gives no JSON Schema");
    return { jsonSchema, check: standardCheck(name, schema) };
  }
  if (!isRecord(schema)) throw unusable(name, "it is not an object");
  const shape = Object.values(schema);
  // The Agent SDK takes the fields of an object alone.
  if (shape.length > 0 && shape.every(isZod4)) return { type: z.object(schema as z.ZodRawShape) };
  if (isRecord(schema["jsonSchema"])) return { jsonSchema: schema["jsonSchema"] };
  if (plainSchema(schema) === undefined) throw unusable(name, 'it has no "type": "object"');
  return { jsonSchema: schema };
}

function isZod4(schema: unknown): schema is z.ZodType {
  return typeof schema === "object" && schema !== null && "_zod" in schema;
}

type Foreign = Readonly<Record<string, unknown>>;

function isZod3(schema: unknown): schema is Foreign {
  if (typeof schema !== "object" || schema === null || !("_def" in schema)) return false;
  return typeof Reflect.get(schema, "safeParseAsync") === "function";
}

function isStandard(schema: unknown): schema is Foreign {
  const isThing = (typeof schema === "object" && schema !== null) || typeof schema === "function";
  return isThing && isRecord(Reflect.get(schema, "~standard"));
}

/** Libraries that follow the JSON part of Standard Schema say how a model should see it. */
function standardJsonSchema(schema: Foreign): Foreign | undefined {
  const standard = Reflect.get(schema, "~standard");
  const part = isRecord(standard) ? standard["jsonSchema"] : undefined;
  const make = isRecord(part) ? part["input"] : undefined;
  const made: unknown = typeof make === "function" ? make.call(part, { target: "draft-2020-12" }) : undefined;
  if (isRecord(made)) return made;
  // ArkType and others have a method of their own.
  const own: unknown = Reflect.get(schema, "toJsonSchema");
  const written: unknown = typeof own === "function" ? own.call(schema) : undefined;
  return isRecord(written) ? written : undefined;
}

function plainSchema(schema: unknown): Foreign | undefined {
  return isRecord(schema) && !isStandard(schema) && (schema["type"] === "object" || "properties" in schema)
    ? schema
    : undefined;
}

/** Zod 3 and every Standard Schema check a value themselves. */
function standardCheck(name: string, schema: Foreign): (value: unknown) => Promise<Checked> {
  return async (value) => {
    const result: unknown = await validate(schema, value);
    const issues = issuesOf(result);
    if (issues === undefined)
      return { type: "valid", value: isRecord(result) && "value" in result ? result["value"] : value };
    const flaws = issues.slice(0, 5).map(describeIssue);
    return { type: "invalid", reason: `The input of ${name} is not valid. ${flaws.join("; ")}.` };
  };
}

async function validate(schema: Foreign, value: unknown): Promise<unknown> {
  const standard = Reflect.get(schema, "~standard");
  if (isRecord(standard) && typeof standard["validate"] === "function") return standard["validate"](value);
  const parse: unknown = Reflect.get(schema, "safeParseAsync");
  const result: unknown = typeof parse === "function" ? await parse.call(schema, value) : undefined;
  if (!isRecord(result)) return { value };
  return result["success"] === true ? { value: result["data"] } : { issues: issuesOf(result["error"]) ?? [] };
}

/** The result may be any object: that of ArkType is a list which also has `issues`. */
function issuesOf(result: unknown): readonly unknown[] | undefined {
  const issues: unknown =
    typeof result === "object" && result !== null ? Reflect.get(result, "issues") : undefined;
  return Array.isArray(issues) ? issues : undefined;
}

function describeIssue(issue: unknown): string {
  const { message, path } = isRecord(issue) ? issue : {};
  const keys = Array.isArray(path) ? path.map((part) => String(isRecord(part) ? part["key"] : part)) : [];
  return `${keys.length === 0 ? "the input" : `\`${keys.join(".")}\``}: ${String(message)}`;
}

function unusable(name: string, reason: string): RetinueError {
  return new RetinueError(
    "invalid-schema",
    `The input schema of the tool ${JSON.stringify(name)} cannot be used: ${reason}.`,
    {
      advice:
        'Pass a zod schema, or a JSON Schema such as {"type":"object","properties":{…}} as inputSchema.',
    },
  );
}
