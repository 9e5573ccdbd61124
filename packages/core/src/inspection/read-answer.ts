import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { maxChangedFiles, maxCheckOutput } from "../conversation/receipt.ts";
import { contextTokens, costOf, type Usage } from "../conversation/usage.ts";
import { readPastRun } from "../journal/read-past-run.ts";
import { readUsage } from "../journal/transcript-usage.ts";
import { lookUpModel } from "../models/look-up-model.ts";
import { isInside, quotedAndReal } from "../planning/predict-run.ts";
import type { CompactionStep, InspectedQuote, InspectedReceipt, Step, TurnStep } from "./inspection.ts";

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
      receipt: readReceipt(recordField(ending, "receipt")),
      quote: readQuote(record),
    });
  }
  if (record.subtype === "compact_boundary") return readCompaction(record, at);
  if (record.subtype === "answer_lost") {
    const lost = recordField(record, "lostAnswer") ?? {};
    const model = textField(lost, "model") ?? "unknown";
    const usage = readUsage(lost.usage);
    const cost = answerCost(numberField(lost, "costUSD"), { model, usage, wire: {} });
    return defined({ type: "lost" as const, at, model, usage, ...cost });
  }
  return record.subtype === "api_error" ? readRetry(record, at) : undefined;
}

/** What was quoted for a run, beside what its ending says it took. */
function readQuote(record: JsonRecord): InspectedQuote | undefined {
  const run = readPastRun(record);
  const compared = run && quotedAndReal(run);
  if (run?.quoted === undefined || compared === undefined) return undefined;
  const { usage, costUsd, durationMs, quoted } = run;
  return {
    ...quoted,
    real: defined({ costUsd, tokens: contextTokens(usage) + usage.outputTokens, durationMs }),
    isInside: isInside(compared.band, compared.real),
  };
}

function readReceipt(record: JsonRecord | undefined): InspectedReceipt | undefined {
  if (record === undefined) return undefined;
  const list = (key: string, most = 50): readonly unknown[] =>
    Array.isArray(record[key]) ? record[key].slice(0, most) : [];
  const texts = (key: string, most?: number): readonly string[] =>
    list(key, most).flatMap((text) => (typeof text === "string" ? [boundedLine(text, 300)] : []));
  const tree = textField(recordField(record, "tree") ?? {}, "digest");
  return defined({
    status: boundedLine(textField(record, "status") ?? "unknown", 40),
    tree: tree === undefined ? undefined : boundedLine(tree, 80),
    retries: numberField(record, "retries") ?? 0,
    changedFiles: texts("changedFiles", maxChangedFiles),
    checks: list("checks")
      .filter(isRecord)
      .map((check) => {
        const reason = textField(check, "reason");
        return defined({
          run: boundedLine(textField(check, "run") ?? "", 200),
          passed: check["passed"] === true,
          exitCode: numberField(check, "exitCode"),
          reason: reason === undefined ? undefined : boundedLine(reason, 300),
          durationMs: numberField(check, "durationMs"),
          output: (textField(check, "output") ?? "").slice(-maxCheckOutput),
          flaky: check["flaky"] !== undefined,
        });
      }),
    notes: texts("notes"),
  });
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

/** What an answer cost: as in its line, else by the catalog's price, else unknown. */
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

/** Fields of lines that any program may have written: what is not of the expected kind is not there. */

export function timeOf(record: JsonRecord): number | undefined {
  const time = typeof record.timestamp === "string" ? Date.parse(record.timestamp) : Number.NaN;
  return Number.isFinite(time) ? time : undefined;
}

export function textField(record: JsonRecord, name: string): string | undefined {
  const value = Object.hasOwn(record, name) ? record[name] : undefined;
  return typeof value === "string" ? value : undefined;
}

/** A count or a time, which is never negative; nor is it a zero below zero, which JSON does not have. */
export function numberField(record: JsonRecord, name: string): number | undefined {
  const value = Object.hasOwn(record, name) ? record[name] : undefined;
  const isCount = typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
  return isCount ? value + 0 : undefined;
}

export function recordField(record: JsonRecord, name: string): JsonRecord | undefined {
  const value = Object.hasOwn(record, name) ? record[name] : undefined;
  return isRecord(value) ? value : undefined;
}

/** The beginning of a text, never half a character, and well-formed whatever it was. */
export function bounded(text: string, limit: number): string {
  if (text.length <= limit) return text.toWellFormed();
  const last = text.charCodeAt(limit - 1);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  return `${text.slice(0, isHalf ? limit - 1 : limit).toWellFormed()}…`;
}

export function boundedLine(text: string, limit: number): string {
  return bounded(
    text
      .slice(0, limit * 4)
      .replace(/\s+/g, " ")
      .trim(),
    limit,
  );
}
