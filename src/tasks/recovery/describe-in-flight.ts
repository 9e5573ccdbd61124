import type { Repeats } from "../../conversation/call-intent.ts";
import type { InFlightCall } from "../../conversation/interrupted-agent.ts";
import type { ToolUseBlock } from "../../conversation/message.ts";
import { isRecord } from "../../foundation/json-record.ts";

export function describeInFlight({
  call,
  repeats,
}: {
  readonly call: ToolUseBlock;
  readonly repeats: Repeats;
}): InFlightCall {
  return { name: call.name, input: shortInput(call.input), repeats };
}

/** One call as a few words: `Bash "npm test" (may have run)`. */
export function inFlightText({ name, input, repeats }: InFlightCall): string {
  const what = input === "" ? name : `${name} ${JSON.stringify(input)}`;
  return `${what} (${standing[repeats]})`;
}

/** The same while it runs: `Bash npm test`. */
export function callText({ name, input }: Pick<InFlightCall, "name" | "input">): string {
  return `${name} ${input}`.trim();
}

const standing: Readonly<Record<Repeats, string>> = {
  pure: "only reads",
  idempotent: "can be repeated",
  unsafe: "may have run",
};

const reporting = [
  "command",
  "file_path",
  "path",
  "pattern",
  "url",
  "query",
  "skill",
  "description",
  "prompt",
];
const longest = 120;

function shortInput(input: unknown): string {
  if (!isRecord(input)) return "";
  const key = reporting.find((name) => typeof input[name] === "string");
  const text = key === undefined ? JSON.stringify(input) : String(input[key]);
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}
