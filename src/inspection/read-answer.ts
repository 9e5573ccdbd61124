import { costOf, type Usage } from "../conversation/usage.ts";
import type { JsonRecord } from "../foundation/json-record.ts";
import { readUsage } from "../journal/transcript-usage.ts";
import { lookUpModel } from "../model/look-up-model.ts";
import type { CompactionStep, LostStep, Step, TurnStep } from "./inspection.ts";
import { boundedLine, defined, numberField, recordField, textField, timeOf } from "./read-line.ts";

/** What one line of an answer says about the whole of it; the last line of an answer is right. */
export function readAnswer(
  record: JsonRecord,
  message: JsonRecord,
): Pick<TurnStep, "model" | "usage" | "costUsd" | "costFrom"> {
  const model = textField(message, "model") ?? "unknown";
  const usage = readUsage(message.usage);
  const wire = recordField(message, "usage") ?? {};
  // A line with a time and without a cost is our own, and its model had no price when it was written.
  const hadNoPrice = numberField(record, "durationMs") !== undefined && record.costUSD === undefined;
  const cost = hadNoPrice
    ? ({ costFrom: "unknown" } as const)
    : answerCost(numberField(record, "costUSD"), { model, usage, wire });
  return { model, usage, ...cost };
}

/** The step of a line that is beside the conversation; undefined when it reveals nothing. */
export function readSystemLine(record: JsonRecord): Step | undefined {
  const at = timeOf(record);
  const ending = recordField(record, "runEnding");
  if (ending !== undefined) {
    const error = textField(ending, "error");
    return defined({
      type: "ending" as const,
      at,
      status: boundedLine(textField(ending, "status") ?? "unknown", 40),
      reason: boundedLine(textField(ending, "reason") ?? "unknown", 100),
      error: error === undefined ? undefined : boundedLine(error, 500),
    });
  }
  if (record.subtype === "compact_boundary") return readCompaction(record, at);
  if (record.subtype === "answer_lost") return readLost(record, at);
  return record.subtype === "api_error" ? readRetry(record, at) : undefined;
}

function readRetry(record: JsonRecord, at: number | undefined): Step {
  const error = recordField(record, "error") ?? {};
  const status = numberField(error, "status");
  const text = textField(error, "message") ?? textField(record, "error") ?? "";
  return defined({
    type: "retry" as const,
    at,
    code: boundedLine(
      textField(error, "code") ?? (status === undefined ? "request failed" : String(status)),
      60,
    ),
    text: boundedLine(text, 300),
    waitMs: numberField(record, "retryInMs"),
  });
}

function readLost(record: JsonRecord, at: number | undefined): LostStep {
  const lost = recordField(record, "lostAnswer") ?? {};
  const model = textField(lost, "model") ?? "unknown";
  const usage = readUsage(lost.usage);
  const cost = answerCost(numberField(lost, "costUSD"), { model, usage, wire: {} });
  return defined({ type: "lost" as const, at, model, usage, ...cost });
}

function readCompaction(record: JsonRecord, end: number | undefined): CompactionStep {
  const facts = recordField(record, "compactMetadata") ?? {};
  const summarizer = recordField(facts, "summarizer") ?? {};
  const usage: Usage = readUsage(summarizer.usage);
  const durationMs = numberField(facts, "durationMs");
  const model = textField(summarizer, "model");
  const recorded = numberField(summarizer, "costUSD");
  return defined({
    type: "compaction" as const,
    at: end === undefined ? undefined : end - (durationMs ?? 0),
    trigger: boundedLine(textField(facts, "trigger") ?? "unknown", 40),
    by: textField(summarizer, "by"),
    model,
    preTokens: numberField(facts, "preTokens"),
    postTokens: numberField(facts, "postTokens"),
    durationMs,
    usage,
    ...answerCost(recorded, { model: model ?? "unknown", usage, wire: {} }),
  });
}

type AnswerCost =
  | { readonly costFrom: "line" | "catalog"; readonly costUsd: number }
  | { readonly costFrom: "unknown" };

/** What an answer cost: as its line says, else by the catalog's price, else no one knows. */
function answerCost(
  recorded: number | undefined,
  { model, usage, wire }: { readonly model: string; readonly usage: Usage; readonly wire: JsonRecord },
): AnswerCost {
  if (recorded !== undefined) return { costFrom: "line", costUsd: recorded };
  if (Object.values(usage).every((tokens) => tokens === 0)) return { costFrom: "line", costUsd: 0 };
  const { price } = lookUpModel(model).facts;
  if (price === undefined || isPricedOtherwise(wire)) return { costFrom: "unknown" };
  return { costFrom: "catalog", costUsd: costOf(usage, price) };
}

/** The catalog has the usual price only: not that of other speeds and tiers, nor of caches kept for an hour. */
function isPricedOtherwise(wire: JsonRecord): boolean {
  const tier = textField(wire, "service_tier");
  const speed = textField(wire, "speed");
  const hour = numberField(recordField(wire, "cache_creation") ?? {}, "ephemeral_1h_input_tokens") ?? 0;
  return (
    (tier !== undefined && tier !== "standard") || (speed !== undefined && speed !== "standard") || hour > 0
  );
}
