import { z } from "zod";
import type { ToolSpecification } from "../model/model.ts";
import type { Tool } from "./tool.ts";

/** A tool's schema never changes, so it is made once; the same objects turn after turn also keep prompt caches valid. */
const specifications = new WeakMap<Tool, ToolSpecification>();

export function specificationsOf(tools: readonly Tool[]): readonly ToolSpecification[] {
  return tools.map(specificationOf);
}

export function specificationOf(tool: Tool): ToolSpecification {
  const known = specifications.get(tool);
  if (known !== undefined) return known;
  const { name, description } = tool;
  const made = { name, description, inputSchema: tool.inputSchema ?? schemaOf(tool) };
  specifications.set(tool, made);
  return made;
}

function schemaOf(tool: Tool): Readonly<Record<string, unknown>> {
  if (tool.input === undefined) return { type: "object", properties: {} };
  const { $schema: _schema, ...schema } = z.toJSONSchema(tool.input, { io: "input" });
  return schema;
}
