import { isRecord } from "../../foundation/json-record.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

/** The JSON Schema of a type of zod 3, which zod 4 does not convert. What is not known here accepts anything; zod still checks it. */
export function zod3JsonSchema(type: unknown, depth = 0): JsonSchema {
  const definition = definitionOf(type);
  if (definition === undefined || depth > 50) return {};
  const description = typeof definition["description"] === "string" ? definition["description"] : undefined;
  const schema = convert(definition, (inner) => zod3JsonSchema(inner, depth + 1));
  return description === undefined ? schema : { ...schema, description };
}

type Convert = (type: unknown) => JsonSchema;

function convert(definition: JsonSchema, of: Convert): JsonSchema {
  switch (definition["typeName"]) {
    case "ZodObject":
      return objectSchema(definition, of);
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

function objectSchema(definition: JsonSchema, of: Convert): JsonSchema {
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
