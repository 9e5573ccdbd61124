import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { ToolResultBlock } from "@retinue/core/conversation/message.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";

export type FinishedCall = Extract<RunEvent, { type: "call-finished" }>;

/** Results are shown when a call ends, not when all calls of the answer have; this keeps which were, and under which id. */
export interface CallResults {
  /** Keeps the id under which a result is shown. */
  show(callId: string, uuid: string): void;
  isShown(callId: string): boolean;
  /** The ids of these results, for the lines of the transcript. */
  idsOf(blocks: readonly ToolResultBlock[]): readonly (string | undefined)[];
}

export function createCallResults(): CallResults {
  const shown = new Map<string, string>();
  return {
    show: (callId, uuid) => void shown.set(callId, uuid),
    isShown: (callId) => shown.has(callId),
    idsOf: (blocks) => blocks.map(({ tool_use_id: id }) => shown.get(id)),
  };
}

/** The call was refused by a hook, which reports for itself. */
export function isHookDenial(denied: string): boolean {
  return /^\S{1,200} was refused by a hook: /.test(denied);
}

/** What kind of decision a refusal was, as far as its sentence says. */
export function denialType(reason: string): string {
  if (/\bdontAsk\b|\bmode\b/.test(reason)) return "mode";
  if (/outside/.test(reason)) return "workingDir";
  return /\brule\b/.test(reason) ? "rule" : "other";
}

/** Beside a result: what decided that its call may run or not. */
export function resultMeta({ call, allowed, denied, asked }: FinishedCall): JsonRecord {
  const meta = (decision: JsonRecord, more: JsonRecord = {}): JsonRecord => ({
    tool_result_meta: [{ id: call.id, ...more, permission_decision: decision }],
  });
  if (denied !== undefined) {
    const isHook = isHookDenial(denied);
    const type = isHook ? "hook" : denialType(denied);
    const isDecided = isHook || (asked !== true && (type === "rule" || type === "mode"));
    return meta(
      { decision: "reject", source: sourceOf(isHook, asked), ...(isDecided ? { reason_type: type } : {}) },
      { non_execution_kind: isDecided ? "permission-rule" : "user-rejected" },
    );
  }
  if (allowed === undefined) return {};
  const { by } = allowed;
  const reason = reasons.get(by);
  return meta({
    decision: "accept",
    source: sourceOf(by === "hook", asked === true || by === "person"),
    reason_type: reason,
  });
}

function sourceOf(isHook: boolean, asked: boolean | undefined): string {
  if (isHook) return "hook";
  return asked === true ? "user_temporary" : "config";
}

/** What let a call run, in the words that programs know. */
const reasons: ReadonlyMap<string, string> = new Map([
  ["rule", "rule"],
  ["mode", "mode"],
  ["read-only", "mode"],
  ["hook", "hook"],
]);
