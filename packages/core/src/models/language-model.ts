import { randomUUID } from "node:crypto";
import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { estimateRequestTokens } from "../conversation/estimate-request-tokens.ts";
import type { ModelEvent } from "../conversation/message.ts";
import { createAnswerReader } from "./ai-sdk/create-answer-reader.ts";
import { toModelError } from "./ai-sdk/to-model-error.ts";
import { type PromptOptions, toPrompt } from "./ai-sdk/to-prompt.ts";
import type { Model, ModelFacts, ModelRequest } from "./model.ts";
import { ModelError } from "./model-error.ts";
import { readQuotaReport } from "./read-quota.ts";
import type { HeaderReader } from "./read-retry-after.ts";
import { createStallWatch, type StallLimits } from "./stall-watch.ts";

interface CallShape extends PromptOptions {
  readonly takesEffort: boolean;
  readonly requestOptions: Readonly<Record<string, JsonRecord>>;
}

function choiceOf(choice: ModelRequest["toolChoice"]): JsonRecord {
  if (choice === undefined || choice === "auto") return { type: "auto" };
  return choice === "none" ? { type: "none" } : { type: "tool", toolName: choice.tool };
}

/** Before the interface had a place for it, each provider had its own; OpenAI's is the one that most of them share. */
function optionsWith(shape: CallShape, effort: string | undefined): Readonly<Record<string, JsonRecord>> {
  if (effort === undefined || shape.version === "v4") return shape.requestOptions;
  const names = [shape.provider, "openaiCompatible"];
  const hinted = names.map((name) => [name, { ...shape.requestOptions[name], reasoningEffort: effort }]);
  return { ...shape.requestOptions, ...Object.fromEntries(hinted) };
}

/** Levels above `high` are not known everywhere; a number is a share of a hundred. */
function effortLevel(effort: string | number | undefined): string | undefined {
  if (effort === undefined) return undefined;
  if (typeof effort === "string") return ["low", "medium"].includes(effort) ? effort : "high";
  if (effort <= 33) return "low";
  return effort <= 66 ? "medium" : "high";
}

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
  /** The name before the slash in `provider/model`; the model's own unless given. */
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
    version:
      languageModel.specificationVersion === "v2" || languageModel.specificationVersion === "v3"
        ? languageModel.specificationVersion
        : "v4",
    provider,
    takesResultFiles: options.takesResultFiles ?? false,
    takesEffort: options.takesEffort ?? false,
    requestOptions: options.requestOptions ?? {},
  };
  const settings: StreamSettings = {
    shape,
    limits: { ...defaultTimeouts, ...defined(options.timeouts ?? {}) },
    createId: options.createId ?? (() => `msg_${randomUUID()}`),
  };
  return {
    facts: { ...defaultFacts, ...defined(options.facts ?? {}), id, provider, supportsServerTools: false },
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
    // All of a request that the AI SDK's provider interface has a place for. Server tools have none.
    const { tools, toolChoice, maxTokens } = request;
    const effort = shape.takesEffort ? effortLevel(request.effort) : undefined;
    const providerOptions = optionsWith(shape, effort);
    const call: JsonRecord = {
      prompt: toPrompt(request, shape),
      maxOutputTokens: maxTokens,
      ...(tools.length === 0
        ? {}
        : {
            tools: tools.map(({ name, description, inputSchema }) => ({
              type: "function",
              name,
              description,
              inputSchema,
            })),
            toolChoice: choiceOf(toolChoice),
          }),
      ...(effort !== undefined && shape.version === "v4" ? { reasoning: effort } : {}),
      ...(Object.keys(providerOptions).length === 0 ? {} : { providerOptions }),
      includeRawChunks: false,
    };
    const { stream, response } = await begin(languageModel, call, watch);
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
    const report = readQuotaReport(headersOf(response));
    if (report !== undefined) yield { type: "quota-reported", ...report };
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
    throw toModelError(error, { model: modelName, hasStarted: reader !== undefined });
  } finally {
    // The stream may already be broken, which is then the reason for being here.
    reader?.cancel().catch(() => undefined);
  }
}

/** A provider that answers although it was asked to stop is not left with an open connection. */
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

function callIdsOf({ messages }: ModelRequest): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "assistant"
      ? message.content.flatMap((block) => (block.type === "tool_use" ? [String(block.id)] : []))
      : [],
  );
}

function headersOf(response: unknown): HeaderReader {
  const headers = isRecord(response) ? response["headers"] : undefined;
  return (name) => {
    const value = isRecord(headers) ? headers[name] : undefined;
    return typeof value === "string" ? value : undefined;
  };
}

function requestIdOf(response: unknown): { requestId?: string } {
  const header = headersOf(response);
  const id = header("x-request-id") ?? header("request-id");
  return id === undefined ? {} : { requestId: id };
}

interface StreamWatch extends Disposable {
  /** Given to whatever talks to the provider; aborted with the caller's signal, when a limit is passed, and at the end. */
  readonly signal: AbortSignal;
  /** Waits for the work, but not longer than the caller's signal and the limits allow. */
  wait<T>(work: PromiseLike<T>): Promise<T>;
  /** Says that a piece of the answer arrived. */
  heardAnswer(): void;
}

/** Watches over one answer whose source may not respect its signal, so that no wait for it continues for ever. */
function watchStream(outer: AbortSignal, limits: StallLimits, modelName: string): StreamWatch {
  const inner = new AbortController();
  let failure: { readonly error: unknown } | undefined;
  let interrupt: ((error: unknown) => void) | undefined;
  const stop = (error: unknown) => {
    failure ??= { error };
    inner.abort(error);
    interrupt?.(failure.error);
  };
  const onAbort = () => stop(outer.reason);
  outer.addEventListener("abort", onAbort, { once: true });
  const stall = createStallWatch(limits, () => {
    stop(new ModelError("stalled", `${modelName} ${stall.stalled ?? "stalled"}.`));
  });
  return {
    signal: inner.signal,
    async wait(work) {
      stall.wait();
      try {
        return await new Promise((resolve, reject) => {
          interrupt = reject;
          work.then(resolve, reject);
          if (failure !== undefined) reject(failure.error);
        });
      } finally {
        stall.rest();
      }
    },
    heardAnswer: () => stall.heardAnswer(),
    [Symbol.dispose]() {
      stall[Symbol.dispose]();
      outer.removeEventListener("abort", onAbort);
      stop(new DOMException("The answer is over.", "AbortError"));
    },
  };
}
