import type { AnyNode } from "acorn";
import { isNamed, isNode, keyName, parseAs } from "./read-workflow-script.ts";

/** What a script does, apart from how it is written. */
export interface WorkflowMeaning {
  /** Its syntax without places and comments. */
  readonly tree: unknown;
  /** What it may start, one sentence each; what is chosen while it runs can be anything. */
  readonly starts: readonly string[];
}

/** Options of a step that decide what its agent may do. */
const steering: ReadonlySet<string> = new Set([
  "agent",
  "agentType",
  "tools",
  "disallowedTools",
  "permissionMode",
  "mode",
  "isolation",
  "cwd",
  "env",
]);

/** Undefined for a script that does not parse, which never runs. */
export function workflowMeaning(text: string): WorkflowMeaning | undefined {
  const parsed = parseAs("module", text);
  if (parsed.type === "failed") return undefined;
  const starts = new Set<string>();
  const tree = withoutPlaces(parsed.program, (node) => {
    if (node.type !== "CallExpression") return;
    const name = ["agent", "workflow"].find((word) => isNamed(node.callee, word));
    if (name === undefined) return;
    const [first, options] = node.arguments;
    if (name === "workflow") starts.add(`starts the workflow ${literalText(first)}`);
    else if (options === undefined) starts.add("starts agents");
    else for (const sentence of optionsOf(options)) starts.add(sentence);
  });
  return { tree, starts: [...starts].sort() };
}

function optionsOf(options: AnyNode): readonly string[] {
  const anything = "starts agents with options that are chosen while it runs";
  if (options.type !== "ObjectExpression") return [anything];
  const sentences = options.properties.flatMap((property) => {
    if (property.type !== "Property" || property.computed) return [anything];
    const { key, value } = property;
    const name = keyName(key) ?? "";
    return steering.has(name) ? [`starts agents with ${name} ${literalText(value)}`] : [];
  });
  return sentences.length === 0 ? ["starts agents"] : sentences;
}

function literalText(node: AnyNode | undefined): string {
  if (node === undefined) return "that is chosen while it runs";
  if (node.type === "Literal") return JSON.stringify(node.value);
  if (node.type === "ArrayExpression" && node.elements.every((element) => element?.type === "Literal"))
    return `[${node.elements.map((element) => literalText(element ?? undefined)).join(", ")}]`;
  return "that is chosen while it runs";
}

/** How a literal is written says nothing: its value does. */
const written: ReadonlySet<string> = new Set(["start", "end", "loc", "raw", "range", "directive"]);

function withoutPlaces(node: AnyNode, visit: (node: AnyNode) => void): unknown {
  visit(node);
  const entries = Object.entries(node)
    .filter(([key]) => !written.has(key))
    .map(([key, value]) => [key, plain(value)] as const);
  return Object.fromEntries(entries);

  function plain(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(plain);
    if (isNode(value)) return withoutPlaces(value, visit);
    // A template has its text, and a regular expression its source, in an object that is no node.
    if (typeof value === "bigint") return `${value}n`;
    return value instanceof RegExp ? String(value) : value;
  }
}
