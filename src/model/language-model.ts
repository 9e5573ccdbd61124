import { randomUUID } from "node:crypto";
import type { ModelEvent } from "../conversation/model-event.ts";
import { estimateRequestTokens } from "../conversation/token-estimate.ts";
import { isRecord, type JsonRecord } from "../foundation/json-value.ts";
import { createAnswerReader } from "./ai-sdk-answer.ts";
import { type CallShape, toCall } from "./ai-sdk-call.ts";
import { toModelError } from "./ai-sdk-error.ts";
import type { InterfaceVersion } from "./ai-sdk-prompt.ts";
import type { Model, ModelFacts, ModelRequest } from "./model.ts";
import type { StallLimits } from "./stall-watch.ts";
import { type StreamWatch, watchStream } from "./stream-watch.ts";

/** What is used of a language model of the AI SDK; every generation of its interface fits. */
export interface LanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  // A method with its loosest parameter, because each generation names its own type of options.
  doStream(
    options: never,
  ): PromiseLike<{ readonly stream: ReadableStream<unknown>; readonly response?: unknown }>;
}

export interface LanguageModelOptions {
  /** The name before the slash in `provider/model`; the model's own unless told. */
  readonly provider?: string;
  readonly facts?: Partial<ModelFacts>;
  readonly timeouts?: Partial<StallLimits>;
  readonly takesResultFiles?: boolean;
  readonly takesEffort?: boolean;
  readonly requestOptions?: Readonly<Record<string, JsonRecord>>;
  readonly createId?: () => string;
}

/** Makes a Model of a language model from any provider package of the Vercel AI SDK. */
export function createModelFromLanguageModel(
  languageModel: LanguageModel,
  options: LanguageModelOptions = {},
): Model {
  const provider = options.provider ?? languageModel.provider.split(".")[0] ?? languageModel.provider;
  const id = languageModel.modelId;
  const shape: CallShape = {
    version: versionOf(languageModel.specificationVersion),
    provider,
    takesResultFiles: options.takesResultFiles ?? false,
    takesEffort: options.takesEffort ?? false,
    requestOptions: options.requestOptions ?? {},
  };
  const settings: StreamSettings = {
    shape,
    limits: { ...defaultTimeouts, ...options.timeouts },
    createId: options.createId ?? (() => `msg_${randomUUID()}`),
  };
  return {
    facts: { ...defaultFacts, ...options.facts, id, provider, supportsServerTools: false },
    stream: (request, { signal }) => streamAnswer(languageModel, request, signal, settings),
  };
}

const defaultTimeouts: StallLimits = { firstTokenMs: 300_000, betweenTokensMs: 120_000 };

/** What holds for most models of today where nothing is known. */
const defaultFacts = { contextWindow: 128_000, maxOutputTokens: 16_384 };

interface StreamSettings {
  readonly shape: CallShape;
  readonly limits: StallLimits;
  readonly createId: () => string;
}

async function* streamAnswer(
  languageModel: LanguageModel,
  request: ModelRequest,
  signal: AbortSignal,
  { shape, limits, createId }: StreamSettings,
): AsyncGenerator<ModelEvent> {
  signal.throwIfAborted();
  const model = languageModel.modelId;
  const modelName = `${shape.provider}/${model}`;
  using watch = watchStream(signal, limits, modelName);
  let reader: ReadableStreamDefaultReader<unknown> | undefined;
  try {
    const { stream, response } = await begin(languageModel, toCall(request, shape), watch);
    reader = stream.getReader();
    const id = createId();
    const answer = createAnswerReader({
      id,
      provider: shape.provider,
      model,
      earlierCallIds: callIdsOf(request),
      estimateInput: () => estimateRequestTokens(request),
      ...requestIdOf(response),
    });
    yield { type: "message-started", id, model };
    for (let next = await watch.wait(reader.read()); !next.done; next = await watch.wait(reader.read())) {
      const events = answer.read(next.value);
      if (events.length > 0) watch.heardAnswer();
      yield* events;
      signal.throwIfAborted();
    }
    yield* answer.end();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw toModelError(error, { model: modelName, hasBegun: reader !== undefined });
  } finally {
    // The stream may already be broken, which is then the reason for being here.
    reader?.cancel().catch(() => undefined);
  }
}

/** A provider that answers although it was told to stop is not left with an open connection. */
async function begin(languageModel: LanguageModel, call: JsonRecord, watch: StreamWatch) {
  // The call is built for the interface's generation that the model itself names.
  const options = { ...call, abortSignal: watch.signal } as never;
  const answered = Promise.resolve(languageModel.doStream(options));
  try {
    return await watch.wait(answered);
  } catch (error) {
    answered.then(({ stream }) => stream.cancel()).catch(() => undefined);
    throw error;
  }
}

function versionOf(version: string): InterfaceVersion {
  return version === "v2" || version === "v3" ? version : "v4";
}

function callIdsOf({ messages }: ModelRequest): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "assistant"
      ? message.content.flatMap((block) => (block.type === "tool_use" ? [String(block.id)] : []))
      : [],
  );
}

function requestIdOf(response: unknown): { requestId?: string } {
  const headers = isRecord(response) ? response["headers"] : undefined;
  const id = isRecord(headers) ? (headers["x-request-id"] ?? headers["request-id"]) : undefined;
  return typeof id === "string" ? { requestId: id } : {};
}
