import {
  type AssistantMessage,
  type Message,
  type TextBlock,
  textOf,
  toolCallsOf,
  type UserBlock,
  type UserMessage,
} from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { costOf } from "../conversation/usage.ts";
import { isFault } from "../foundation/fault.ts";
import type { ModelRequest } from "../model/model.ts";
import { specificationsOf } from "../tools/tool-specification.ts";
import { callTools } from "./call-tools.ts";
import type { LoopInput, LoopPorts } from "./loop-ports.ts";
import { type ModelAnswer, takeModelTurn } from "./model-turn.ts";
import { createTally, type Tally } from "./tally.ts";

/**
 * Runs one agent to its end: asks the model, runs what it calls, and goes on until it stops. Yields everything that
 * happens and stores nothing; the last event is always `run-ended`, and nothing is thrown.
 */
export async function* runAgentLoop(
  input: LoopInput,
  ports: LoopPorts,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  const tally = createTally(ports.now);
  const messages: Message[] = [...input.history];
  let ending: Ending;
  try {
    ending = yield* converse({ input, ports, signal, tally, messages });
  } catch (error) {
    ending = endingOf(error, signal);
  }
  yield {
    type: "run-ended",
    ending: { ...ending, text: ending.text ?? lastText(messages), ...tally.result() },
  };
}

type Ending = Pick<RunEnding, "status" | "reason" | "error"> & { readonly text?: string };

interface Conversation {
  readonly input: LoopInput;
  readonly ports: LoopPorts;
  readonly signal: AbortSignal;
  readonly tally: Tally;
  readonly messages: Message[];
}

async function* converse(conversation: Conversation): AsyncGenerator<RunEvent, Ending> {
  const { input, ports, signal, tally } = conversation;
  let asked = false;
  if (input.prompt !== undefined) yield* add(conversation, withReminder(input.prompt, input), "prompt");
  while (true) {
    yield* takeMail(conversation);
    if (tally.turns() >= input.maxTurns) return yield* endAtTurnLimit(conversation);
    if (input.maxCost !== undefined && (tally.cost() ?? 0) >= input.maxCost)
      return endAtBudget(input.maxCost);
    const answer = yield* takeTurn(conversation, requestOf(conversation));
    const calls = toolCallsOf(answer.message);
    if (calls.length > 0) {
      const runnable = answer.stopReason === "max_tokens" ? calls.slice(0, -1) : calls;
      const results = yield* callTools(runnable, ports, signal);
      tally.addCalls(calls.length, results.denials);
      const content = [...results.blocks, ...calls.slice(runnable.length).map(cutOff)];
      const message = withReminder({ role: "user", content }, input);
      yield* add(conversation, message, "tool-results", results.data);
      signal.throwIfAborted();
      if (ports.isStopped?.() === true) return { status: "stopped", reason: "stopped_by_person" };
      if (ports.isFinished?.() === true) return { status: "completed", reason: "output_given" };
      continue;
    }
    if (answer.stopReason === "pause_turn") continue;
    const mail = ports.takeMessages();
    if (mail.length > 0) {
      for (const message of mail) yield* add(conversation, message, "message");
      continue;
    }
    if (!asked && input.askWhenSilent === true && isSilent(answer)) {
      asked = true;
      yield* add(conversation, silenceQuestion, "system");
      continue;
    }
    const ending = endOf(answer);
    if (ending.status !== "completed") return ending;
    const more = await ports.beforeEnd?.(textOf(answer.message), { signal });
    if (more === undefined) return ending;
    yield* add(conversation, more, "system");
    signal.throwIfAborted();
  }
}

/** Asked once of an agent that ends without a word, so that an empty success cannot happen. */
const silenceQuestion: UserMessage = {
  role: "user",
  content: [
    {
      type: "text",
      text: "You ended without a text. State your result now, in words, without calling tools.",
    },
  ],
};

function isSilent(answer: ModelAnswer): boolean {
  return answer.stopReason === "end_turn" && textOf(answer.message).trim() === "";
}

function requestOf({ input, ports, messages }: Conversation): ModelRequest {
  return {
    system: input.system,
    tools: specificationsOf(ports.tools),
    ...(ports.serverTools === undefined ? {} : { serverTools: ports.serverTools }),
    messages,
    ...(input.maxTokens === undefined ? {} : { maxTokens: input.maxTokens }),
    ...(input.effort === undefined ? {} : { effort: input.effort }),
  };
}

async function* takeTurn(
  conversation: Conversation,
  request: ModelRequest,
): AsyncGenerator<RunEvent, ModelAnswer> {
  const { ports, signal, tally, messages } = conversation;
  signal.throwIfAborted();
  yield { type: "turn-started", turn: tally.turns() + 1 };
  const start = ports.now();
  const answer = yield* takeModelTurn(ports.model, request, signal);
  const { price } = ports.model.facts;
  const cost = price === undefined ? undefined : costOf(answer.usage, price);
  tally.addTurn(answer.usage, ports.now() - start, cost);
  messages.push(answer.message);
  const { type: _type, ...rest } = answer;
  yield { type: "assistant-answered", ...rest, ...(cost === undefined ? {} : { cost }) };
  return answer;
}

function endAtBudget(maxCost: number): Ending {
  return {
    status: "partial",
    reason: "max_budget",
    error: `The budget of ${maxCost} US dollars is used up.`,
  };
}

/** At the limit the agent either stops, or gets one last turn without tools to hand in what it has. */
async function* endAtTurnLimit(conversation: Conversation): AsyncGenerator<RunEvent, Ending> {
  const { input } = conversation;
  const error = `The limit of ${input.maxTurns} turns was reached.`;
  if (input.lastTurn !== true) return { status: "partial", reason: "max_turns", error };
  yield* add(conversation, lastTurnRequest, "system");
  const answer = yield* takeTurn(conversation, { ...requestOf(conversation), toolChoice: "none" });
  return { status: "partial", reason: "max_turns", error, text: textOf(answer.message) };
}

const lastTurnRequest: UserMessage = {
  role: "user",
  content: [
    {
      type: "text",
      text: "The turn limit is reached. Do not call tools. Hand in what you have: results, what is unfinished, and what you would do next.",
    },
  ],
};

async function* takeMail(conversation: Conversation): AsyncGenerator<RunEvent, void> {
  for (const message of conversation.ports.takeMessages()) yield* add(conversation, message, "message");
}

async function* add(
  { messages }: Conversation,
  message: UserMessage,
  origin: Extract<RunEvent, { type: "user-added" }>["origin"],
  results?: Readonly<Record<string, unknown>>,
): AsyncGenerator<RunEvent, void> {
  messages.push(message);
  yield { type: "user-added", message, origin, ...(results === undefined ? {} : { results }) };
}

/** The reminder becomes part of the message for good: adding it only to the newest one would void the prompt cache. */
function withReminder(message: UserMessage, { reminder }: LoopInput): UserMessage {
  if (reminder === undefined) return message;
  const blocks: readonly UserBlock[] =
    typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  const note: TextBlock = { type: "text", text: `<system-reminder>\n${reminder}\n</system-reminder>` };
  return { role: "user", content: [...blocks, note] };
}

/** The answer was cut by the output limit in the middle of this call, so its input cannot be trusted. */
function cutOff(call: { readonly id: string }): UserBlock {
  const content =
    "This call was cut off by the output limit and was not run. Try again with a shorter input.";
  return { type: "tool_result", tool_use_id: call.id, content, is_error: true };
}

function endOf(answer: ModelAnswer): Ending {
  const text = textOf(answer.message);
  switch (answer.stopReason) {
    case "refusal":
      return { status: "failed", reason: "refusal", text, error: "The model declined to answer." };
    case "max_tokens":
      return {
        status: "partial",
        reason: "max_tokens",
        text,
        error: "The answer was cut at the output limit.",
      };
    case "model_context_window_exceeded":
      return {
        status: "partial",
        reason: "context_full",
        text,
        error: "The model's context window is full.",
      };
    default:
      return { status: "completed", reason: answer.stopReason, text };
  }
}

function endingOf(error: unknown, signal: AbortSignal): Ending {
  if (signal.aborted) return { status: "stopped", reason: reasonOf(signal) };
  const message = error instanceof Error ? error.message : String(error);
  return { status: "failed", reason: isFault(error) ? error.code : "error", error: message };
}

function reasonOf(signal: AbortSignal): string {
  return isFault(signal.reason) ? signal.reason.code : "aborted";
}

function lastText(messages: readonly Message[]): string {
  const last = messages.findLast((message): message is AssistantMessage => message.role === "assistant");
  return last === undefined ? "" : textOf(last);
}
