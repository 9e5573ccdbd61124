import { randomUUID } from "node:crypto";
import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { estimateRequestTokens } from "../conversation/estimate-request-tokens.ts";
import {
  type AssistantMessage,
  type DocumentBlock,
  type ImageBlock,
  type ModelEvent,
  resultText,
  type TextBlock,
  type ToolResultBlock,
  type UserMessage,
} from "../conversation/message.ts";
import { createAnswerReader, originOf } from "./ai-sdk/create-answer-reader.ts";
import { toModelError } from "./ai-sdk/to-model-error.ts";
import type { Model, ModelFacts, ModelRequest } from "./model.ts";
import { ModelError } from "./model-error.ts";
import { sentCallInput } from "./read-call-input.ts";
import { readQuotaReport } from "./read-quota-report.ts";
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
      if (events.length > 0) watch.answerReceived();
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
  answerReceived(): void;
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
    answerReceived: () => stall.answerStarted(),
    [Symbol.dispose]() {
      stall[Symbol.dispose]();
      outer.removeEventListener("abort", onAbort);
      stop(new DOMException("The answer is over.", "AbortError"));
    },
  };
}

/** The generations of the AI SDK's provider interface that are spoken here; a newer one is spoken to as the newest. */
type InterfaceVersion = "v2" | "v3" | "v4";

interface PromptOptions {
  readonly version: InterfaceVersion;
  readonly provider: string;
  readonly takesResultFiles: boolean;
}

/** The conversation as messages of the AI SDK's provider interface. */
export function toPrompt(request: ModelRequest, options: PromptOptions): readonly JsonRecord[] {
  const system = request.system.filter((part) => part !== "").join("\n\n");
  const calls = request.messages.flatMap((message) =>
    message.role === "assistant" ? message.content.filter((block) => block.type === "tool_use") : [],
  );
  const names = new Map(calls.map(({ id, name }) => [String(id), String(name)]));
  return [
    ...(system === "" ? [] : [{ role: "system", content: system }]),
    ...request.messages.flatMap((message) =>
      message.role === "assistant"
        ? assistantMessage(message, options)
        : userMessages(message, names, options),
    ),
  ];
}

/** Thinking goes back only to the provider that thought it; its signature means nothing to others. */
function assistantMessage(message: AssistantMessage, { provider }: PromptOptions): readonly JsonRecord[] {
  const origin = originOf(message, provider);
  const content = message.content.flatMap((block): readonly JsonRecord[] => {
    const options = origin?.get(block);
    const extra = options === undefined ? {} : { providerOptions: options };
    switch (block.type) {
      case "text":
        return block.text === "" ? [] : [{ type: "text", text: block.text, ...extra }];
      case "thinking":
        return origin === undefined ? [] : [{ type: "reasoning", text: block.thinking, ...extra }];
      case "tool_use": {
        const input = sentCallInput(block.input);
        return [{ type: "tool-call", toolCallId: block.id, toolName: block.name, input, ...extra }];
      }
      default:
        return [];
    }
  });
  return content.length === 0 ? [] : [{ role: "assistant", content }];
}

function userMessages(
  { content }: UserMessage,
  names: ReadonlyMap<string, string>,
  options: PromptOptions,
): readonly JsonRecord[] {
  const blocks = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  const results = blocks.filter((block) => block.type === "tool_result");
  const others = blocks.filter((block) => block.type !== "tool_result");
  const lifted = options.takesResultFiles
    ? []
    : results.flatMap((result) => {
        const files = filesOf(result).flatMap((file) => userPart(file, options));
        if (files.length === 0) return [];
        const name = names.get(result.tool_use_id) ?? "the tool";
        return [{ type: "text", text: `What ${name} returned for call ${result.tool_use_id}:` }, ...files];
      });
  const parts = [...lifted, ...others.flatMap((block) => userPart(block, options))];
  return [
    ...(results.length === 0
      ? []
      : [{ role: "tool", content: results.map((result) => resultPart(result, names, options)) }]),
    ...(parts.length === 0 ? [] : [{ role: "user", content: parts }]),
  ];
}

function userPart(
  block: TextBlock | ImageBlock | DocumentBlock,
  options: PromptOptions,
): readonly JsonRecord[] {
  if (block.type === "text") return block.text === "" ? [] : [{ type: "text", text: block.text }];
  const { source } = block;
  const title = block.type === "document" && block.title !== undefined ? { filename: block.title } : {};
  if (source.type === "base64") {
    const data = options.version === "v4" ? { type: "data", data: source.data } : source.data;
    return [{ type: "file", mediaType: source.media_type, data, ...title }];
  }
  if (!URL.canParse(source.url)) return [];
  const address = new URL(source.url);
  const data = options.version === "v4" ? { type: "url", url: address } : address;
  return [{ type: "file", mediaType: "image/*", data }];
}

type ResultFile = ImageBlock | DocumentBlock;

function filesOf({ content }: ToolResultBlock): readonly ResultFile[] {
  return typeof content === "string"
    ? []
    : content.filter((block) => block.type === "image" || block.type === "document");
}

function resultPart(
  result: ToolResultBlock,
  names: ReadonlyMap<string, string>,
  options: PromptOptions,
): JsonRecord {
  const files = filesOf(result);
  const text = textOfResult(result, options.takesResultFiles ? 0 : files.length);
  const part = {
    type: "tool-result",
    toolCallId: result.tool_use_id,
    toolName: names.get(result.tool_use_id) ?? "unknown",
  };
  if (files.length === 0 || !options.takesResultFiles) {
    return { ...part, output: { type: result.is_error ? "error-text" : "text", value: text } };
  }
  const parts = text === "" ? [] : [{ type: "text", text }];
  const value = [
    ...parts,
    ...files.flatMap(({ source }): readonly JsonRecord[] => {
      if (source.type === "url") {
        if (options.version === "v2") return [{ type: "text", text: source.url }];
        if (options.version === "v3") return [{ type: "image-url", url: source.url }];
        return [{ type: "file", mediaType: "image", data: { type: "url", url: new URL(source.url) } }];
      }
      const { data, media_type: mediaType } = source;
      if (options.version === "v2") return [{ type: "media", data, mediaType }];
      if (options.version === "v4") return [{ type: "file", mediaType, data: { type: "data", data } }];
      return [{ type: mediaType.startsWith("image/") ? "image-data" : "file-data", data, mediaType }];
    }),
  ];
  return { ...part, output: { type: "content", value } };
}

function textOfResult({ content }: ToolResultBlock, liftedCount: number): string {
  const text = resultText(content);
  if (liftedCount === 0) return text;
  const note = "[The file of this result is in the message that follows.]";
  return text === "" ? note : `${text}\n${note}`;
}
