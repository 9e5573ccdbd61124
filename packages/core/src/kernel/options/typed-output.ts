import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { withinTime } from "@retinue/base/foundation/within-time.ts";
import * as z from "zod";
import { defineTool, type Tool } from "../../tools/tool.ts";
import type { Capability } from "../agent/open-agent.ts";
import { type Checked, readSchema } from "./read-schema.ts";

/** A schema of zod 4, whose type the result has; of zod 3 or a library that follows Standard Schema; or a JSON Schema. */
export type OutputSchema<Output = unknown> =
  | z.ZodType<Output>
  | { readonly "~standard": object }
  | Readonly<Record<string, unknown>>;

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
  /** Whether a text will do instead, because the agent was reminded and that is done once only. */
  isWaived(): boolean;
}

/**
 * What a typed result adds to an agent: the tool that takes it, which needs no permission, since it changes nothing outside,
 * and a reminder for an agent that stops without a value that matches.
 */
export function outputCapability(output: TypedOutput): Capability {
  return {
    tools: [output.tool],
    beforeCall: (next) => async (request, options) =>
      request.tool === output.tool ? { type: "allowed", input: request.input } : next(request, options),
    isFinished: () => output.value() !== undefined || output.hasGivenUp(),
    handsInValue: true,
    async beforeEnd() {
      if (output.value() !== undefined || output.hasGivenUp()) return undefined;
      output.miss();
      if (output.hasGivenUp() || output.isWaived()) return undefined;
      return { role: "user", content: [{ type: "text", text: outputReminder }] };
    },
  };
}

/** The typed outputs that the children of a session were asked for, by agent id. */
export interface ChildOutputs {
  ask(agentId: string, schema: OutputSchema, own?: Pick<TypedOutputOptions, "remindsOnce">): TypedOutput;
  of(agentId: string): TypedOutput | undefined;
  forget(agentId: string): void;
}

export function createChildOutputs(options: { readonly maxRetries?: number | undefined }): ChildOutputs {
  const outputs = new Map<string, TypedOutput>();
  return {
    ask(agentId, schema, own) {
      const output = createTypedOutput(schema, { ...options, ...own });
      outputs.set(agentId, output);
      return output;
    },
    of: (agentId) => outputs.get(agentId),
    forget: (agentId) => void outputs.delete(agentId),
  };
}

export const outputToolName = "StructuredOutput";

/** Sent to an agent that stopped without handing in its value. */
export const outputReminder = `Hand in your result now by calling ${outputToolName}; a text alone does not count.`;

export interface TypedOutputOptions {
  readonly maxRetries?: number | undefined;
  /** Values that do not match are counted, and not what was forgotten; the last of them is no retry. */
  readonly remindsOnce?: boolean;
}

export function createTypedOutput(
  schema: OutputSchema,
  { maxRetries = 5, remindsOnce = false }: TypedOutputOptions = {},
): TypedOutput {
  const { form, check } = readOutputSchema(schema);
  // Models are asked for an object; any other type travels as its only field.
  const isObject = form["type"] === "object";
  let given: { output: unknown } | undefined;
  let failures = 0;
  let misses = 0;
  const tool = defineTool<unknown>({
    name: outputToolName,
    description:
      "Hands in the final result of this run, in the form the caller asked for. Call it once, at the end.",
    effect: "coordinate",
    inputSchema: isObject ? form : wrap(form),
    async call(input) {
      const checked = await check(isObject ? input : Reflect.get(Object(input), "value"));
      if (checked.type === "uncheckable") {
        failures = Number.POSITIVE_INFINITY;
        return { content: checked.reason, isError: true };
      }
      if (checked.type === "invalid") {
        failures += 1;
        return { content: `${checked.reason} Correct it and call ${outputToolName} again.`, isError: true };
      }
      given = { output: checked.value };
      return { content: "The result was accepted.", data: checked.value };
    },
  });
  return {
    tool,
    begin() {
      given = undefined;
      failures = 0;
      misses = 0;
    },
    value: () => given,
    miss() {
      misses += 1;
      if (!remindsOnce) failures += 1;
    },
    hasGivenUp: () => (remindsOnce ? failures > 0 && failures >= maxRetries : failures > maxRetries),
    isWaived: () => remindsOnce && misses > 1,
  };
}

/** A schema as the JSON Schema that a model sees, for a run elsewhere. */
export function outputForm(schema: OutputSchema): Readonly<Record<string, unknown>> {
  return readOutputSchema(schema).form;
}

/** What a run elsewhere has returned, checked against the schema itself, which may say more than its JSON Schema. */
export async function checkOutput(schema: OutputSchema, value: unknown): Promise<Checked> {
  const checked = await readOutputSchema(schema).check(value);
  return checked.type === "uncheckable" ? { ...checked, type: "invalid" } : checked;
}

function describeFlaws(issues: readonly z.core.$ZodIssue[]): string {
  const flaws = issues.slice(0, 10).map(({ path, message }) => {
    const where = path.length === 0 ? "the result" : `\`${path.map(String).join(".")}\``;
    return `${where}: ${message}`;
  });
  return `The result does not match the schema. ${flaws.join("; ")}.`;
}

/** References inside a schema start at its root, so what they point to stays there. */
function wrap(form: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { $defs, definitions, ...value } = form;
  return {
    type: "object",
    properties: { value },
    required: ["value"],
    ...($defs === undefined ? {} : { $defs }),
    definitions,
  };
}

interface OutputReading {
  /** What the model sees. */
  readonly form: Readonly<Record<string, unknown>>;
  readonly check: (value: unknown) => Promise<Checked | Uncheckable>;
}

/** The schema does not come to an end with a value, and would not with the next one. */
interface Uncheckable {
  readonly type: "uncheckable";
  readonly reason: string;
}

function readOutputSchema(schema: OutputSchema): OutputReading {
  const isForeign = "~standard" in schema || "_def" in schema || "_zod" in schema;
  const fields: readonly unknown[] = Object.values(schema);
  // Fields alone, as tools of the Agent SDK have them.
  const isShape = fields.length > 0 && fields.every((field) => isRecord(field) && "_zod" in field);
  if (!isForeign && !isShape) {
    const read = fromJson(schema);
    // The expressions of a schema, which may come from the script of a workflow, must not be able to stop this process.
    const isSlow = /"pattern(?:Properties)?":/.test(JSON.stringify(schema));
    return { form: schema, check: isSlow ? boundedCheck(read) : zodCheck(read) };
  }
  const { type, jsonSchema, check } = readSchema(schema, { subject: "result", what });
  if (type !== undefined) return { form: toJsonSchema(type), check: zodCheck(type) };
  if (jsonSchema === undefined || check === undefined) throw unusable("it is not a schema");
  return { form: jsonSchema, check };
}

function zodCheck(type: z.ZodType): OutputReading["check"] {
  return async (value) => checkedOf(await type.safeParseAsync(value));
}

const maxCheckMs = 5_000;

function boundedCheck(type: z.ZodType): OutputReading["check"] {
  return async (value) => {
    const checked = withinTime(() => checkedOf(type.safeParse(value)), maxCheckMs);
    if (checked.type === "done") return checked.result;
    return {
      type: "uncheckable",
      reason: `The result cannot be checked: with it, a pattern of the schema takes more than ${maxCheckMs / 1000} s.`,
    };
  };
}

function checkedOf(result: z.ZodSafeParseResult<unknown>): Checked {
  return result.success
    ? { type: "valid", value: result.data }
    : { type: "invalid", reason: describeFlaws(result.error.issues) };
}

function fromJson(schema: Readonly<Record<string, unknown>>): z.ZodType {
  if (
    Array.isArray(schema) ||
    !(Object.keys(schema).length === 0 || jsonSchemaWords.some((word) => word in schema))
  )
    throw unusable("it says nothing that a JSON Schema says, such as type or properties");
  try {
    return z.fromJSONSchema(schema);
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

const what = "The output schema";

function unusable(reason: string, cause?: unknown): RetinueError {
  return new RetinueError("invalid-schema", `${what} cannot be used: ${reason}.`, {
    advice: 'Pass a zod or Standard Schema, or a JSON Schema such as {"type":"object","properties":{…}}.',
    ...(cause === undefined ? {} : { cause }),
  });
}
