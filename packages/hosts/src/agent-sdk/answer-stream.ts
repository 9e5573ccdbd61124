import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import {
  type AssistantBlock,
  type ModelEvent,
  textOf,
  type UserMessage,
} from "@retinue/core/conversation/message.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { noUsage } from "@retinue/core/conversation/usage.ts";
import { createAnswerFold, type OpenAnswer } from "@retinue/core/kernel/live/live-text.ts";
import type { SessionPorts } from "@retinue/core/kernel/session-ports.ts";
import {
  type AnswerHead,
  blockMessage,
  own,
  type SdkMessage,
  type SdkMessageContext,
  sdkUsage,
} from "./sdk-messages.ts";

/** Shows an answer while it is given: each block as soon as it is complete, and its parts where they are asked for. */
export interface AnswerStream {
  take(event: RunEvent): readonly SdkMessage[];
  /** The ids under which the blocks of the answer were shown; its lines in the transcript get the same. */
  ids(): readonly string[];
  /** The text of a block that was never completed, when the turn is over. */
  takeCut(): readonly SdkMessage[];
}

export function createAnswerStream(
  context: Omit<SdkMessageContext, "sessionId"> & { readonly sessionId: () => string },
): AnswerStream {
  const answer = createAnswerFold();
  let ids: string[] = [];
  let cut: OpenAnswer | undefined;
  let askedAt = 0;
  const thinking = createThinkingCount();
  const here = (): SdkMessageContext => ({ ...context, sessionId: context.sessionId() });
  const show = (streamed: JsonRecord | undefined, more: JsonRecord = {}): readonly SdkMessage[] =>
    streamed === undefined || !context.partial ? [] : [{ ...partialMessage(streamed, here()), ...more }];
  // A text without a word is a line of the transcript and no message.
  const complete = (block: AssistantBlock, known: AnswerHead): readonly SdkMessage[] => {
    const id = context.uuid();
    ids.push(id);
    return block.type === "text" && block.text === "" ? [] : [blockMessage(block, known, here(), id)];
  };
  const takeStreamed = (event: ModelEvent): readonly SdkMessage[] => {
    if (event.type === "message-started") return show(streamEvent(event), { ttft_ms: Date.now() - askedAt });
    if (event.type === "thinking-delta")
      return [...thinking.take(event.text, here()), ...show(streamEvent(event))];
    const head = answer.open?.head;
    if (event.type !== "block-ended" || head === undefined) return show(streamEvent(event));
    const { index, block } = event;
    const isSigned = block.type === "thinking" && block.signature !== "";
    const signature = isSigned
      ? delta(index, { type: "signature_delta", signature: block.signature })
      : undefined;
    return [...show(signature), ...complete(block, { usage: noUsage, ...head }), ...show(streamEvent(event))];
  };
  return {
    ids: () => ids,
    takeCut() {
      const text = cut?.texts.slice(ids.length).find((said) => said !== undefined && said !== "");
      const head = cut?.head;
      cut = undefined;
      return text === undefined || head === undefined
        ? []
        : [blockMessage({ type: "text", text }, { usage: noUsage, ...head }, here())];
    },
    take(event) {
      const { open } = answer;
      const shown = ids;
      answer.onEvent(event);
      if (answer.open !== undefined) cut = answer.open;
      else if (
        event.type === "assistant-answered" ||
        event.type === "model-retried" ||
        event.type === "model-fell-back"
      )
        cut = undefined;
      if (answer.open?.head !== open?.head) ids = [];
      switch (event.type) {
        case "turn-started":
          askedAt = Date.now();
          thinking.begin();
          return [];
        case "model-streamed":
          return takeStreamed(event.event);
        case "assistant-answered": {
          const rest = event.message.content.slice(shown.length).flatMap((block) => complete(block, event));
          ids = [];
          return [...rest, ...answerEnd(event).flatMap((streamed) => show(streamed))];
        }
        default:
          return [];
      }
    },
  };
}

/** Estimated tokens between two messages about them, so that a long thought is not thousands of messages. */
const thinkingStep = 50;

/** Reports about how much a model has thought so far: four characters are a token. */
function createThinkingCount() {
  let characters = 0;
  let reported = 0;
  return {
    begin(): void {
      characters = 0;
      reported = 0;
    },
    take(text: string, { sessionId, uuid }: SdkMessageContext): readonly SdkMessage[] {
      characters += text.length;
      const estimated = Math.ceil(characters / 4);
      const delta = estimated - reported;
      if (delta === 0 || (reported > 0 && delta < thinkingStep)) return [];
      reported = estimated;
      const counts = { estimated_tokens: estimated, estimated_tokens_delta: delta };
      return [{ type: "system", subtype: "thinking_tokens", ...counts, uuid: uuid(), session_id: sessionId }];
    },
  };
}

function partialMessage(event: JsonRecord, context: SdkMessageContext): SdkMessage {
  return { type: "stream_event", event, ...own(context) };
}

/** An event of a model in the words of the provider's stream, which is what programs read along. */
function streamEvent(event: ModelEvent): JsonRecord | undefined {
  switch (event.type) {
    case "message-started":
      return {
        type: "message_start",
        message: {
          model: event.model,
          id: event.id,
          type: "message",
          role: "assistant",
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: event.usage === undefined ? undefined : sdkUsage(event.usage),
        },
      };
    case "block-started":
      return { type: "content_block_start", index: event.index, content_block: event.block };
    case "text-delta":
      return delta(event.index, { type: "text_delta", text: event.text });
    case "thinking-delta":
      return delta(event.index, { type: "thinking_delta", thinking: event.text });
    case "input-delta":
      return delta(event.index, { type: "input_json_delta", partial_json: event.json });
    case "block-ended":
      return { type: "content_block_stop", index: event.index };
    default:
      return undefined;
  }
}

function delta(index: number, content: JsonRecord): JsonRecord {
  return { type: "content_block_delta", index, delta: content };
}

/** The two events that end the stream of an answer; the loop knows them only as the whole answer. */
function answerEnd({
  stopReason,
  usage,
}: Pick<Extract<RunEvent, { type: "assistant-answered" }>, "stopReason" | "usage">): readonly JsonRecord[] {
  const ending = { stop_reason: stopReason, stop_sequence: null };
  return [{ type: "message_delta", delta: ending, usage: sdkUsage(usage) }, { type: "message_stop" }];
}

/** Makes the model continue an answer that is none: cut at its limit, refused, or empty. */
export interface AnswerContinuation {
  readonly continueAnswer: NonNullable<SessionPorts["continueAnswer"]>;
  /** Called when the next prompt begins. */
  begin(): void;
}

/** As often in one turn; a model that never says anything complete must end some time. */
const maxCuts = 3;

export function createAnswerContinuation({
  notice,
}: {
  readonly notice: (text: string) => void;
}): AnswerContinuation {
  let cuts = 0;
  let isRefused = false;
  let isEmpty = false;
  return {
    begin() {
      cuts = 0;
      isRefused = false;
      isEmpty = false;
    },
    continueAnswer({ stopReason, message, model }) {
      const isCut = stopReason === "max_tokens" || stopReason === "model_context_window_exceeded";
      if (isCut && cuts < maxCuts) {
        cuts += 1;
        return userMessage(
          "Your answer was cut at the output limit. Continue exactly where it broke off, and do the rest in smaller steps.",
        );
      }
      if (stopReason === "refusal" && !isRefused) {
        isRefused = true;
        notice(`${model} declined to answer. It is asked once more, with a note.`);
        return userMessage(
          "Your last answer was stopped as a refusal. If a part of the request can be answered, answer that part; otherwise say briefly what you cannot do.",
        );
      }
      if (stopReason !== "end_turn" || isEmpty || textOf(message).trim() !== "") return undefined;
      isEmpty = true;
      return userMessage("Your last answer had no text. Continue, and answer in words.");
    },
  };
}

function userMessage(text: string): UserMessage {
  return { role: "user", content: [{ type: "text", text }] };
}
