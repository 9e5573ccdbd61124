import { setTimeout as wait } from "node:timers/promises";
import { checkArgument, checks, checkTable } from "@retinue/base/foundation/check-arguments.ts";
import { defined } from "@retinue/base/foundation/defined.ts";
import type { Model, ModelEvent, ModelFacts, ModelRequest } from "@retinue/core/models/model.ts";
import { createScript, isScript, type Step } from "./script.ts";
import {
  answerStep,
  failsConcurrency,
  type Piece,
  piecesOf,
  type ScriptedAnswer,
  scriptedError,
} from "./scripted-answer.ts";

export interface ScriptedModelOptions {
  readonly facts?: Partial<ModelFacts> | undefined;
  /** Characters in a delta; 24 unless given. */
  readonly deltaSize?: number | undefined;
}

export interface ScriptedModel extends Model {
  /** What was asked so far, in order. */
  readonly requests: readonly ModelRequest[];
  /** Throws when steps are left unused or a request found none, and lists them. */
  finish(): void;
}

/** A model that says what the steps say. One may serve several agents concurrently: let steps `match` by system prompt. */
export function createScriptedModel(
  steps: readonly Step[],
  options: ScriptedModelOptions = {},
): ScriptedModel {
  checkArgument("The first argument of createScriptedModel()", isScript, steps);
  checkTable("createScriptedModel", { facts: checks.thing, deltaSize: checks.count }, options);
  const facts = { ...defaultFacts, ...defined(options.facts ?? {}) };
  const script = createScript(steps);
  const requests: ModelRequest[] = [];

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    signal.throwIfAborted();
    // A copy, because a caller may continue to grow its list of messages.
    requests.push({ ...request, messages: [...request.messages] });
    const number = requests.length;
    const answer = answerStep(await script.take(request), request, number);
    if (failsConcurrency(answer)) await fail(answer, signal);
    const { id, usage } = answer;
    const startUsage = { ...usage, outputTokens: 0 };
    yield { type: "message-started", id, model: facts.id, usage: startUsage };
    for (const piece of piecesOf(answer, options.deltaSize ?? 24)) {
      signal.throwIfAborted();
      if (piece.type === "delta" && answer.delayMs > 0) await wait(answer.delayMs, undefined, { signal });
      yield eventOf(piece);
    }
    signal.throwIfAborted();
    if (answer.failure !== undefined) await fail(answer, signal);
    const message = { role: "assistant" as const, content: answer.blocks };
    yield { type: "message-ended", id, model: facts.id, message, stopReason: answer.stopReason, usage };
  }

  return {
    facts,
    requests,
    finish: script.finish,
    stream: (request, { signal }) => stream(request, signal),
  };
}

const defaultFacts: ModelFacts = {
  id: "scripted",
  provider: "scripted",
  contextWindow: 200_000,
  maxOutputTokens: 32_000,
  supportsServerTools: false,
};

function eventOf(piece: Piece): ModelEvent {
  if (piece.type !== "delta") return piece;
  const { index, text } = piece;
  if (piece.kind === "input") return { type: "input-delta", index, json: text };
  return { type: piece.kind === "text" ? "text-delta" : "thinking-delta", index, text };
}

async function fail({ failure, retryAfterMs }: ScriptedAnswer, signal: AbortSignal): Promise<never> {
  if (failure !== undefined && failure !== "stall") throw scriptedError(failure, retryAfterMs);
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
