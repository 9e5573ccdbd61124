import { estimateBlockTokens, estimateTextTokens } from "../conversation/estimate-request-tokens.ts";
import { type Message, textOf, type UserBlock, type UserMessage } from "../conversation/message.ts";
import type { AskedSummary, RunEvent } from "../conversation/run-event.ts";
import { addUsage, costOf, noUsage, type Usage } from "../conversation/usage.ts";
import type { Model, ModelRequest } from "../models/model.ts";
import { ModelError } from "../models/model-error.ts";
import type { ContextFill } from "./context-fill.ts";
import { type CompactionPort, isLimitError, type LoopPorts } from "./loop-ports.ts";
import {
  chooseCut,
  holdsMoreThanTask,
  ownTexts,
  readOpening,
  shortenText,
  summarizeByRule,
  summaryMessage,
  unansweredTexts,
  withSummaryQuestion,
} from "./summarize-by-rule.ts";
import { type LostAnswer, type ModelAnswer, type TurnOrder, takeModelTurn } from "./take-model-turn.ts";

interface CompactionOrder {
  readonly trigger: "auto" | "manual";
  readonly instructions?: string | undefined;
  readonly messages: readonly Message[];
  /** The prompt of this run, unless it began the conversation; restated where no kept message holds it. */
  readonly prompt?: UserMessage | undefined;
  readonly request: ModelRequest;
  readonly model: Model;
  readonly fill: ContextFill;
  /** What the conversation must be below afterwards. */
  readonly limitTokens: number;
  /** As short as can be, where the limit cannot be kept: the provider has refused what there is. */
  readonly atAnyPrice?: boolean;
  readonly port: CompactionPort;
  readonly now: () => number;
  readonly recordRequest?: LoopPorts["recordRequest"];
}

type Compacted = Extract<RunEvent, { type: "context-compacted" }>;

export type CompactionOutcome =
  | {
      readonly type: "compacted";
      readonly messages: readonly Message[];
      readonly event: Compacted;
      readonly summary: Summary;
    }
  | { readonly type: "blocked" | "impossible" | "nothing"; readonly reason: string };

/** Replaces the older part of a conversation by a summary; decides first whether that can make enough room. */
export async function* compactConversation(
  order: CompactionOrder,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, CompactionOutcome> {
  const { trigger, port, fill } = order;
  const plan = planCompaction(order);
  if (plan.type !== "planned") return plan;
  const permit = await port.before?.({ trigger, instructions: order.instructions }, { signal });
  signal.throwIfAborted();
  if (permit?.type === "blocked") return permit;
  const preTokens = fill.filled();
  const start = order.now();
  yield { type: "compaction-started", trigger, preTokens };
  const { cut, room } = plan;
  const summary = yield* summarize(
    {
      ...order,
      old: order.messages.slice(0, cut),
      instructions: joinTexts(order.instructions, permit?.instructions),
      tokens: room,
      fixedTokens: fill.fixed(),
      tokensOf: fill.tokensOf,
    },
    signal,
  );
  const kept = order.messages.slice(cut);
  const message = summaryMessage({ ...plan, ...summary, kept: kept.length });
  const messages = [message, ...kept];
  const event: Compacted = {
    type: "context-compacted",
    trigger,
    preTokens,
    postTokens: fill.fixed() + tokensIn(messages, fill),
    by: summary.by,
    summary: message,
    kept: kept.length,
    keptAnswers: kept.filter(({ role }) => role === "assistant").length,
    model: order.model.facts.id,
    durationMs: order.now() - start,
    usage: summary.usage,
    costUsd: summary.costUsd,
    asked: summary.asked,
  };
  return { type: "compacted", messages, event, summary };
}

interface PlannedCompaction {
  readonly type: "planned";
  readonly cut: number;
  /** Tokens for the summary's own words. */
  readonly room: number;
  readonly task: ReturnType<typeof readOpening>["task"];
  readonly prompts: readonly string[];
  readonly restated: readonly string[];
}

/** As many of the newest turns as fit stay; where not even the last one does, none. */
function planCompaction(order: CompactionOrder): PlannedCompaction | CompactionOutcome {
  const { messages, fill, limitTokens, model } = order;
  const keepTokens = Math.min(maxKept, Math.floor(keepShare * Math.min(limitTokens, fill.filled())));
  const usual = chooseCut(messages, { keepTokens, tokensOf: fill.tokensOf });
  if (usual === 0) return { type: "nothing", reason: "There is no answer in the conversation yet." };
  const whole = readOpening(messages).task;
  // The first texts are whole as far as there is room, since they are the shorter ones.
  const texts = order.port.restate?.() ?? [];
  const tokens = Math.floor(limitTokens * restateShare);
  let left = tokens;
  const restated = texts.flatMap((text) => {
    const shortened = shortenText(text, left);
    left -= estimateTextTokens(shortened);
    return shortened.trim() === "" ? [] : [shortened];
  });
  // The first prompt stays word for word, unless it alone is too much for the window, as after a change of the model.
  const most = Math.floor((limitTokens * promptShare) / fill.scale());
  for (const [cut, isShort] of [usual, messages.length].flatMap((at) => [
    [at, false] as const,
    [at, true] as const,
  ])) {
    if (!holdsMoreThanTask(messages, cut)) continue;
    const task = isShort ? shortenBlocks(whole, most) : whole;
    const prompts = fallingPrompts(order, cut);
    const bare = summaryMessage({ task, text: "", by: "model", kept: 0, prompts, restated });
    const rest = fill.fixed() + tokensIn([bare, ...messages.slice(cut)], fill);
    // The result must have room to continue, and must not be larger than what it replaces.
    const before = fill.fixed() + tokensIn(messages, fill);
    const room = Math.min(limitTokens, before) - rest - 1;
    const words = Math.min(Math.floor((room * roomShare) / fill.scale()), summaryOutput(model.facts));
    if (words >= leastSummary) return { type: "planned", cut, room: words, task, prompts, restated };
  }
  const isWanted = order.trigger === "manual" && order.port.compactsShort === true;
  if (isWanted && holdsMoreThanTask(messages, messages.length)) {
    const prompts = fallingPrompts(order, messages.length);
    return { type: "planned", cut: messages.length, room: shortSummary, task: whole, prompts, restated };
  }
  const open = fallingPrompts(order, messages.length);
  const isSmall = open.reduce((sum, text) => sum + estimateTextTokens(text), 0) <= most;
  if (order.atAnyPrice === true && isSmall && holdsMoreThanTask(messages, messages.length)) {
    const task = shortenBlocks(whole, most);
    return { type: "planned", cut: messages.length, room: shortSummary, task, prompts: open, restated };
  }
  if (!holdsMoreThanTask(messages, messages.length) || fill.filled() < limitTokens)
    return { type: "nothing", reason: "The conversation is too short for a summary to make it shorter." };
  return { type: "impossible", reason: impossible(order) };
}

const keepShare = 0.2;
const restateShare = 0.25;
const promptShare = 0.25;
const maxKept = 40_000;
/** A summary with fewer tokens would say nothing. */
const leastSummary = 64;
/** For the summary of a short conversation, which need not become shorter. */
const shortSummary = 1024;
/** Of the room that is left, so that the next turns do not fill it immediately. */
const roomShare = 0.5;

function impossible({ fill, limitTokens, messages }: CompactionOrder): string {
  const [first] = messages;
  const task = first === undefined ? 0 : fill.tokensOf(first);
  return `The context is full and a summary would not make room: of ${limitTokens} tokens the system prompt and the tools take about ${fill.fixed()}, the first message about ${task}.`;
}

/** The prompt of this run, and whatever is not answered yet, where no kept message holds it. */
function fallingPrompts({ messages, prompt }: CompactionOrder, cut: number): readonly string[] {
  // One that an earlier compaction took away already is not found, and is stated again too.
  const own = prompt !== undefined && messages.indexOf(prompt) < cut ? ownTexts(prompt) : [];
  const open = cut < messages.length ? [] : unansweredTexts(messages);
  return [...new Set([...own, ...open])].filter((text) => !text.startsWith("<system-reminder>"));
}

/** The same blocks with at most so many tokens; where an image or a document was, a note is left. */
function shortenBlocks(blocks: readonly UserBlock[], tokens: number): readonly UserBlock[] {
  let left = tokens;
  return blocks.flatMap((block): readonly UserBlock[] => {
    const own = estimateBlockTokens(block);
    const shortened: UserBlock =
      own <= left
        ? block
        : {
            type: "text",
            text: block.type === "text" ? shortenText(block.text, left) : `(${block.type} left out)`,
          };
    left = Math.max(0, left - estimateBlockTokens(shortened));
    return shortened.type === "text" && shortened.text.trim() === "" ? [] : [shortened];
  });
}

function tokensIn(messages: readonly Message[], fill: ContextFill): number {
  return messages.reduce((sum, message) => sum + fill.tokensOf(message), 0);
}

function joinTexts(...texts: readonly (string | undefined)[]): string | undefined {
  const given = texts.filter((text) => text !== undefined && text.trim() !== "");
  return given.length === 0 ? undefined : given.join("\n");
}

interface SummaryOrder {
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

interface Summary {
  readonly text: string;
  readonly by: "model" | "rule";
  readonly usage: Usage;
  /** Absent when the price is not known. */
  readonly costUsd?: number;
  readonly modelMs: number;
  /** What the model was asked; absent where a rule made the summary, or requests are not recorded. */
  readonly asked?: AskedSummary;
}

/**
 * Asks the model, and once more without tools and with less to read when that gave nothing. Where both fail, the summary
 * is made by rule. Throws only when it is aborted.
 */
async function* summarize(order: SummaryOrder, signal: AbortSignal): AsyncGenerator<RunEvent, Summary> {
  // Another model may answer in its place, at its own price.
  const priced = () => order.model.facts.price;
  let usage = noUsage;
  let cost = 0;
  let modelMs = 0;
  const count = (spent: Pick<LostAnswer, "usage" | "costUsd">): void => {
    usage = addUsage(usage, spent.usage);
    cost += spent.costUsd ?? 0;
  };
  const result = (text: string, by: Summary["by"]): Summary => ({
    text: shortenText(text, order.tokens),
    by,
    usage,
    ...(priced() === undefined && usage !== noUsage ? {} : { costUsd: cost }),
    modelMs,
  });
  for (const attempt of [1, 2] as const) {
    const start = order.now();
    const asked = summaryRequest(order, attempt);
    const answer = yield* ask(order, asked.request, { signal, onLost: count });
    modelMs += order.now() - start;
    if (answer === undefined) continue;
    const price = priced();
    count({ usage: answer.usage, costUsd: price === undefined ? undefined : costOf(answer.usage, price) });
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
    instructions,
    earlier,
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

/** The words of a summary are no words of the agent, so they are not shown; only that they come. */
async function* quietly(turn: AsyncGenerator<RunEvent, ModelAnswer>): AsyncGenerator<RunEvent, ModelAnswer> {
  while (true) {
    const step = await turn.next();
    if (step.done === true) return step.value;
    if (shownWhileSummarizing.has(step.value.type)) yield step.value;
    else yield { type: "compaction-progressed" };
  }
}

const shownWhileSummarizing: ReadonlySet<RunEvent["type"]> = new Set([
  "model-retried",
  "model-fell-back",
  "quota-waiting",
  "quota-renewed",
]);

/** The most tokens a summary is given for thinking and writing. */
function summaryOutput({ contextWindow, maxOutputTokens }: Model["facts"]): number {
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
