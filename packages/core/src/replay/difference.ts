import type { Message, ToolResultBlock } from "../conversation/message.ts";
import type { ModelRequest, ToolSpecification } from "../models/model.ts";
import { diffLines } from "../tools/line-diff.ts";

export const differenceKinds = [
  "prompt",
  "tools",
  "message",
  "request",
  "decision",
  "cost",
  "turns",
  "ending",
] as const;
export type DifferenceKind = (typeof differenceKinds)[number];

/** One thing that is not as it was recorded. */
export interface Difference {
  readonly kind: DifferenceKind;
  /** The id of the agent, `main` for the main one, and what a person calls it. */
  readonly agentId: string;
  readonly agent: string;
  /** The model call of the agent, counted from 1. */
  readonly turn?: number;
  /** The line of the transcript: an answer, or the prompt of a run. */
  readonly message?: string;
  readonly title: string;
  /** Lines with ` `, `-` (recorded) or `+` (now) before them. */
  readonly lines: readonly string[];
}

export type BareDifference = Pick<Difference, "kind" | "title" | "lines">;

/** What differs between two requests, the most informative first; empty where they are the same to the byte. */
export function compareRequests(before: ModelRequest, after: ModelRequest): readonly BareDifference[] {
  const { system: _system, tools: _tools, messages: _messages, ...restBefore } = before;
  const { system, tools, messages, ...restAfter } = after;
  const rest = lineChanges(asLines(restBefore), asLines(restAfter));
  return [
    ...compareSystem(before.system, system),
    ...compareTools(before.tools, tools),
    ...compareMessages(before.messages, messages),
    ...(rest.length === 0
      ? []
      : [{ kind: "request", title: "the options of the request", lines: rest } as const]),
  ];
}

function compareSystem(before: readonly string[], after: readonly string[]): readonly BareDifference[] {
  const lines = lineChanges(before.join("\n\n"), after.join("\n\n"));
  if (lines.length > 0) return [{ kind: "prompt", title: "the system prompt", lines }];
  const isSame = JSON.stringify(before) === JSON.stringify(after);
  return isSame ? [] : [{ kind: "prompt", title: "how the system prompt is divided into parts", lines: [] }];
}

function compareTools(
  before: readonly ToolSpecification[],
  after: readonly ToolSpecification[],
): readonly BareDifference[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const old = new Map(before.map((tool) => [tool.name, tool]));
  const now = new Map(after.map((tool) => [tool.name, tool]));
  const gone = [...old.keys()].filter((name) => !now.has(name)).map((name) => `- ${name}`);
  const added = [...now.keys()].filter((name) => !old.has(name)).map((name) => `+ ${name}`);
  const changed = [...now.values()].flatMap((tool) => {
    const earlier = old.get(tool.name);
    if (earlier === undefined) return [];
    const lines = lineChanges(describeTool(earlier), describeTool(tool));
    return lines.length === 0 ? [] : [`  ${tool.name}:`, ...lines.map((line) => `    ${line}`)];
  });
  const lines = [...gone, ...added, ...changed];
  return [{ kind: "tools", title: lines.length === 0 ? "the order of the tools" : "the tools", lines }];
}

function describeTool({ description, inputSchema }: ToolSpecification): string {
  return `${description}\n${JSON.stringify(inputSchema, undefined, 2)}`;
}

/** The first message that differs; those behind it follow from it. */
function compareMessages(before: readonly Message[], after: readonly Message[]): readonly BareDifference[] {
  const length = Math.max(before.length, after.length);
  for (let index = 0; index < length; index += 1) {
    const [old, now] = [before[index], after[index]];
    if (JSON.stringify(old) === JSON.stringify(now)) continue;
    const lines = lineChanges(describeMessage(old), describeMessage(now));
    const shown = lines.length > 0 ? lines : lineChanges(asLines(old), asLines(now));
    return [{ kind: "message", title: `message ${index + 1} of the conversation`, lines: shown }];
  }
  return [];
}

function describeMessage(message: Message | undefined): string {
  if (message === undefined) return "(no message)";
  if (typeof message.content === "string") return `${message.role}: ${message.content}`;
  const blocks: readonly { readonly type: string }[] = message.content;
  return [`${message.role}:`, ...blocks.map(describeBlock)].join("\n");
}

function describeBlock(block: { readonly type: string }): string {
  if ("text" in block && typeof block.text === "string") return block.text;
  if (block.type !== "tool_result") return asLines(block);
  const { tool_use_id, content } = block as ToolResultBlock;
  return `result of ${tool_use_id}:\n${typeof content === "string" ? content : asLines(content)}`;
}

function asLines(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? "";
}

const maxLines = 60;

/** Changed lines with a few around them. */
export function lineChanges(before: string, after: string): readonly string[] {
  if (before === after) return [];
  const { hunks, added, removed, shortened } = diffLines(before, after);
  const lines = hunks
    .flatMap((hunk, index) => (index === 0 ? hunk.lines : ["  …", ...hunk.lines]))
    .filter((line) => !line.startsWith("\\"));
  const more = lines.length - maxLines;
  const rest = more > 0 || shortened ? [`  … ${removed} lines removed and ${added} added in all`] : [];
  return [...lines.slice(0, maxLines), ...rest];
}
