import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { estimateMessageTokens, estimateRequestTokens } from "../conversation/estimate-request-tokens.ts";
import { type Message, type StopReason, textOf, type UserMessage } from "../conversation/message.ts";
import type { AskedSummary, RunEvent } from "../conversation/run-event.ts";
import { noUsage, type Usage } from "../conversation/usage.ts";
import type { ModelRequest } from "../models/model.ts";
import { ModelError } from "../models/model-error.ts";
import { type CompactionOutcome, compactConversation } from "./compact-conversation.ts";
import { createContextFill } from "./context-fill.ts";
import type { CompactionPort, LoopPorts } from "./loop-ports.ts";
import { readForSummary, withSummaryQuestion } from "./summarize-by-rule.ts";
import type { Tally } from "./tally.ts";

interface CompactorParts {
  readonly ports: Pick<LoopPorts, "model" | "compaction" | "now" | "recordRequest">;
  /** Changed in place. */
  readonly messages: Message[];
  /** As the next turn would be sent; asked for where no turn is about to be taken. */
  readonly request: () => ModelRequest;
  readonly tally: Pick<Tally, "addAside" | "addFallback">;
  readonly signal: AbortSignal;
}

/** Keeps a conversation within its model's window. Without a compaction port it does nothing. */
export interface Compactor {
  /** Called for each message that was added; `isPrompt` for that of this run. */
  added(message: UserMessage, isPrompt?: boolean): void;
  /** Called for each answer, after it was added. */
  answered(message: Message, usage: Usage, stopReason: StopReason): void;
  /**
   * Compacts where the conversation has passed its threshold, and throws `context_full` where that cannot help; undefined where there
   * is room, as before most turns.
   */
  makeRoom(request: ModelRequest): AsyncGenerator<RunEvent, void> | undefined;
  /** After a turn that failed: makes room where the provider found the conversation too long; false for any other error. */
  rescueFrom(error: unknown): AsyncGenerator<RunEvent, boolean>;
  /** Makes room after the provider found the conversation too long; false where that was just done, or cannot be. */
  rescue(): AsyncGenerator<RunEvent, boolean>;
  compactNow(instructions: string | undefined): AsyncGenerator<RunEvent, CompactionOutcome>;
}

/** After this many compactions with hardly an answer between them, the context fills again immediately. */
const maxUnproductive = 3;

export function createCompactor(parts: CompactorParts): Compactor {
  const { ports, messages, signal } = parts;
  const { compaction: port, model } = ports;
  if (port === undefined) return idle;
  if (port.recorded !== undefined) return replayCompactions(parts, port);
  const full = fullTokens(model.facts.contextWindow);
  const fill = createContextFill(
    () => estimateRequestTokens({ ...requestOf(state), messages: [] }),
    messages,
  );
  const state: CompactorState = {
    parts,
    request: undefined,
    port,
    full,
    fill,
    prompt: undefined,
    answersSince: Number.POSITIVE_INFINITY,
    unproductiveCount: 0,
    isRescued: false,
  };
  return {
    added(message, isPrompt = false) {
      fill.added(message);
      if (isPrompt && messages[0] !== message) state.prompt = message;
    },
    answered(message, usage, stopReason) {
      fill.added(message);
      fill.answered(usage);
      state.answersSince += 1;
      if (stopReason !== "model_context_window_exceeded") state.isRescued = false;
    },
    makeRoom(request) {
      state.request = request;
      const threshold = port.thresholdTokens;
      return threshold === undefined || fill.filled() < threshold ? undefined : makeRoom(state, threshold);
    },
    rescueFrom(error) {
      signal.throwIfAborted();
      const isTooLong = error instanceof ModelError && error.code === "context-too-long";
      return isTooLong ? rescue(state) : silently(false);
    },
    rescue: () => rescue(state),
    compactNow: (instructions) =>
      compact(state, { trigger: "manual", limitTokens: port.thresholdTokens ?? full, instructions }),
  };
}

interface CompactorState {
  readonly parts: CompactorParts;
  /** As the turn is sent that is being taken. */
  request: ModelRequest | undefined;
  readonly port: NonNullable<LoopPorts["compaction"]>;
  /** As many tokens as the window takes. */
  readonly full: number;
  readonly fill: ReturnType<typeof createContextFill>;
  prompt: UserMessage | undefined;
  answersSince: number;
  unproductiveCount: number;
  isRescued: boolean;
}

function requestOf({ request, parts }: CompactorState): ModelRequest {
  return request ?? parts.request();
}

interface CompactionRequest {
  readonly trigger: "auto" | "manual";
  readonly limitTokens: number;
  readonly instructions?: string | undefined;
  readonly atAnyPrice?: boolean;
}

async function* compact(
  state: CompactorState,
  { trigger, limitTokens, instructions, atAnyPrice = false }: CompactionRequest,
): AsyncGenerator<RunEvent, CompactionOutcome> {
  const { parts, port, fill, prompt } = state;
  const { ports, messages, tally, signal } = parts;
  const { model, now, recordRequest } = ports;
  const request = requestOf(state);
  const recording = recordRequest === undefined ? {} : { recordRequest };
  const outcome = yield* countingFallbacks(
    compactConversation(
      {
        ...{
          trigger,
          instructions,
          messages,
          prompt,
          request,
          model,
          fill,
          limitTokens,
          atAnyPrice,
          port,
          now,
        },
        ...recording,
      },
      signal,
    ),
    tally,
  );
  if (outcome.type !== "compacted") return outcome;
  const { event, summary } = outcome;
  tally.addAside(event.usage, summary.modelMs, event.costUsd);
  messages.splice(0, messages.length, ...outcome.messages);
  fill.replaced(messages);
  yield event;
  const more = await port.after?.({ trigger, summary: textOf(event.summary) }, { signal });
  signal.throwIfAborted();
  if (more !== undefined) {
    messages.push(more);
    fill.added(more);
    yield { type: "user-added", message: more, origin: "system" };
  }
  return outcome;
}

async function* makeRoom(state: CompactorState, threshold: number): AsyncGenerator<RunEvent, void> {
  const { fill, full } = state;
  state.unproductiveCount = state.answersSince <= 1 ? state.unproductiveCount + 1 : 0;
  if (state.unproductiveCount >= maxUnproductive) throw contextFull(refillsImmediately);
  let outcome = yield* compact(state, { trigger: "auto", limitTokens: threshold });
  // A threshold may lie below what never changes; then the work continues as long as the window lasts.
  if (outcome.type === "impossible" && threshold < full && fill.filled() >= full)
    outcome = yield* compact(state, { trigger: "auto", limitTokens: full });
  if (outcome.type === "compacted") state.answersSince = 0;
  else if (outcome.type !== "blocked" && fill.filled() >= full) throw contextFull(outcome.reason);
}

async function* rescue(state: CompactorState): AsyncGenerator<RunEvent, boolean> {
  const { port, fill } = state;
  if (port.thresholdTokens === undefined || state.isRescued) return false;
  state.isRescued = true;
  const limitTokens = Math.min(port.thresholdTokens, Math.floor(fill.filled() * rescueShare));
  const outcome = yield* compact(state, { trigger: "auto", limitTokens });
  if (outcome.type === "compacted" || outcome.type === "blocked") return outcome.type === "compacted";
  return (yield* compact(state, { trigger: "auto", limitTokens, atAnyPrice: true })).type === "compacted";
}

/** Applies recorded compactions where they were, and asks no model for a summary. */
function replayCompactions(parts: CompactorParts, port: CompactionPort): Compactor {
  const { messages, signal, ports } = parts;
  async function* apply(): AsyncGenerator<RunEvent, boolean> {
    const known = port.recorded?.();
    if (known === undefined) return false;
    const { summary, kept, asked } = known;
    if (asked !== undefined) port.onSummaryRequest?.(summaryRequestAgain(parts, known.kept, asked), known);
    const answers = messages.slice(messages.length - kept).filter(({ role }) => role === "assistant").length;
    messages.splice(0, messages.length - kept, summary);
    yield {
      type: "context-compacted",
      trigger: "auto",
      preTokens: 0,
      postTokens: 0,
      by: "model",
      summary,
      kept,
      keptAnswers: answers,
      model: ports.model.facts.id,
      durationMs: 0,
      usage: noUsage,
    };
    const more = await port.after?.({ trigger: "auto", summary: textOf(summary) }, { signal });
    if (more !== undefined) {
      messages.push(more);
      yield { type: "user-added", message: more, origin: "system" };
    }
    return true;
  }
  return {
    ...idle,
    async *makeRoom() {
      while (yield* apply());
    },
    rescue: apply,
  };
}

/** The request for a summary as it would be sent now, from the conversation of now and what was recorded of the question. */
function summaryRequestAgain(
  { messages, request }: CompactorParts,
  kept: number,
  { question, request: recorded }: AskedSummary,
): ModelRequest {
  const read = readForSummary(messages.slice(0, messages.length - kept), question);
  const { maxTokens, toolChoice } = recorded.options ?? {};
  return {
    ...request(),
    messages: withSummaryQuestion(read, question),
    ...(typeof maxTokens === "number" ? { maxTokens } : {}),
    ...(toolChoice === "none" ? { toolChoice } : {}),
  };
}

/** Used where nothing is compacted: it costs nothing. */
const idle: Compactor = {
  added: () => undefined,
  answered: () => undefined,
  makeRoom: () => undefined,
  rescueFrom: () => silently(false),
  rescue: () => silently(false),
  compactNow: () => silently({ type: "blocked", reason: "Compaction is disabled." }),
};

async function* silently<Value>(value: Value): AsyncGenerator<RunEvent, Value> {
  yield* [];
  return value;
}

/** A provider that refuses a conversation knows its own window better than we do. */
const rescueShare = 0.6;

const refillsImmediately =
  "The context is full: it filled up again right after each compaction, because single results or answers are too large for this model's window.";

function contextFull(reason: string): RetinueError {
  const advice = "Use a model with a larger window, fewer tools, or smaller tasks.";
  return new RetinueError("context_full", `${reason} ${advice}`);
}

/** Compaction as set in settings and variables. */
interface CompactionSettings {
  /** Of the window, in percent; can only lower the usual share. */
  readonly percent?: number | undefined;
  /** Windows that compaction reckons with in place of the model's own; only smaller ones count. */
  readonly windows?: readonly (number | undefined)[];
  /** False: the conversation is compacted only on request. */
  readonly automatic: boolean;
}

const defaultPercent = 95;

/** How full a conversation may be, in tokens, before it is compacted by itself; undefined where it never is. */
export function compactionThreshold(
  contextWindow: number,
  { percent = defaultPercent, windows = [], automatic }: CompactionSettings,
): number | undefined {
  if (!automatic) return undefined;
  const narrowed = windows.filter((window) => window !== undefined);
  const window = Math.min(contextWindow, ...narrowed);
  return Math.floor((window * Math.min(percent, defaultPercent)) / 100);
}

/**
 * Why a prompt cannot be worked on: by itself, behind nothing but the system prompt and the tools, it is more than the window
 * takes. Said before it is added to the conversation, where it would be in every later request.
 */
export function refusePrompt(
  prompt: UserMessage,
  { request, ports }: { readonly request: () => ModelRequest; readonly ports: CompactorParts["ports"] },
): RetinueError | undefined {
  const { id, contextWindow } = ports.model.facts;
  const tokens = estimateMessageTokens(prompt);
  const isRecorded = ports.compaction?.recorded !== undefined;
  if (isRecorded || tokens < contextWindow / 4) return undefined;
  const fixed = estimateRequestTokens({ ...request(), messages: [] });
  // Without automatic compaction the provider decides as long as the estimate may be wrong.
  const most =
    ports.compaction?.thresholdTokens === undefined ? contextWindow * 1.25 : fullTokens(contextWindow);
  if (fixed + tokens < most) return undefined;
  const count = (number: number): string => number.toLocaleString("en-US");
  const { content } = prompt;
  const bytes = Buffer.byteLength(typeof content === "string" ? content : JSON.stringify(content));
  const size = bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
  return new RetinueError(
    "prompt_too_large",
    `The prompt is too large for ${id}: about ${count(tokens)} tokens (${size}), where ${count(Math.max(0, contextWindow - fixed))} of its window of ${count(contextWindow)} are left beside the system prompt and the tools. It was not added to the conversation.`,
    { advice: "Shorten it, put it into a file and name the file, or choose a model with a larger window." },
  );
}

/** Beyond this share of the real window a conversation cannot sensibly continue. */
function fullTokens(contextWindow: number): number {
  return Math.floor((contextWindow * defaultPercent) / 100);
}

/** A summary that another model had to write counts as a fallback of the run. */
async function* countingFallbacks<Outcome>(
  events: AsyncGenerator<RunEvent, Outcome>,
  tally: Pick<Tally, "addFallback">,
): AsyncGenerator<RunEvent, Outcome> {
  while (true) {
    const step = await events.next();
    if (step.done === true) return step.value;
    if (step.value.type === "model-fell-back") {
      const { from, to, code } = step.value;
      tally.addFallback({ from, to, code });
    }
    yield step.value;
  }
}
