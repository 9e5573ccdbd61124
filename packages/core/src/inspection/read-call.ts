import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { ToolResultBlock, ToolUseBlock } from "../conversation/message.ts";
import type { CallStep } from "./inspection.ts";
import { boundedLine, numberField, recordField, textField } from "./read-answer.ts";

const maxAbout = 200;
const maxReason = 500;

export function readCall({ id, name, input }: ToolUseBlock, at: number | undefined): OpenCall {
  return defined({
    type: "call" as const,
    at,
    callId: boundedLine(id, maxAbout),
    tool: boundedLine(name, 100),
    about: aboutOf(input),
  });
}

/** A call whose result is not there yet. */
export type OpenCall = Omit<CallStep, "outcome">;

/** The call with what is in the line of its result; `isAlone` when that line holds no other result. */
export function settleCall(
  call: OpenCall,
  block: ToolResultBlock,
  {
    record,
    at,
    isAlone,
  }: { readonly record: JsonRecord; readonly at: number | undefined; readonly isAlone: boolean },
): CallStep {
  const facts = (isAlone ? recordField(record, "toolCall") : undefined) ?? {};
  const data = (isAlone ? recordField(record, "toolUseResult") : undefined) ?? {};
  const between = at === undefined || call.at === undefined ? undefined : Math.max(0, at - call.at);
  const durationMs =
    numberField(facts, "durationMs") ??
    numberField(data, "durationMs") ??
    numberField(data, "totalDurationMs") ??
    between;
  const text = resultText(block);
  const denied = denialOf(record, facts, { isAlone, text, isError: block.is_error === true });
  const outcome = denied === undefined ? outcomeOf(block, text, record) : "refused";
  const reason = outcome === "ok" ? undefined : boundedLine(denied ?? text, maxReason);
  const isUntimed = facts.durationMs === undefined && lateAnswer.test(text);
  const refusedMs = outcome === "refused" && facts.durationMs === undefined ? 0 : durationMs;
  return defined({
    ...call,
    at: numberField(facts, "startedAt") ?? call.at,
    durationMs: isUntimed ? undefined : refusedMs,
    outcome,
    reason,
    decidedMs: numberField(facts, "decidedMs"),
    asked: facts.asked === true ? true : undefined,
    allowed: allowedOf(facts),
    agentId: textField(data, "agentId"),
  });
}

/** Who or what let the call run, in one line; of lines of other programs nothing is known. */
function allowedOf(facts: JsonRecord): string | undefined {
  const allowed = recordField(facts, "allowed");
  const reason = allowed === undefined ? undefined : textField(allowed, "reason");
  return reason === undefined ? undefined : boundedLine(reason, maxReason);
}

/** What a call is answered with by a later process than the one that made it; how long it took is unknown. */
const lateAnswer = /^(?:Interrupted: the session ended |The session was interrupted after )/;

/** Whether the line was written when a session was taken up again, for calls that a crash had cut off. */
export function answersForDeadProcess(record: JsonRecord): boolean {
  const content = recordField(record, "message")?.content;
  if (!Array.isArray(content) || record.toolCall !== undefined) return false;
  return content.some((block: unknown) => {
    const isResult = isRecord(block) && block.type === "tool_result" && typeof block.content === "string";
    return isResult && lateAnswer.test(String(block.content));
  });
}

/** Other programs name the kind of a denial; older lines of our own only say it in words. */
function denialOf(
  record: JsonRecord,
  facts: JsonRecord,
  { isAlone, text, isError }: { isAlone: boolean; text: string; isError: boolean },
): string | undefined {
  const reported = textField(facts, "denied");
  if (reported !== undefined || !isError || !isAlone) return reported;
  const kind = textField(record, "toolDenialKind");
  if (kind !== undefined) return kind === "cancelled" ? undefined : text || kind;
  return facts.durationMs === undefined && /^\S{1,200} was (?:not allowed|refused by a hook): /.test(text)
    ? text
    : undefined;
}

function outcomeOf(block: ToolResultBlock, text: string, record: JsonRecord): CallStep["outcome"] {
  if (block.is_error !== true) return "ok";
  const wasCut =
    record.toolDenialKind === "cancelled" || /^(?:Interrupted: |This call was interrupted )/.test(text);
  return wasCut ? "interrupted" : "failed";
}

function resultText({ content }: ToolResultBlock): string {
  if (typeof content === "string") return content.slice(0, maxReason * 4);
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text.slice(0, maxReason)] : []));
  return texts.slice(0, 8).join("\n");
}

const reporting = ["file_path", "path", "notebook_path", "command", "url", "query", "description", "skill"];

function aboutOf(input: unknown): string {
  if (!isRecord(input)) return "";
  // Where something is looked for: what, then where.
  const pattern = textField(input, "pattern");
  if (pattern !== undefined) {
    const place = textField(input, "path");
    return boundedLine(place === undefined ? pattern : `${pattern} in ${place}`, maxAbout);
  }
  const key = reporting.find((name) => textField(input, name) !== undefined);
  const first = key ?? Object.keys(input).find((name) => typeof input[name] === "string");
  return first === undefined ? "" : boundedLine(textField(input, first) ?? "", maxAbout);
}
