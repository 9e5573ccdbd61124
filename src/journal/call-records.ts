import { type Repeats, repetitions } from "../conversation/call-intent.ts";
import type { ToolResultBlock } from "../conversation/message.ts";
import { isRecord, type JsonRecord } from "../foundation/json-value.ts";
import { readUserBlocks } from "./content-blocks.ts";

/** What was written down about calls beside the conversation, by the calls' ids. */
export interface CallRecords {
  readonly repeats: ReadonlyMap<string, Repeats>;
  /** Results of calls that ended while others of the same answer still ran. */
  readonly outcomes: ReadonlyMap<string, ToolResultBlock>;
}

/** Total: what cannot be read is left out, so that such a call counts as unsafe and without a result. */
export function readCallRecords(records: readonly JsonRecord[]): CallRecords {
  const repeats = new Map<string, Repeats>();
  const outcomes = new Map<string, ToolResultBlock>();
  for (const record of records) {
    if (record.type === "retinue-intents" && Array.isArray(record.calls))
      for (const [id, kind] of record.calls.flatMap(readIntent)) repeats.set(id, kind);
    if (record.type !== "retinue-outcome") continue;
    const outcome = readOutcome(record);
    if (outcome !== undefined) outcomes.set(outcome.tool_use_id, outcome);
  }
  return { repeats, outcomes };
}

function readIntent(call: unknown): readonly (readonly [string, Repeats])[] {
  if (!isRecord(call) || typeof call.id !== "string") return [];
  const kind = repetitions.find((known) => known === call.repeats);
  return kind === undefined ? [] : [[call.id, kind]];
}

/** Read as the same result in a conversation would be. */
function readOutcome({ id, isError, content }: JsonRecord): ToolResultBlock | undefined {
  const block = {
    type: "tool_result",
    tool_use_id: id,
    content,
    ...(isError === true ? { is_error: true } : {}),
  };
  const [read] = readUserBlocks([block]);
  return read?.type === "tool_result" ? read : undefined;
}
