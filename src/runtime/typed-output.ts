import * as z from "zod";
import { isRecord } from "../foundation/json-record.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import { defineTool, type Tool } from "../tools/tool.ts";
import type { Capability } from "./agent/capability.ts";

/** A zod schema, or a JSON Schema as plain data. */
export type OutputSchema<Output = unknown> = z.ZodType<Output> | Readonly<Record<string, unknown>>;

/** Lets a run hand in a value that was checked against a schema, and counts how often it failed to. */
export interface TypedOutput {
  readonly tool: Tool;
  /** Forgets the value and the count of the run before. */
  begin(): void;
  /** The value handed in, once there is one. */
  value(): { readonly output: unknown } | undefined;
  /** Notes that the agent stopped without handing in a value. */
  miss(): void;
  /** Whether the agent has failed more often than it may. */
  hasGivenUp(): boolean;
}

/** What a typed result adds to an agent: the tool that takes it, which needs no permission, since it changes nothing outside. */
export function outputCapability(output: TypedOutput): Capability {
  return {
    tools: [output.tool],
    beforeCall: (next) => async (request, options) =>
      request.tool === output.tool ? { type: "allowed", input: request.input } : next(request, options),
    isFinished: () => output.value() !== undefined || output.hasGivenUp(),
  };
}

/** The same for a child, which is reminded until it returns a value that matches, or has failed too often. */
export function childOutputCapability(output: TypedOutput): Capability {
  return {
    ...outputCapability(output),
    async beforeEnd() {
      if (output.value() !== undefined || output.hasGivenUp()) return undefined;
      output.miss();
      if (output.hasGivenUp()) return undefined;
      return { role: "user", content: [{ type: "text", text: outputReminder }] };
    },
  };
}

/** The typed outputs that the children of a session were asked for, by agent id. */
export interface ChildOutputs {
  ask(agentId: string, schema: OutputSchema): TypedOutput;
  of(agentId: string): TypedOutput | undefined;
  forget(agentId: string): void;
}

export function createChildOutputs(options: { readonly maxRetries?: number | undefined }): ChildOutputs {
  const outputs = new Map<string, TypedOutput>();
  return {
    ask(agentId, schema) {
      const output = createTypedOutput(schema, options);
      outputs.set(agentId, output);
      return output;
    },
    of: (agentId) => outputs.get(agentId),
    forget: (agentId) => void outputs.delete(agentId),
  };
}

export const outputToolName = "StructuredOutput";

/** Told to an agent that stopped without handing in its value. */
export const outputReminder = `Hand in your result now by calling ${outputToolName}; a text alone does not count.`;

export function createTypedOutput(
  schema: OutputSchema,
  { maxRetries = 5 }: { readonly maxRetries?: number | undefined } = {},
): TypedOutput {
  const { type, form } = readSchema(schema);
  // Models are asked for an object; any other type travels as its only field.
  const isObject = form["type"] === "object";
  let given: { output: unknown } | undefined;
  let failures = 0;
  const tool = defineTool<unknown>({
    name: outputToolName,
    description:
      "Hands in the final result of this run, in the form the caller asked for. Call it once, at the end.",
    effect: "coordinate",
    inputSchema: isObject ? form : wrap(form),
    async call(input) {
      const result = await type.safeParseAsync(isObject ? input : Reflect.get(Object(input), "value"));
      if (!result.success) {
        failures += 1;
        return { content: describeFlaws(result.error.issues), isError: true };
      }
      given = { output: result.data };
      return { content: "The result was accepted.", data: result.data };
    },
  });
  return {
    tool,
    begin() {
      given = undefined;
      failures = 0;
    },
    value: () => given,
    miss() {
      failures += 1;
    },
    hasGivenUp: () => failures > maxRetries,
  };
}

function describeFlaws(issues: readonly z.core.$ZodIssue[]): string {
  const flaws = issues.slice(0, 10).map(({ path, message }) => {
    const where = path.length === 0 ? "the result" : `\`${path.map(String).join(".")}\``;
    return `${where}: ${message}`;
  });
  return `The result does not have the form that was asked for. ${flaws.join("; ")}. Correct it and call ${outputToolName} again.`;
}

/** References inside a schema start at its root, so what they point to stays there. */
function wrap(form: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { $defs, definitions, ...value } = form;
  return {
    type: "object",
    properties: { value },
    required: ["value"],
    ...($defs === undefined ? {} : { $defs }),
    ...(definitions === undefined ? {} : { definitions }),
  };
}

/** A schema of another copy of zod 4 works the same, though it is of another class. */
function isZod(schema: OutputSchema): schema is z.ZodType {
  return schema instanceof z.ZodType || "_zod" in schema;
}

interface SchemaReading {
  readonly type: z.ZodType;
  /** As the model sees it. */
  readonly form: Readonly<Record<string, unknown>>;
}

function readSchema(schema: OutputSchema): SchemaReading {
  if (isZod(schema)) return { type: schema, form: toJsonSchema(schema) };
  if ("_def" in schema || "~standard" in schema) {
    throw unusable("it is a schema of another library or of an older zod");
  }
  const fields = Object.values(schema);
  // Fields alone, as tools of the Agent SDK have them.
  if (fields.length > 0 && fields.every((field) => isRecord(field) && "_zod" in field)) {
    const type = z.object(schema as z.ZodRawShape);
    return { type, form: toJsonSchema(type) };
  }
  if (Array.isArray(schema) || (fields.length > 0 && !jsonSchemaWords.some((word) => word in schema)))
    throw unusable("it says nothing that a JSON Schema says, such as type or properties");
  try {
    return { type: z.fromJSONSchema(schema), form: schema };
  } catch (error) {
    throw unusable(error instanceof Error ? error.message : String(error), error);
  }
}

/** One of them says what a value is; a schema with none of them, but for the empty one, is a mistake. */
const jsonSchemaWords = [
  "type",
  "properties",
  "items",
  "enum",
  "const",
  "anyOf",
  "oneOf",
  "allOf",
  "not",
  "$ref",
];

function toJsonSchema(type: z.ZodType): Record<string, unknown> {
  try {
    const { $schema: _schema, ...form } = z.toJSONSchema(type, { io: "input", unrepresentable: "any" });
    return form;
  } catch (error) {
    throw unusable(error instanceof Error ? error.message : String(error), error);
  }
}

function unusable(reason: string, cause?: unknown): RetinueError {
  return new RetinueError("invalid-schema", `The output schema cannot be used: ${reason}.`, {
    advice: 'Give a schema of zod 4, or a JSON Schema object such as {"type":"object","properties":{…}}.',
    ...(cause === undefined ? {} : { cause }),
  });
}
