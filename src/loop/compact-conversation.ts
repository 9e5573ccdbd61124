import { estimateTextTokens } from "../conversation/estimate-request-tokens.ts";
import type { Message, UserMessage } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { chooseCut, holdsMoreThanTask, ownTexts, readOpening, unansweredTexts } from "./choose-cut.ts";
import type { ContextFill } from "./context-fill.ts";
import type { CompactionPort, LoopPorts } from "./loop-ports.ts";
import { shortenText } from "./shorten-text.ts";
import { type Summary, summarize, summaryOutput } from "./summarize.ts";
import { summaryMessage } from "./summary-question.ts";

export interface CompactionOrder {
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
  readonly port: CompactionPort;
  readonly now: () => number;
  readonly recordRequest?: LoopPorts["recordRequest"];
}

export type Compacted = Extract<RunEvent, { type: "context-compacted" }>;

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
    ...(summary.cost === undefined ? {} : { cost: summary.cost }),
    ...(summary.asked === undefined ? {} : { asked: summary.asked }),
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
  const { task } = readOpening(messages);
  const restated = bounded(order.port.restate?.() ?? [], Math.floor(limitTokens * restateShare));
  for (const cut of [usual, messages.length]) {
    if (!holdsMoreThanTask(messages, cut)) continue;
    const prompts = fallingPrompts(order, cut);
    const bare = summaryMessage({ task, text: "", by: "model", kept: 0, prompts, restated });
    const rest = fill.fixed() + tokensIn([bare, ...messages.slice(cut)], fill);
    // The result must have room to continue, and must not be larger than what it replaces.
    const before = fill.fixed() + tokensIn(messages, fill);
    const room = Math.min(limitTokens, before) - rest - 1;
    const most = Math.min(Math.floor((room * roomShare) / fill.scale()), summaryOutput(model.facts));
    if (most >= leastSummary) return { type: "planned", cut, room: most, task, prompts, restated };
  }
  if (!holdsMoreThanTask(messages, messages.length) || fill.filled() < limitTokens)
    return { type: "nothing", reason: "The conversation is too short for a summary to make it shorter." };
  return { type: "impossible", reason: impossible(order) };
}

const keepShare = 0.2;
const restateShare = 0.25;
const maxKept = 40_000;
/** A summary with fewer tokens would say nothing. */
const leastSummary = 64;
/** Of the room that is left, so that the next turns do not fill it immediately. */
const roomShare = 0.5;

function impossible({ fill, limitTokens, messages }: CompactionOrder): string {
  const [first] = messages;
  const task = first === undefined ? 0 : fill.tokensOf(first);
  return `The context is full and a summary would not make room: of ${limitTokens} tokens the system prompt and the tools take about ${fill.fixed()}, the first message about ${task}.`;
}

/** The prompt of this run, and whatever no one has answered yet, where no kept message holds it. */
function fallingPrompts({ messages, prompt }: CompactionOrder, cut: number): readonly string[] {
  // One that an earlier compaction took away already is not found, and is stated again too.
  const own = prompt !== undefined && messages.indexOf(prompt) < cut ? ownTexts(prompt) : [];
  const open = cut < messages.length ? [] : unansweredTexts(messages);
  return [...new Set([...own, ...open])].filter((text) => !text.startsWith("<system-reminder>"));
}

/** The first texts are whole as far as there is room, since they are the shorter ones. */
function bounded(texts: readonly string[], tokens: number): readonly string[] {
  let left = tokens;
  return texts.flatMap((text) => {
    const shortened = shortenText(text, left);
    left -= estimateTextTokens(shortened);
    return shortened.trim() === "" ? [] : [shortened];
  });
}

function tokensIn(messages: readonly Message[], fill: ContextFill): number {
  return messages.reduce((sum, message) => sum + fill.tokensOf(message), 0);
}

function joinTexts(...texts: readonly (string | undefined)[]): string | undefined {
  const given = texts.filter((text) => text !== undefined && text.trim() !== "");
  return given.length === 0 ? undefined : given.join("\n");
}
