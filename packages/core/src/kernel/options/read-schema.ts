import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ZodType } from "zod";
import { type InputCheck, InputType, object } from "../../tools/input-type.ts";
import { jsonSchemaOf, standardJsonSchema } from "../../tools/json-schema-of.ts";

export type Checked =
  | { readonly type: "valid"; readonly value: unknown }
  | { readonly type: "invalid"; readonly reason: string };

/** A schema as a program gives it, in the form that a model sees and a way to check values. */
interface SchemaReading {
  /** A type of zod 4 or one of ours, which the caller checks by itself. */
  readonly type?: InputCheck;
  readonly jsonSchema?: Readonly<Record<string, unknown>>;
  /** Checks by the schema's own library. */
  readonly check?: (value: unknown) => Promise<Checked>;
}

interface SchemaNames {
  /** How a message about a wrong value names it, such as `input of Search`. */
  readonly subject: string;
  /** How an error about the schema begins. */
  readonly what: string;
  /** A JSON Schema that was given beside it. */
  readonly written?: unknown;
}

/** Reads zod 4, zod 3, Standard Schema, the fields of a zod object, or JSON Schema. */
export function readSchema(schema: unknown, names: SchemaNames): SchemaReading {
  if (schema === undefined) return {};
  if (isZod4(schema) || schema instanceof InputType) return { type: schema };
  if (isZod3(schema)) return { jsonSchema: zod3JsonSchema(schema), check: standardCheck(names, schema) };
  if (isStandard(schema)) {
    const jsonSchema = ownJsonSchema(schema) ?? plainSchema(names.written);
    if (jsonSchema === undefined) throw unusable(names, "its library cannot convert it to a JSON Schema");
    return { jsonSchema, check: standardCheck(names, schema) };
  }
  if (!isRecord(schema)) throw unusable(names, "it is not an object");
  const shape = Object.values(schema);
  // The Agent SDK takes the fields of an object alone.
  if (shape.length > 0 && shape.every(isZod4))
    return { type: objectOf(schema as Readonly<Record<string, ZodType>>) };
  if (isRecord(schema["jsonSchema"])) return { jsonSchema: schema["jsonSchema"] };
  if (plainSchema(schema) === undefined) throw unusable(names, 'it has no "type": "object"');
  return { jsonSchema: schema };
}

export function isZod4(schema: unknown): schema is ZodType {
  return typeof schema === "object" && schema !== null && "_zod" in schema;
}

/** Zod itself is not loaded for it: the types of the fields have all that is needed. */
function objectOf(fields: Readonly<Record<string, ZodType>>): InputCheck {
  const entries = Object.entries(fields);
  return object(Object.fromEntries(entries.map(([key, type]) => [key, fieldOf(type)])));
}

function fieldOf(type: ZodType): InputType<unknown> {
  return new InputType({
    schema: jsonSchemaOf(type),
    mayBeAbsent: type._zod.optin === "optional",
    read(value, path, flaws) {
      const reading = type.safeParse(value);
      if (reading.success) return reading.data;
      const own = reading.error.issues.map((issue) => ({ ...issue, path: [...path, ...issue.path] }));
      flaws.push(...own.map((issue) => ({ path: issue.path, message: issue.message, isFinal: true })));
      return value;
    },
  });
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

function ownJsonSchema(schema: Foreign): Foreign | undefined {
  const made = standardJsonSchema(schema);
  if (made !== undefined) return made;
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
function standardCheck({ subject }: SchemaNames, schema: Foreign): (value: unknown) => Promise<Checked> {
  return async (value) => {
    const result: unknown = await validate(schema, value);
    const issues = issuesOf(result);
    if (issues === undefined)
      return { type: "valid", value: isRecord(result) && "value" in result ? result["value"] : value };
    const flaws = issues.slice(0, 5).map((issue) => describeIssue(issue, subject));
    return { type: "invalid", reason: `The ${subject} is not valid. ${flaws.join("; ")}.` };
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

function describeIssue(issue: unknown, subject: string): string {
  const { message, path } = isRecord(issue) ? issue : {};
  const keys = Array.isArray(path) ? path.map((part) => String(isRecord(part) ? part["key"] : part)) : [];
  return `${keys.length === 0 ? `the ${subject.split(" ")[0]}` : `\`${keys.join(".")}\``}: ${String(message)}`;
}

function unusable({ what }: SchemaNames, reason: string): RetinueError {
  return new RetinueError("invalid-schema", `${what} cannot be used: ${reason}.`, {
    advice: 'Pass a zod or Standard Schema, or a JSON Schema such as {"type":"object","properties":{…}}.',
  });
}

type JsonSchema = Readonly<Record<string, unknown>>;

/** The JSON Schema of a type of zod 3, which zod 4 does not convert. What is not known here accepts anything; zod still checks it. */
function zod3JsonSchema(type: unknown, depth = 0): JsonSchema {
  const definition = definitionOf(type);
  if (definition === undefined || depth > 50) return {};
  const description = typeof definition["description"] === "string" ? definition["description"] : undefined;
  const schema = convert(definition, (inner) => zod3JsonSchema(inner, depth + 1));
  return description === undefined ? schema : { ...schema, description };
}

type Convert = (type: unknown) => JsonSchema;

function convert(definition: JsonSchema, of: Convert): JsonSchema {
  switch (definition["typeName"]) {
    case "ZodObject": {
      const made: unknown =
        typeof definition["shape"] === "function" ? definition["shape"]() : definition["shape"];
      const fields = isRecord(made) ? Object.entries(made) : [];
      const required = fields.flatMap(([key, field]) => (isOptional(field) ? [] : [key]));
      return {
        type: "object",
        properties: Object.fromEntries(fields.map(([key, field]) => [key, of(field)])),
        ...(required.length === 0 ? {} : { required }),
        ...(definition["unknownKeys"] === "strict" ? { additionalProperties: false } : {}),
      };
    }
    case "ZodString":
      return { type: "string" };
    case "ZodNumber":
      return { type: isInteger(definition) ? "integer" : "number" };
    case "ZodBoolean":
      return { type: "boolean" };
    case "ZodArray":
      return { type: "array", items: of(definition["type"]) };
    case "ZodEnum":
      return { type: "string", enum: definition["values"] };
    case "ZodLiteral":
      return { const: definition["value"] };
    case "ZodRecord":
      return { type: "object", additionalProperties: of(definition["valueType"]) };
    case "ZodUnion":
    case "ZodDiscriminatedUnion":
      return { anyOf: optionsOf(definition["options"]).map(of) };
    case "ZodNullable":
      return { anyOf: [of(definition["innerType"]), { type: "null" }] };
    case "ZodOptional":
    case "ZodDefault":
    case "ZodReadonly":
    case "ZodCatch":
      return of(definition["innerType"]);
    case "ZodEffects":
      return of(definition["schema"]);
    default:
      return {};
  }
}

function isOptional(type: unknown): boolean {
  const name = definitionOf(type)?.["typeName"];
  return name === "ZodOptional" || name === "ZodDefault" || name === "ZodCatch";
}

function isInteger(definition: JsonSchema): boolean {
  const checks = definition["checks"];
  return Array.isArray(checks) && checks.some((check) => isRecord(check) && check["kind"] === "int");
}

function optionsOf(options: unknown): readonly unknown[] {
  if (Array.isArray(options)) return options;
  return options instanceof Map ? [...options.values()] : [];
}

function definitionOf(type: unknown): JsonSchema | undefined {
  const definition: unknown =
    typeof type === "object" && type !== null ? Reflect.get(type, "_def") : undefined;
  return isRecord(definition) ? definition : undefined;
}
