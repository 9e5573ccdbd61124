import { escapeControlTags } from "../conversation/escape-control-tags.ts";
import { isRecord, isUnreasonablyLarge, type JsonRecord } from "../foundation/json-record.ts";
import { takeStart } from "../tools/limit-text.ts";
import type { McpHints } from "../tools/tool.ts";

/** One tool as its server describes it, made harmless. */
export interface ListedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonRecord;
  readonly hints: McpHints;
}

const maxDescription = 2_048;
const maxSchema = 100_000;

/** Reads what a server lists; an entry without a name is none, everything else is repaired. */
export function readListedTools(value: unknown): readonly ListedTool[] {
  if (!Array.isArray(value)) return [];
  const seen = new Set<string>();
  return value.flatMap((entry: unknown): ListedTool[] => {
    if (!isRecord(entry) || typeof entry["name"] !== "string" || entry["name"] === "") return [];
    const { name } = entry;
    if (seen.has(name)) return [];
    seen.add(name);
    return [
      {
        name,
        description: describe(entry, name),
        inputSchema: readSchema(entry["inputSchema"]),
        hints: readHints(entry["annotations"]),
      },
    ];
  });
}

export function boundedText(text: string, limit: number): string {
  return text.length <= limit ? text : `${takeStart(text, limit - 1)}…`;
}

function describe({ description, title }: JsonRecord, name: string): string {
  const text = [description, title].find((part) => typeof part === "string" && part.trim() !== "");
  return escapeControlTags(boundedText(typeof text === "string" ? text.trim() : name, maxDescription));
}

/** Providers refuse a whole request for one schema that is not an object's; such a tool takes any object. */
function readSchema(schema: unknown): JsonRecord {
  const open = { type: "object", properties: {} };
  if (!isRecord(schema) || isUnreasonablyLarge(schema, { depth: 60, nodes: 20_000 })) return open;
  if (JSON.stringify(schema).length > maxSchema) return open;
  if (schema["type"] !== undefined && schema["type"] !== "object") return open;
  return repaired(defusedRecord(schema));
}

/** What a schema says in words is read by the model like a description. How deep it is was looked at before. */
function defused(value: unknown): unknown {
  if (typeof value === "string") return escapeControlTags(value);
  if (Array.isArray(value)) return value.map(defused);
  return isRecord(value) ? defusedRecord(value) : value;
}

function defusedRecord(record: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(record).map(([key, part]) => [key, defused(part)]));
}

function repaired(schema: JsonRecord): JsonRecord {
  const rest = Object.entries(schema).filter(([key]) => !refusedKeys.has(key));
  const properties = readProperties(schema["properties"]);
  const required = Array.isArray(schema["required"])
    ? schema["required"].filter((name) => typeof name === "string" && Object.hasOwn(properties, name))
    : [];
  return {
    ...Object.fromEntries(rest),
    type: "object",
    properties,
    ...(required.length === 0 ? {} : { required }),
  };
}

/** What providers do not take at the top of a schema, and what is read on its own. */
const refusedKeys: ReadonlySet<string> = new Set(
  "$schema type properties required anyOf oneOf allOf not if then else enum const".split(" "),
);

function readProperties(properties: unknown): JsonRecord {
  if (!isRecord(properties)) return {};
  return Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => /^[A-Za-z0-9_.-]{1,64}$/.test(name))
      .map(([name, schema]) => [name, isRecord(schema) || typeof schema === "boolean" ? schema : {}]),
  );
}

function readHints(annotations: unknown): McpHints {
  if (!isRecord(annotations)) return {};
  const hint = (name: string) => (typeof annotations[name] === "boolean" ? annotations[name] : undefined);
  const [readOnly, destructive, idempotent] = ["readOnlyHint", "destructiveHint", "idempotentHint"].map(hint);
  return {
    ...(readOnly === undefined ? {} : { readOnly }),
    ...(destructive === undefined ? {} : { destructive }),
    ...(idempotent === undefined ? {} : { idempotent }),
  };
}
