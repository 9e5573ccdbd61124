import type { CallIntent } from "../conversation/interrupted-agent.ts";
import {
  type AssistantMessage,
  type Message,
  resultText,
  type TextBlock,
  type ToolResultBlock,
  textOf,
  toolCallsOf,
  type UserBlock,
  type UserMessage,
} from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { costOf } from "../conversation/usage.ts";
import type { ModelRequest } from "../models/model.ts";
import { ModelError } from "../models/model-error.ts";
import { repeatsOf, specificationsOf } from "../tools/json-schema-of.ts";
import { findTool, offeredTools } from "./authorize-call.ts";
import type { CompactionOutcome } from "./compact-conversation.ts";
import { type Compactor, createCompactor, refusePrompt } from "./compactor.ts";
import { createRounds } from "./create-rounds.ts";
import { endingOfCause, type LimitReached, type LoopInput, type LoopPorts } from "./loop-ports.ts";
import { type LostAnswer, type ModelAnswer, takeModelTurn } from "./take-model-turn.ts";
import { createTally, type Tally } from "./tally.ts";

/**
 * Runs one agent to its end: asks the model, runs what it calls, and continues until it stops. Yields everything that
 * happens and stores nothing; the last event is always `run-ended`, and nothing is thrown.
 */
export async function* runAgentLoop(
  input: LoopInput,
  ports: LoopPorts,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  const tally = createTally(ports.now);
  const messages: Message[] = [...input.history];
  // Looked at now: the caller that gave the history may continue adding to it.
  const earlier = new WeakSet(input.history);
  const request = (): ModelRequest => requestOf({ input, ports, messages });
  const compactor = createCompactor({ ports, messages, request, tally, signal });
  let ending: Ending;
  try {
    ending = yield* converse({ input, ports, signal, tally, messages, compactor });
  } catch (error) {
    ending = endingOfCause(signal.aborted ? signal.reason : error, signal.aborted);
  }
  const own = messages.filter((message) => !earlier.has(message));
  const text = textOfEnd(ending, tally, own);
  const receipt = await ports.verify?.receipt({ status: ending.status, text }, { signal });
  yield {
    type: "run-ended",
    ending: { ...ending, text, ...tally.result(), receipt },
  };
}

type Ending = Pick<RunEnding, "status" | "reason" | "error" | "advice" | "provider"> & {
  readonly text?: string;
};

interface Conversation {
  readonly input: LoopInput;
  readonly ports: LoopPorts;
  readonly signal: AbortSignal;
  readonly tally: Tally;
  readonly messages: Message[];
  readonly compactor: Compactor;
}

async function* converse(conversation: Conversation): AsyncGenerator<RunEvent, Ending> {
  const { input, ports, signal, tally } = conversation;
  const runRound = createRounds({ ports, tally, signal });
  let asked = false;
  if (input.prompt !== undefined) {
    const prompt = withReminder(input.prompt, input);
    const refusal = refusePrompt(prompt, { ports, request: () => requestOf(conversation) });
    if (refusal !== undefined) throw refusal;
    yield add(conversation, prompt, "prompt");
  }
  while (true) {
    for (const message of conversation.ports.takeMessages()) yield add(conversation, message, "message");
    if (tally.turns() >= input.maxTurns) {
      // At the limit the agent either stops, or gets one last turn without tools to hand in what it has.
      const turns = input.maxTurns === 1 ? "1 turn" : `${input.maxTurns} turns`;
      const error = `The limit of ${turns} was reached.`;
      if (input.lastTurn !== true) return { status: "partial", reason: "max_turns", error };
      return yield* requestFinalAnswer(conversation, { reason: "max_turns", error });
    }
    if (ports.quota !== undefined) yield* pauseForQuota(conversation);
    const answer = yield* takeTurn(conversation, requestOf(conversation));
    const calls = toolCallsOf(answer.message);
    if (calls.length > 0) {
      const round = yield* runRound(calls, { isCut: cutReasons.has(answer.stopReason) });
      const message = withReminder({ role: "user", content: round.content }, input);
      yield add(conversation, message, "tool-results", round.data);
      signal.throwIfAborted();
      if (ports.isStopped?.() === true) return { status: "stopped", reason: "stopped_by_person" };
      if (ports.isFinished?.() === true) {
        const failed = await ports.verify?.check(textOf(answer.message), { signal });
        if (failed === undefined) return { status: "completed", reason: "output_given" };
        yield add(conversation, failed, "system");
        continue;
      }
      if (round.limit !== undefined) return yield* requestFinalAnswer(conversation, round.limit);
      continue;
    }
    if (answer.stopReason === "pause_turn") continue;
    if (answer.stopReason === "model_context_window_exceeded" && (yield* conversation.compactor.rescue())) {
      yield add(conversation, continueRequest, "system");
      continue;
    }
    const mail = ports.takeMessages();
    if (mail.length > 0) {
      for (const message of mail) yield add(conversation, message, "message");
      continue;
    }
    const text = textOf(answer.message);
    const isSilent = answer.stopReason === "end_turn" && text.trim() === "";
    if (input.askWhenSilent === true && isSilent && ports.handsInValue?.() !== true) {
      if (asked) return { status: "partial", reason: "no_result", error: silenceError };
      asked = true;
      yield add(conversation, emptyAnswerPrompt, "system");
      continue;
    }
    const further = ports.continueAnswer?.(answer);
    if (further !== undefined) {
      yield add(conversation, further, "system");
      continue;
    }
    const ending = endOf(answer.stopReason, text, ports.limits?.shortened());
    if (ending.status !== "completed") return ending;
    const more = await ports.beforeEnd?.(text, { signal });
    if (more === undefined) return ending;
    yield add(conversation, more, "system");
    signal.throwIfAborted();
  }
}

/** The answer was cut, and its last call may be cut with it. */
const cutReasons: ReadonlySet<string> = new Set(["max_tokens", "model_context_window_exceeded"]);

/** Said after a compaction that a full window has made necessary in the middle of an answer. */
export const continueRequest: UserMessage = {
  role: "user",
  content: [
    {
      type: "text",
      text: "Your answer broke off because the context window was full. The conversation has been shortened; continue where you broke off.",
    },
  ],
};

/** Asked once of an agent that ends without a word, so that an empty success cannot happen. */
export const emptyAnswerPrompt: UserMessage = {
  role: "user",
  content: [
    {
      type: "text",
      text: "You ended without a text. State your result now, in words, without calling tools.",
    },
  ],
};

const silenceError = "The agent ended without any text, even after it was asked for its result.";

/** The next turn as it would be sent. */
export function requestOf({
  input,
  ports,
  messages,
}: Pick<Conversation, "input" | "ports" | "messages">): ModelRequest {
  const tools = offeredTools(ports);
  return {
    system: input.system,
    tools: ports.present?.(tools, messages) ?? specificationsOf(tools),
    serverTools: ports.serverTools,
    messages,
    maxTokens: input.maxTokens,
    effort: input.effort,
  };
}

async function* takeTurn(
  conversation: Conversation,
  request: ModelRequest,
): AsyncGenerator<RunEvent, ModelAnswer> {
  const { ports, signal, tally, messages, compactor } = conversation;
  signal.throwIfAborted();
  const making = compactor.makeRoom(request);
  if (making !== undefined) yield* making;
  yield { type: "turn-started", turn: tally.turns() + 1 };
  const onLost = ({ usage, costUsd: cost }: LostAnswer): void => tally.addAside(usage, 0, cost);
  const order = { model: ports.model, request, signal, onLost, onFallback: tally.addFallback };
  let start = ports.now();
  let answer: ModelAnswer;
  try {
    answer = yield* takeModelTurn(order);
  } catch (error) {
    if (!(yield* compactor.rescueFrom(error))) throw error;
    start = ports.now();
    answer = yield* takeModelTurn(order);
  }
  const { price } = ports.model.facts;
  const cost = price === undefined ? undefined : costOf(answer.usage, price);
  const durationMs = ports.now() - start;
  tally.addTurn(answer.usage, durationMs, cost);
  tally.addText(textOf(answer.message));
  const recorded = ports.recordRequest?.(request);
  messages.push(answer.message);
  compactor.answered(answer.message, answer.usage, answer.stopReason);
  const { type: _type, ...rest } = answer;
  yield {
    type: "assistant-answered",
    ...rest,
    durationMs,
    costUsd: cost,
    ...intentsOf(answer.message, ports),
    request: recorded,
  };
  return answer;
}

/** One last turn without tools; where it fails, what there is already counts. */
async function* requestFinalAnswer(
  conversation: Conversation,
  { reason, error }: LimitReached,
): AsyncGenerator<RunEvent, Ending> {
  yield add(conversation, lastTurnRequest(error), "system");
  try {
    const answer = yield* takeTurn(conversation, { ...requestOf(conversation), toolChoice: "none" });
    const text = textOf(answer.message);
    return { status: "partial", reason, error, ...(text.trim() === "" ? {} : { text }) };
  } catch (failure) {
    if (conversation.signal.aborted) throw failure;
    return { status: "partial", reason, error };
  }
}

/**
 * Where only last turns of a quota are left, the agent hands in what it has with one of them, so that it is known also if it is not
 * continued, and waits for the next quota.
 */
async function* pauseForQuota(conversation: Conversation): AsyncGenerator<RunEvent, void> {
  const { ports, signal, tally } = conversation;
  const { quota } = ports;
  const closing = quota?.closing();
  if (quota === undefined || closing === undefined) return;
  const hasStarted = tally.turns() > 0;
  if (!hasStarted && quota.mayBegin) return;
  if (hasStarted) {
    using _last = quota.lastTurn();
    const { provider, until } = closing;
    const at = new Date(until).toISOString();
    const reason = `The quota of ${provider} is nearly used up; the next one begins at ${at}.`;
    yield add(conversation, lastTurnRequest(reason), "system");
    try {
      yield* takeTurn(conversation, { ...requestOf(conversation), toolChoice: "none" });
    } catch (failure) {
      // Others may have taken what was left; then the conversation itself is all there is.
      if (!(failure instanceof ModelError) || conversation.signal.aborted) throw failure;
    }
  }
  yield { type: "quota-waiting", ...closing };
  await quota.wait({ signal });
  yield { type: "quota-renewed", provider: closing.provider };
  if (hasStarted) yield add(conversation, quotaRenewed, "system");
}

/** Whose quota it was, of a message that asks for a last turn; undefined for any other. */
export function readQuotaPause(
  message: UserMessage,
): { readonly provider: string; readonly until: number } | undefined {
  const words = /^The quota of (.+) is nearly used up; the next one begins at (\S+)\. Do not call tools\./;
  const [, provider, at = ""] = words.exec(textOf(message)) ?? [];
  return provider === undefined ? undefined : { provider, until: Date.parse(at) };
}

/** Said when an agent that has handed in what it had continues. */
export const quotaRenewed: UserMessage = {
  role: "user",
  content: [
    {
      type: "text",
      text: "There is a new quota. Continue your task where you stopped; do not repeat what is done. You may call tools again.",
    },
  ],
};

function lastTurnRequest(error: string): UserMessage {
  const text = `${error} Do not call tools. Hand in what you have: results, what is unfinished, and what you would do next.`;
  return { role: "user", content: [{ type: "text", text }] };
}

/** Adds a message to the conversation; the event is to be yielded. */
function add(
  { messages, compactor }: Conversation,
  message: UserMessage,
  origin: Extract<RunEvent, { type: "user-added" }>["origin"],
  results?: Readonly<Record<string, unknown>>,
): RunEvent {
  messages.push(message);
  compactor.added(message, origin === "prompt");
  return { type: "user-added", message, origin, results };
}

/** The reminder becomes part of the message for good: adding it only to the newest one would void the prompt cache. */
function withReminder(message: UserMessage, { reminder }: LoopInput): UserMessage {
  if (reminder === undefined) return message;
  const blocks: readonly UserBlock[] =
    typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  const note: TextBlock = { type: "text", text: `<system-reminder>\n${reminder}\n</system-reminder>` };
  return { ...message, content: [...blocks, note] };
}

function endOf(
  stopReason: ModelAnswer["stopReason"],
  text: string,
  shortened: LimitReached | undefined,
): Ending {
  switch (stopReason) {
    case "refusal":
      return { status: "failed", reason: "refusal", text, error: "The model declined to answer." };
    case "max_tokens":
      return {
        status: "partial",
        text,
        ...(shortened ?? { reason: "max_tokens", error: "The answer was cut at the output limit." }),
      };
    case "model_context_window_exceeded":
      return {
        status: "partial",
        reason: "context_full",
        text,
        error: "The model's context window is full.",
      };
    default:
      return { status: "completed", reason: stopReason, text };
  }
}

/** What the agent said last in this run; where it did not finish, also what it left without a word. */
function textOfEnd({ text, status }: Ending, tally: Tally, messages: readonly Message[]): string {
  const lastText = text ?? tally.lastText();
  return lastText.trim() === "" && status === "partial" ? describeUnfinished(messages) : lastText;
}

/** What the calls of an answer would do when repeated; a call of no tool there is does nothing. */
function intentsOf(
  message: AssistantMessage,
  ports: LoopPorts,
): { readonly intents?: readonly CallIntent[] } {
  const calls = toolCallsOf(message);
  if (calls.length === 0) return {};
  const intents = calls.map(({ id, name }): CallIntent => {
    const tool = findTool(name, ports);
    return { callId: id, tool: tool?.name ?? name, repeats: tool === undefined ? "pure" : repeatsOf(tool) };
  });
  return { intents };
}

/** So much of the last result means work that was not written up. */
const maxResult = 2000;

/** What an agent leaves that ended before it wrote a word: its calls, and the end of the last result. */
function describeUnfinished(messages: readonly Message[]): string {
  const calls = messages.flatMap((message) => (message.role === "assistant" ? toolCallsOf(message) : []));
  if (calls.length === 0) return "";
  const counts = new Map<string, number>();
  for (const { name } of calls) counts.set(name, (counts.get(name) ?? 0) + 1);
  const made = [...counts].map(([name, count]) => (count === 1 ? name : `${name} ${count} times`)).join(", ");
  const blocks = messages.flatMap((message): readonly ToolResultBlock[] =>
    message.role === "user" && typeof message.content !== "string"
      ? message.content.filter((block): block is ToolResultBlock => block.type === "tool_result")
      : [],
  );
  const { content = "" } = blocks.at(-1) ?? {};
  const text = resultText(content);
  const last = text.length <= maxResult ? text : `${text.slice(0, maxResult)} …`;
  const result = last === "" ? "" : `\n\nThe last result it saw:\n${last}`;
  return `(It ended before it wrote a result. It had called ${made}.)${result}`;
}

/** Compacts a conversation because it was asked for. The last event is always `run-ended`; nothing is thrown. */
export async function* compactNow(
  { input, instructions }: { readonly input: LoopInput; readonly instructions: string | undefined },
  ports: LoopPorts,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  const tally = createTally(ports.now);
  const messages: Message[] = [...input.history];
  const request = () => requestOf({ input, ports, messages });
  const compactor = createCompactor({ ports, messages, request, tally, signal });
  let ending: CompactionEnding;
  try {
    ending = endingOf(yield* compactor.compactNow(instructions));
  } catch (error) {
    ending = { text: "", ...endingOfCause(signal.aborted ? signal.reason : error, signal.aborted) };
  }
  yield { type: "run-ended", ending: { ...ending, ...tally.result() } };
}

type CompactionEnding = Pick<RunEnding, "status" | "reason" | "error" | "text">;

function endingOf(outcome: CompactionOutcome): CompactionEnding {
  switch (outcome.type) {
    case "compacted": {
      const { preTokens, postTokens, by } = outcome.event;
      const how = by === "model" ? "" : " The model gave no summary, so it was made by rule.";
      const text = `The conversation was compacted from about ${preTokens} to about ${postTokens} tokens.${how}`;
      return { status: "completed", reason: "compacted", text };
    }
    case "nothing":
      return {
        status: "completed",
        reason: "nothing_to_compact",
        text: `Nothing was compacted. ${outcome.reason}`,
      };
    case "blocked":
      return {
        status: "failed",
        reason: "compact_blocked",
        text: "",
        error: `The conversation was not compacted: ${outcome.reason}`,
      };
    case "impossible":
      return { status: "failed", reason: "context_full", text: "", error: outcome.reason };
  }
}
