import { type Message, textOf } from "../conversation/message.ts";
import type { AskedSummary, RunEvent } from "../conversation/run-event.ts";
import { addUsage, costOf, noUsage, type Usage } from "../conversation/usage.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { ModelError } from "../model/model-error.ts";
import { chooseCut } from "./choose-cut.ts";
import { isLimitError } from "./limit-reached.ts";
import type { LoopPorts } from "./loop-ports.ts";
import { shortenText } from "./shorten-text.ts";
import { summarizeByRule } from "./summarize-by-rule.ts";
import { withSummaryQuestion } from "./summary-question.ts";
import { type LostAnswer, type ModelAnswer, type TurnOrder, takeModelTurn } from "./take-model-turn.ts";

export interface SummaryOrder {
  readonly model: Model;
  /** As the next turn would be sent; its messages are not used. */
  readonly request: ModelRequest;
  /** The part that goes away. */
  readonly old: readonly Message[];
  readonly instructions?: string | undefined;
  /** The most tokens the summary may have in the end. */
  readonly tokens: number;
  readonly fixedTokens: number;
  readonly tokensOf: (message: Message) => number;
  readonly now: () => number;
  readonly recordRequest?: LoopPorts["recordRequest"];
}

export interface Summary {
  readonly text: string;
  readonly by: "model" | "rule";
  readonly usage: Usage;
  /** Absent when the price is not known. */
  readonly cost?: number;
  readonly modelMs: number;
  /** What the model was asked; absent where a rule made the summary, or requests are not recorded. */
  readonly asked?: AskedSummary;
}

/**
 * Asks the model, and once more without tools and with less to read when that gave nothing. Where both fail, the summary
 * is made by rule. Throws only when it is aborted.
 */
export async function* summarize(
  order: SummaryOrder,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, Summary> {
  const { price } = order.model.facts;
  let usage = noUsage;
  let cost = 0;
  let modelMs = 0;
  const count = (spent: Pick<LostAnswer, "usage" | "cost">): void => {
    usage = addUsage(usage, spent.usage);
    cost += spent.cost ?? 0;
  };
  const result = (text: string, by: Summary["by"]): Summary => ({
    text: shortenText(text, order.tokens),
    by,
    usage,
    ...(price === undefined && usage !== noUsage ? {} : { cost }),
    modelMs,
  });
  for (const attempt of [1, 2] as const) {
    const start = order.now();
    const asked = summaryRequest(order, attempt);
    const answer = yield* ask(order, asked.request, { signal, onLost: count });
    modelMs += order.now() - start;
    if (answer === undefined) continue;
    count({ usage: answer.usage, ...(price === undefined ? {} : { cost: costOf(answer.usage, price) }) });
    const text = textOf(answer.message).trim();
    const record = order.recordRequest?.(asked.request);
    if (text !== "" && answer.stopReason !== "refusal")
      return {
        ...result(text, "model"),
        ...(record === undefined ? {} : { asked: { request: record, question: asked.question } }),
      };
  }
  return result(summarizeByRule(order.old, order.tokens), "rule");
}

/** A request for a summary as it was sent, and what of it does not follow from the conversation. */
function summaryRequest(
  order: SummaryOrder,
  attempt: 1 | 2,
): { readonly request: ModelRequest; readonly question: AskedSummary["question"] } {
  const maxTokens = summaryOutput(order.model.facts);
  const { messages, earlier, skipped } = fitting(order, maxTokens, attempt);
  const { instructions } = order;
  const question = {
    words: Math.floor(Math.min(order.tokens, maxTokens) * 0.6),
    ...(instructions === undefined ? {} : { instructions }),
    ...(earlier === undefined ? {} : { earlier }),
    ...(skipped === 0 ? {} : { skipped }),
  };
  const asked: ModelRequest = {
    ...order.request,
    messages: withSummaryQuestion(messages, question),
    maxTokens,
    ...(attempt === 1 ? {} : { toolChoice: "none" }),
  };
  return { request: asked, question };
}

/**
 * At the first attempt the tools stay as they were, although none is run: with another choice of tools the provider
 * would have to read the whole conversation anew instead of taking it from its cache.
 */
async function* ask(
  { model }: SummaryOrder,
  request: ModelRequest,
  turn: Pick<TurnOrder, "signal" | "onLost">,
): AsyncGenerator<RunEvent, ModelAnswer | undefined> {
  try {
    return yield* quietly(takeModelTurn({ model, request, ...turn }));
  } catch (error) {
    turn.signal.throwIfAborted();
    // A summary that cannot be paid is made by rule; the shorter conversation may be affordable.
    if (error instanceof ModelError || isLimitError(error)) return undefined;
    throw error;
  }
}

/** The words of a summary are no words of the agent, so no one is shown them; only that they come. */
async function* quietly(turn: AsyncGenerator<RunEvent, ModelAnswer>): AsyncGenerator<RunEvent, ModelAnswer> {
  while (true) {
    const step = await turn.next();
    if (step.done === true) return step.value;
    if (step.value.type === "model-retried") yield step.value;
    else yield { type: "compaction-progressed" };
  }
}

/** The most tokens a summary is given for thinking and writing. */
export function summaryOutput({ contextWindow, maxOutputTokens }: Model["facts"]): number {
  return Math.min(maxOutputTokens, Math.max(256, Math.floor(contextWindow * 0.08)), 16_000);
}

interface Readable {
  readonly messages: readonly Message[];
  readonly earlier?: string;
  /** How many messages after the first are left out. */
  readonly skipped: number;
}

/** The old part, or where it would not fit its first message and its newest turns, and the rest by rule. */
function fitting(order: SummaryOrder, maxTokens: number, attempt: 1 | 2): Readable {
  const { old, tokensOf, fixedTokens, model } = order;
  const [first] = old;
  const total = old.reduce((sum, message) => sum + tokensOf(message), 0);
  const room = model.facts.contextWindow - fixedTokens - maxTokens - questionTokens;
  // A second attempt reads less, because the first may have failed for its length.
  const most = attempt === 1 ? room : Math.min(room, Math.floor(total / 2));
  if (first === undefined || total <= most) return { messages: old, skipped: 0 };
  const earlierTokens = Math.min(2_000, Math.floor(model.facts.contextWindow / 10));
  const keepTokens = Math.max(0, most - tokensOf(first) - earlierTokens);
  const cut = chooseCut(old, { keepTokens, tokensOf });
  if (cut <= 1) return { messages: old, skipped: 0 };
  const earlier = summarizeByRule([{ role: "user", content: "" }, ...old.slice(1, cut)], earlierTokens);
  return { messages: [first, ...old.slice(cut)], earlier, skipped: cut - 1 };
}

const questionTokens = 600;
