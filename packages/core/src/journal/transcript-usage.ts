import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { addUsage, noUsage, type Usage } from "../conversation/usage.ts";

export interface TranscriptUsage {
  readonly usage: Usage;
  readonly byModel: ReadonlyMap<string, Usage>;
  readonly answers: number;
  readonly toolUses: number;
  /** US dollars; absent when some answer does not say what it cost. */
  readonly costUsd?: number;
}

/**
 * What the answers in a transcript took. The lines of one answer repeat its usage, so each answer counts once, with its
 * last line. Lines copied by a fork were paid for by the session they come from.
 */
export function sumTranscriptUsage(records: readonly JsonRecord[]): TranscriptUsage {
  const answers = new Map<
    string,
    { readonly model: string; readonly usage: Usage; readonly cost: unknown; readonly isAside?: boolean }
  >();
  const calls = new Set<string>();
  for (const record of records) {
    const { type, message, isApiErrorMessage, forkedFrom } = record;
    const aside = forkedFrom === undefined ? asideOf(record) : undefined;
    if (aside !== undefined) answers.set(lineKey(record), aside);
    if (type !== "assistant" || !isRecord(message) || isApiErrorMessage === true || forkedFrom !== undefined)
      continue;
    for (const id of callIdsOf(message.content)) calls.add(id);
    const key = typeof message.id === "string" ? message.id : lineKey(record);
    const model = typeof message.model === "string" ? message.model : "unknown";
    answers.set(key, { model, usage: readUsage(message.usage), cost: record.costUSD });
  }
  const all = [...answers.values()];
  const byModel = new Map<string, Usage>();
  for (const { model, usage } of all) byModel.set(model, addUsage(byModel.get(model) ?? noUsage, usage));
  const costs = all.flatMap(({ cost }) => (typeof cost === "number" ? [cost] : []));
  return {
    usage: all.reduce((sum, { usage }) => addUsage(sum, usage), noUsage),
    byModel,
    answers: all.filter(({ isAside }) => isAside !== true).length,
    toolUses: calls.size,
    ...(costs.length === all.length ? { costUsd: costs.reduce((sum, cost) => sum + cost, 0) } : {}),
  };
}

/** What counts a line once that has no message id. Not `String`: a line may hold an object there that has no text. */
export function lineKey({ uuid }: JsonRecord): string {
  return `line ${JSON.stringify(uuid)}`;
}

/** The summary of a compaction and an answer that broke off are paid like others; a line of their own says what they took. */
function asideOf({ type, compactMetadata, lostAnswer }: JsonRecord) {
  if (type !== "system") return undefined;
  const summarizer = isRecord(compactMetadata) ? compactMetadata.summarizer : lostAnswer;
  if (!isRecord(summarizer) || !isRecord(summarizer.usage)) return undefined;
  const model = typeof summarizer.model === "string" ? summarizer.model : "unknown";
  return { model, usage: readUsage(summarizer.usage), cost: summarizer.costUSD, isAside: true };
}

/** Counts that are no numbers count nothing. */
export function readUsage(value: unknown): Usage {
  const fields = isRecord(value) ? value : {};
  const count = (name: string) => {
    const tokens = fields[name];
    const isCount = typeof tokens === "number" && tokens >= 0 && tokens <= Number.MAX_SAFE_INTEGER;
    return isCount ? tokens : 0;
  };
  return {
    inputTokens: count("input_tokens"),
    outputTokens: count("output_tokens"),
    cacheReadTokens: count("cache_read_input_tokens"),
    cacheWriteTokens: count("cache_creation_input_tokens"),
  };
}

function callIdsOf(content: unknown): readonly string[] {
  if (!Array.isArray(content)) return [];
  return content.flatMap((block: unknown) =>
    isRecord(block) && block.type === "tool_use" && typeof block.id === "string" ? [block.id] : [],
  );
}
