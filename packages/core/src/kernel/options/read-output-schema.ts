import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { withinTime } from "@retinue/base/foundation/within-time.ts";
import * as z from "zod";
import { type Checked, isZod4, readSchema } from "./read-schema.ts";
import type { OutputSchema } from "./typed-output.ts";

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

export function readOutputSchema(schema: OutputSchema): OutputReading {
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
  const type = typeOfZod(schema, isShape);
  if (type !== undefined) return { form: toJsonSchema(type), check: zodCheck(type) };
  const { jsonSchema, check } = readSchema(schema, { subject: "result", what });
  if (jsonSchema === undefined || check === undefined) throw unusable("it is not a schema");
  return { form: jsonSchema, check };
}

function typeOfZod(schema: object, isShape: boolean): z.ZodType | undefined {
  if (isShape) return z.object(schema as z.ZodRawShape);
  return isZod4(schema) ? schema : undefined;
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
    throw unusable("it has no keyword of a JSON Schema, such as type or properties");
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
