import { randomUUID } from "node:crypto";
import { abortable } from "@retinue/base/foundation/abortable.ts";
import { type Check, checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { defined } from "@retinue/base/foundation/defined.ts";
import { kindOf, quote } from "@retinue/base/foundation/json-record.ts";
import { estimateRequestTokens } from "../conversation/estimate-request-tokens.ts";
import { textOf } from "../conversation/message.ts";
import type { Model, ModelFacts } from "./model.ts";
import { ModelError } from "./model-error.ts";

/** One message of a conversation as plain text. */
export interface TextMessage {
  readonly role: "system" | "user" | "assistant";
  readonly text: string;
}

/** The answer: a text, or pieces of it as they are written. */
export type TextAnswer = string | AsyncIterable<string>;

const factsFields = {
  id: checks.filled,
  provider: checks.filled,
  contextWindow: checks.count,
  maxOutputTokens: checks.count,
  supportsServerTools: checks.flag,
  price: checks.thing,
};
const factsShape: Check = (value) => {
  const complaint = checks.shape(factsFields)(value);
  const known = Object.keys(factsFields);
  const stray =
    complaint === undefined ? Object.keys(Object(value)).find((key) => !known.includes(key)) : undefined;
  return stray === undefined
    ? complaint
    : `has the fact ${quote(stray)}, which must be one of ${known.join(", ")}`;
};

/**
 * A model of your own that answers with text and calls no tools: a function from messages to text. What it throws ends the run
 * with that sentence; throw a `ModelError` to have the request made again.
 */
export function createTextModel(
  answer: (
    messages: readonly TextMessage[],
    options: { readonly signal: AbortSignal },
  ) => TextAnswer | Promise<TextAnswer>,
  facts: Partial<ModelFacts> = {},
): Model {
  checkArgument("The first argument of createTextModel()", checks.call, answer);
  checkArgument("The second argument of createTextModel()", factsShape, facts);
  const known: ModelFacts = {
    id: "text-model",
    provider: "program",
    contextWindow: 200_000,
    maxOutputTokens: 32_000,
    supportsServerTools: false,
    ...defined(facts),
  };
  return {
    facts: known,
    async *stream(request, { signal }) {
      const id = `msg_${randomUUID()}`;
      const messages: TextMessage[] = [
        ...request.system.map((text) => ({ role: "system", text }) as const),
        ...request.messages.map((message) => ({ role: message.role, text: textOf(message) })),
      ];
      yield { type: "message-started", id, model: known.id };
      const given = await abortable(Promise.resolve(answer(messages, { signal })), signal);
      yield { type: "block-started", index: 0, block: { type: "text", text: "" } };
      let text = "";
      for await (const piece of typeof given === "string" ? [given] : readPieces(given)) {
        text += piece;
        if (piece !== "") yield { type: "text-delta", index: 0, text: piece };
      }
      const block = { type: "text", text } as const;
      yield { type: "block-ended", index: 0, block };
      const usage = {
        inputTokens: estimateRequestTokens(request),
        outputTokens: Math.ceil(text.length / 4),
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
      };
      const message = { role: "assistant", content: [block] } as const;
      yield { type: "message-ended", id, model: known.id, message, stopReason: "end_turn", usage };
    },
  };
}

function readPieces(given: unknown): AsyncIterable<string> {
  if (typeof Object(given)[Symbol.asyncIterator] === "function") return given as AsyncIterable<string>;
  throw new ModelError(
    "invalid-request",
    `The function of createTextModel() must answer with text or an async iterable of strings, but answered with ${kindOf(given)}.`,
  );
}
