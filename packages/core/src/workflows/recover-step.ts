import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { Message } from "../conversation/message.ts";
import type { RecoveredStep } from "./run-workflow.ts";

interface EarlierAgent {
  readonly messages: readonly Message[];
  readonly records: readonly JsonRecord[];
}

/** The tool through which an agent hands in a value for a schema. */
const handInTool = "StructuredOutput";

/** What a transcript says about a step that has no end in the journal. Total: any lines will do. */
export function recoverStep({ messages, records }: EarlierAgent, hasSchema: boolean): RecoveredStep {
  if (messages.length === 0) return { type: "lost" };
  const ending = records.findLast(({ runEnding }) => isRecord(runEnding))?.runEnding;
  const isAfter =
    records.findLastIndex(isPartOfRun) <= records.findLastIndex(({ runEnding }) => isRecord(runEnding));
  if (!isRecord(ending) || !isAfter) return { type: "cut-off" };
  if (ending["status"] === "stopped") return { type: "cut-off" };
  if (ending["status"] !== "completed" || hasFailedCheck(ending)) return { type: "lost" };
  if (!hasSchema) return { type: "done", value: lastTextOf(messages) };
  const value = handedIn(messages);
  return value === undefined ? { type: "lost" } : { type: "done", value };
}

/** By its receipt; a result of the wrong form is no failed command. */
function hasFailedCheck({ receipt }: JsonRecord): boolean {
  const checks = isRecord(receipt) ? receipt["checks"] : undefined;
  return (
    Array.isArray(checks) &&
    checks.some((check) => isRecord(check) && check["kind"] === "command" && check["passed"] !== true)
  );
}

function isPartOfRun({ type }: JsonRecord): boolean {
  return type === "user" || type === "assistant" || type === "retinue-plan";
}

/** The last block of text in the last answer, as a script may read it. */
function lastTextOf(messages: readonly Message[]): string {
  const last = messages.findLast((message) => message.role === "assistant");
  const text = last?.content.findLast((block) => block.type === "text");
  return text?.type === "text" ? stepText(text.text) : "";
}

/** A text of an agent as a script gets it: untouched, but for what poses as the runtime. */
export function stepText(text: string): string {
  return escapeControlTags(text);
}

/** The value that was accepted last. */
function handedIn(messages: readonly Message[]): unknown {
  const failed = new Set<string>();
  const answered = new Set<string>();
  for (const { role, content } of messages) {
    if (role !== "user" || typeof content === "string") continue;
    for (const block of content) {
      if (block.type !== "tool_result") continue;
      answered.add(block.tool_use_id);
      if (block.is_error === true) failed.add(block.tool_use_id);
    }
  }
  for (const message of messages.toReversed()) {
    if (message.role !== "assistant") continue;
    for (const block of message.content.toReversed())
      if (
        block.type === "tool_use" &&
        block.name === handInTool &&
        answered.has(block.id) &&
        !failed.has(block.id)
      )
        return block.input;
  }
  return undefined;
}
