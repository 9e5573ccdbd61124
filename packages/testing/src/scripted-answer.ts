import {
  estimateBlockTokens,
  estimateRequestTokens,
} from "@retinue/core/conversation/estimate-request-tokens.ts";
import type { AssistantBlock, StopReason } from "@retinue/core/conversation/message.ts";
import type { Usage } from "@retinue/core/conversation/usage.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { ModelError, type ModelErrorCode } from "@retinue/core/models/model-error.ts";
import { readCallInput } from "@retinue/core/models/read-call-input.ts";
import type { StepAnswer, StepError } from "./script.ts";

/** A step made ready to be sent: every id and count is settled and depends on nothing but the request and its number. */
export interface ScriptedAnswer {
  readonly id: string;
  readonly blocks: readonly AssistantBlock[];
  readonly stopReason: StopReason;
  readonly usage: Usage;
  readonly failure?: StepError;
  readonly after?: number;
  readonly retryAfterMs?: number;
  readonly delayMs: number;
}

/** What an answer is sent as, before any protocol. */
export type Piece =
  | { readonly type: "block-started"; readonly index: number; readonly block: AssistantBlock }
  | {
      readonly type: "delta";
      readonly kind: "text" | "thinking" | "input";
      readonly index: number;
      readonly text: string;
    }
  | { readonly type: "block-ended"; readonly index: number; readonly block: AssistantBlock };

export function answerStep(step: StepAnswer, request: ModelRequest, number: number): ScriptedAnswer {
  const mark = `${request.messages.length}_${number}`;
  const blocks = step.blocks ?? blocksOf(step, mark);
  const calls = blocks.some(({ type }) => type === "tool_use");
  const usage = {
    inputTokens: estimateRequestTokens(request),
    outputTokens: blocks.reduce((total, block) => total + estimateBlockTokens(block), 0),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  };
  return {
    id: `msg_scripted_${mark}`,
    blocks,
    stopReason: step.stopReason ?? (calls ? "tool_use" : "end_turn"),
    usage: { ...usage, ...step.usage },
    failure: step.failure,
    after: step.after,
    retryAfterMs: step.retryAfterMs,
    delayMs: step.delayMs ?? 0,
  };
}

/** The pieces that come before the error, or all of them. */
export function piecesOf(answer: ScriptedAnswer, deltaSize: number): readonly Piece[] {
  const pieces = answer.blocks.flatMap((block, index) => piecesOfBlock(block, index, deltaSize));
  if (answer.failure === undefined) return pieces;
  const after = answer.after ?? 0;
  let deltas = 0;
  const end = pieces.findIndex((piece) => piece.type === "delta" && ++deltas > after);
  return end === -1 ? pieces : pieces.slice(0, end);
}

/** Whether the error strikes before the answer has started. */
export function failsConcurrency({ failure, after }: ScriptedAnswer): boolean {
  if (failure === undefined) return false;
  return (
    failure === "connection-failed" || (after === undefined && failure !== "cut" && failure !== "malformed")
  );
}

/** What each error is called over HTTP and in a ModelError. */
export const errorKinds: Readonly<Record<Exclude<StepError, "stall">, ErrorKind>> = {
  "rate-limited": { code: "rate-limited", status: 429, message: "The scripted rate limit is reached." },
  overloaded: { code: "overloaded", status: 529, message: "The scripted provider is overloaded." },
  "server-error": { code: "server-error", status: 500, message: "The scripted provider failed." },
  "context-too-long": {
    code: "context-too-long",
    status: 400,
    message: "prompt is too long: 200001 tokens > 200000 maximum",
  },
  "invalid-request": { code: "invalid-request", status: 400, message: "The scripted request is invalid." },
  unauthorized: { code: "unauthorized", status: 401, message: "The scripted key is not accepted." },
  "not-found": { code: "not-found", status: 404, message: "The scripted model does not exist." },
  "connection-failed": { code: "connection-failed", message: "The scripted connection failed." },
  cut: { code: "stream-cut", message: "The scripted answer was cut off." },
  malformed: { code: "stream-malformed", message: "The scripted answer cannot be read." },
};

export interface ErrorKind {
  readonly code: ModelErrorCode;
  readonly status?: number;
  readonly message: string;
}

export function scriptedError(failure: Exclude<StepError, "stall">, retryAfterMs?: number): ModelError {
  const { code, status, message } = errorKinds[failure];
  return new ModelError(code, message, {
    status,
    retryAfterMs,
  });
}

function blocksOf(step: StepAnswer, mark: string): readonly AssistantBlock[] {
  const { thinking, text, calls = [] } = step;
  return [
    ...(thinking === undefined
      ? []
      : [{ type: "thinking" as const, thinking, signature: `signature_${mark}` }]),
    ...(text === undefined ? [] : [{ type: "text" as const, text }]),
    ...calls.map(({ name, input = {}, rawInput, id }, index) => ({
      type: "tool_use" as const,
      id: id ?? `toolu_${mark}_${index + 1}`,
      name,
      input: rawInput === undefined ? input : readCallInput(rawInput),
    })),
  ];
}

function piecesOfBlock(block: AssistantBlock, index: number, size: number): readonly Piece[] {
  const { empty, kind, text } = openBlock(block);
  const deltas =
    kind === undefined
      ? []
      : chunksOf(text, size).map((chunk) => ({ type: "delta" as const, kind, index, text: chunk }));
  return [{ type: "block-started", index, block: empty }, ...deltas, { type: "block-ended", index, block }];
}

interface OpenBlock {
  readonly empty: AssistantBlock;
  readonly kind?: "text" | "thinking" | "input";
  readonly text: string;
}

function openBlock(block: AssistantBlock): OpenBlock {
  switch (block.type) {
    case "text":
      return { empty: { ...block, text: "" }, kind: "text", text: block.text };
    case "thinking":
      return { empty: { ...block, thinking: "", signature: "" }, kind: "thinking", text: block.thinking };
    case "tool_use":
      return { empty: { ...block, input: {} }, kind: "input", text: writtenInput(block.input) };
    default:
      return { empty: block, text: "" };
  }
}

/** A text as input is what a model wrote that is no JSON. */
export function writtenInput(input: unknown): string {
  return typeof input === "string" ? input : (JSON.stringify(input) ?? "{}");
}

/** Cuts by characters as people count them in code points, so that no pair of surrogates is parted. */
function chunksOf(text: string, size: number): readonly string[] {
  const characters = Array.from(text);
  const count = Math.ceil(characters.length / size);
  return Array.from({ length: count }, (_, at) => characters.slice(at * size, (at + 1) * size).join(""));
}
