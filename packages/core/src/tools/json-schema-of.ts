import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { Repeats } from "../conversation/interrupted-agent.ts";
import type { ToolSpecification } from "../models/model.ts";
import { type InputCheck, InputType } from "./input-type.ts";
import type { Tool } from "./tool.ts";

/** A tool's schema never changes, so it is made once; the same objects turn after turn also keep prompt caches valid. */
const specifications = new WeakMap<Tool, ToolSpecification>();
const lists = new WeakMap<readonly Tool[], readonly ToolSpecification[]>();
/** All lists that begin with a tool: agents that have the same tools share what is made of them. */
const alike = new WeakMap<ToolSpecification, (readonly ToolSpecification[])[]>();

/** The same list for the same tools, so that models can keep what they made of it. */
export function specificationsOf(tools: readonly Tool[]): readonly ToolSpecification[] {
  const known = lists.get(tools);
  if (known?.length === tools.length) return known;
  const made = shared(tools.map(specificationOf));
  lists.set(tools, made);
  return made;
}

/** The same list for equal specifications. */
export function shared(list: readonly ToolSpecification[]): readonly ToolSpecification[] {
  const [first] = list;
  if (first === undefined) return list;
  const others = alike.get(first) ?? [];
  const same = others.find(
    (other) => other.length === list.length && other.every((tool, at) => tool === list[at]),
  );
  if (same === undefined) alike.set(first, [...others, list]);
  return same ?? list;
}

export function specificationOf(tool: Tool): ToolSpecification {
  const known = specifications.get(tool);
  if (known !== undefined) return known;
  const { name, description } = tool;
  const made = {
    name,
    description,
    inputSchema:
      tool.inputSchema ??
      (tool.input === undefined ? { type: "object", properties: {} } : jsonSchemaOf(tool.input)),
    ...(tool.findsTools === true ? { loading: "searches" as const } : {}),
  };
  specifications.set(tool, made);
  return made;
}

const found = new WeakMap<Tool, ToolSpecification>();

/** A tool that a search has found. */
export function foundSpecificationOf(tool: Tool): ToolSpecification {
  const known = found.get(tool) ?? { ...specificationOf(tool), loading: "found" };
  found.set(tool, known);
  return known;
}

/** The JSON Schema that a model sees of a type. Those of zod make it themselves. */
export function jsonSchemaOf(type: InputCheck): Readonly<Record<string, unknown>> {
  if (type instanceof InputType) return type.jsonSchema;
  const { $schema: _schema, ...schema } = standardJsonSchema(type) ?? {};
  return schema;
}

/** Libraries that follow the JSON part of Standard Schema define how a model should see it. */
export function standardJsonSchema(type: object): JsonRecord | undefined {
  const standard = Reflect.get(type, "~standard");
  const part = isRecord(standard) ? standard["jsonSchema"] : undefined;
  const make = isRecord(part) ? part["input"] : undefined;
  const made: unknown = typeof make === "function" ? make.call(part, { target: "draft-2020-12" }) : undefined;
  return isRecord(made) ? made : undefined;
}

/** What repeating a call of this tool does: as the tool or its server says, else by what using it does to the world. */
export function repeatsOf({
  repeats,
  effect,
  origin,
  mcp,
}: Pick<Tool, "repeats" | "effect" | "origin" | "mcp">): Repeats {
  if (repeats !== undefined) return repeats;
  // What is offered here for the network only fetches; a program's own tool may send.
  if (effect === "read" || (effect === "network" && origin !== "program")) return "pure";
  return mcp?.hints.idempotent === true ? "idempotent" : "unsafe";
}
