import type { JsonRecord } from "./json-record.ts";

/** A JSON Schema of draft 7, which editors know best. */
export type JsonSchema = JsonRecord;

/** The files that there is a schema for. */
export const schemaNames = [
  "settings",
  "agent",
  "agents",
  "skill",
  "mcp",
  "hooks",
  "workflow",
  "lock",
  "eval",
] as const;
export type SchemaName = (typeof schemaNames)[number];

/** Where editors find a schema: in the published package. */
export function schemaAddress(name: SchemaName): string {
  return `https://unpkg.com/retinue/schemas/${name}.json`;
}

export const schemas = {
  /** A text that is not blank. */
  text: { type: "string", pattern: "\\S" },
  /** `true` and `false` also as texts. Patterns, unlike enumerations, are not offered by editors. */
  flag: { anyOf: [{ type: "boolean" }, { type: "string", pattern: "^(?:true|false)$" }] },
  /** A single text is taken for a list of one. */
  textList: { anyOf: [{ type: "array", items: { type: "string" } }, { type: "string" }] },
  /** Everything that readers turn into a number; the limits of numbers are not looked at in texts. */
  numberText: {
    type: "string",
    pattern:
      "^\\s*(?:[+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+)\\s*$",
  },
  integerText: { type: "string", pattern: "^\\s*[+-]?\\d+\\s*$" },
  null: { type: "null" },
} as const satisfies Readonly<Record<string, JsonSchema>>;

/** A value that may be null, which readers take for absent. */
export function orNull(schema: JsonSchema): JsonSchema {
  return { anyOf: [schema, schemas.null] };
}

/** The words as editors offer them, and in any case, with spaces around them; with separators also `accept-edits`. */
export function looseWords(words: readonly string[], separators: "" | "[-_\\s]*" = ""): JsonSchema {
  const patterns = words.map((word) =>
    [...word]
      .map((letter) => (/[a-z]/i.test(letter) ? `[${letter.toLowerCase()}${letter.toUpperCase()}]` : letter))
      .join(separators),
  );
  return { anyOf: [{ enum: words }, { type: "string", pattern: `^\\s*(?:${patterns.join("|")})\\s*$` }] };
}
