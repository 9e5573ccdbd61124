import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { estimateBlockTokens } from "../../conversation/estimate-request-tokens.ts";
import type {
  AssistantBlock,
  AssistantMessage,
  ModelEvent,
  ProviderBlock,
  StopReason,
} from "../../conversation/message.ts";
import type { Usage } from "../../conversation/usage.ts";
import { ModelError } from "../model-error.ts";
import { readCallInput } from "../read-call-input.ts";
import { toModelError } from "./to-model-error.ts";

interface AnswerContext {
  /** The id of the message; ours, because some servers repeat theirs. */
  readonly id: string;
  readonly provider: string;
  readonly model: string;
  /** Ids of calls made before in this conversation. */
  readonly earlierCallIds: Iterable<string>;
  /** What the request is likely to have cost, for servers that count nothing. */
  readonly estimateInput: () => number;
  readonly requestId?: string;
}

interface AnswerReader {
  /** The events that a part of the stream makes; throws a ModelError when the part is an error. */
  read(part: unknown): readonly ModelEvent[];
  /** The events that close the answer; throws a ModelError when the stream broke off. */
  end(): readonly ModelEvent[];
}

/** Makes our events from the parts of an AI SDK stream. */
export function createAnswerReader(context: AnswerContext): AnswerReader {
  const { id, model, provider } = context;
  const modelName = `${provider}/${model}`;
  const open: OpenBlocks = {
    blocks: [],
    byKey: new Map(),
    pendingOptions: new Map(),
    usedCallIds: new Set(context.earlierCallIds),
    elsewhere: new Set(),
  };
  let finish: JsonRecord | undefined;
  let requestId = context.requestId;
  return {
    read(part) {
      if (!isRecord(part)) return [];
      if (part["type"] === "error") throw toModelError(part["error"], { model: modelName, hasStarted: true });
      if (part["type"] === "finish") finish = part;
      if (part["type"] === "response-metadata" && typeof part["id"] === "string") requestId ??= part["id"];
      // The events that one part of the stream makes; none for parts that are not about blocks.
      switch (part["type"]) {
        case "text-start":
          noteOptions(open, keyOf(part, "text"), part);
          return [];
        case "reasoning-start":
          noteOptions(open, keyOf(part, "thinking"), part);
          return [];
        case "text-delta":
          return readDelta(open, part, "text");
        case "reasoning-delta":
          return readDelta(open, part, "thinking");
        case "tool-input-delta":
          return readDelta(open, part, "tool_use");
        case "text-end":
          return readEnd(open, part, "text");
        case "reasoning-end":
          return readEnd(open, part, "thinking");
        case "tool-input-start": {
          const key = keyOf(part, "tool_use");
          if (part["providerExecuted"] === true) open.elsewhere.add(key);
          if (open.elsewhere.has(key) || open.byKey.has(key)) return [];
          noteOptions(open, key, part);
          return [startOf(begin(open, key, "tool_use", { id: part["id"], name: part["toolName"] }))];
        }
        case "tool-call": {
          // The whole call; providers that do not stream its input send only this.
          const key = keyOf({ id: part["toolCallId"] }, "tool_use");
          if (part["providerExecuted"] === true || open.elsewhere.has(key)) return [];
          noteOptions(open, key, part);
          const known = open.byKey.get(key);
          const block =
            known ?? begin(open, key, "tool_use", { id: part["toolCallId"], name: part["toolName"] });
          const input =
            typeof part["input"] === "string" ? part["input"] : JSON.stringify(part["input"] ?? {});
          const rest = block.text === "" && input !== "" ? [deltaOf(block, input)] : [];
          block.text = input;
          return [...(known === undefined ? [startOf(block)] : []), ...rest, end(open, block, key)];
        }
        default:
          return [];
      }
    },
    end() {
      if (finish === undefined) throw new ModelError("stream-cut", `${modelName}: the answer broke off.`);
      const hasCalls = open.blocks.some(({ kind }) => kind === "tool_use");
      const reading = readFinishReason(finish["finishReason"], hasCalls);
      if (reading.type === "failed") {
        throw new ModelError(reading.code, `${modelName}: the provider ended the answer with an error.`);
      }
      // Ends what is still open and adds the block that says what the provider wants back.
      const late = open.blocks.filter(({ isEnded }) => !isEnded).map((block) => end(open, block));
      const parts = open.blocks.flatMap(({ index, kind, options }): readonly BlockOptions[] =>
        Object.keys(options).length === 0 ? [] : [{ at: index, type: kind, options }],
      );
      const hasThought = open.blocks.some(({ kind }) => kind === "thinking");
      const origin = parts.length === 0 && !hasThought ? [] : [originBlock(provider, parts)];
      const index = open.blocks.length;
      const last = origin.flatMap((block): readonly ModelEvent[] => [
        { type: "block-started", index, block },
        { type: "block-ended", index, block },
      ]);
      const content = [...open.blocks.map((block) => blockOf(block, block.text)), ...origin];
      const events = [...late, ...last];
      const message = { role: "assistant" as const, content };
      const usage = readUsage(finish["usage"]) ?? estimateUsage(content, context);
      const request = requestId === undefined ? {} : { requestId };
      const { reason: stopReason } = reading;
      return [...events, { type: "message-ended", id, model, message, stopReason, usage, ...request }];
    },
  };
}

function estimateUsage(content: readonly AssistantBlock[], { estimateInput }: AnswerContext): Usage {
  const outputTokens = content.reduce((total, block) => total + estimateBlockTokens(block), 0);
  return { inputTokens: estimateInput(), outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 };
}

/** The counts of a `finish` part in any generation of the interface; undefined where the provider counted nothing. */
export function readUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const { inputTokens, outputTokens } = usage;
  // Up to its second generation the interface had one number for all input.
  const input = isRecord(inputTokens)
    ? inputTokens
    : { total: usage["inputTokens"], cacheRead: usage["cachedInputTokens"] };
  const output = count(isRecord(outputTokens) ? outputTokens["total"] : outputTokens);
  const total = count(input["total"]);
  const cacheReadTokens = count(input["cacheRead"]) ?? 0;
  const cacheWriteTokens = count(input["cacheWrite"]) ?? 0;
  const fresh = count(input["noCache"]);
  if (total === undefined && fresh === undefined && output === undefined) return undefined;
  const inputTokensLeft = fresh ?? Math.max(0, (total ?? 0) - cacheReadTokens - cacheWriteTokens);
  return { inputTokens: inputTokensLeft, outputTokens: output ?? 0, cacheReadTokens, cacheWriteTokens };
}

type FinishReading =
  | { readonly type: "stopped"; readonly reason: StopReason }
  | { readonly type: "failed"; readonly code: "server-error" | "stream-cut" };

/** Why the model stopped, in our words. Some servers say `stop` also when they call tools. */
export function readFinishReason(finish: unknown, hasCalls: boolean): FinishReading {
  const raw = isRecord(finish) ? finish["raw"] : undefined;
  const unified = isRecord(finish) ? finish["unified"] : finish;
  if (raw === "model_context_window_exceeded") return { type: "stopped", reason: raw };
  switch (unified) {
    case "length":
      return { type: "stopped", reason: "max_tokens" };
    case "content-filter":
      return { type: "stopped", reason: "refusal" };
    case "error":
      return { type: "failed", code: "server-error" };
    case "interrupted":
      return { type: "failed", code: "stream-cut" };
    default:
      return { type: "stopped", reason: hasCalls ? "tool_use" : "end_turn" };
  }
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? Math.max(0, value) : undefined;
}

/** The blocks of an answer as they come in. They may overlap; the index of each is the order of their start. */
interface OpenBlocks {
  readonly blocks: OpenBlock[];
  readonly byKey: Map<string, OpenBlock>;
  /** What was received of a block that has not started. */
  readonly pendingOptions: Map<string, ProviderOptions>;
  readonly usedCallIds: Set<string>;
  /** Calls that the provider runs itself. */
  readonly elsewhere: Set<string>;
}

interface OpenBlock {
  readonly index: number;
  readonly kind: BlockKind;
  readonly id: string;
  readonly name: string;
  text: string;
  options: ProviderOptions;
  isEnded: boolean;
}

type BlockKind = "text" | "thinking" | "tool_use";

/** A block begins with its first text: an empty one would be refused when it is sent back. */
function readDelta(open: OpenBlocks, part: JsonRecord, kind: BlockKind): readonly ModelEvent[] {
  const key = keyOf(part, kind);
  noteOptions(open, key, part);
  const text = typeof part["delta"] === "string" ? part["delta"] : "";
  const known = open.byKey.get(key);
  if (text === "" || (known === undefined && kind === "tool_use")) return [];
  const block = known ?? begin(open, key, kind);
  block.text += text;
  const delta = deltaOf(block, text);
  return known === undefined ? [startOf(block), delta] : [delta];
}

/** Reasoning may be hidden and yet have to be sent back, so its options alone make a block. */
function readEnd(open: OpenBlocks, part: JsonRecord, kind: BlockKind): readonly ModelEvent[] {
  const key = keyOf(part, kind);
  noteOptions(open, key, part);
  const known = open.byKey.get(key);
  if (known !== undefined) return [end(open, known, key)];
  if (kind !== "thinking" || !open.pendingOptions.has(key)) return [];
  const block = begin(open, key, kind);
  return [startOf(block), end(open, block, key)];
}

function begin(
  open: OpenBlocks,
  key: string,
  kind: BlockKind,
  call: { readonly id?: unknown; readonly name?: unknown } = {},
): OpenBlock {
  const block: OpenBlock = {
    index: open.blocks.length,
    kind,
    id: kind === "tool_use" ? unusedId(String(call.id), open.usedCallIds) : "",
    name: String(call.name ?? ""),
    text: "",
    options: open.pendingOptions.get(key) ?? {},
    isEnded: false,
  };
  open.pendingOptions.delete(key);
  open.blocks.push(block);
  open.byKey.set(key, block);
  return block;
}

function end(open: OpenBlocks, block: OpenBlock, key?: string): ModelEvent {
  block.isEnded = true;
  if (key !== undefined) open.byKey.delete(key);
  return { type: "block-ended", index: block.index, block: blockOf(block, block.text) };
}

function noteOptions(open: OpenBlocks, key: string, part: JsonRecord): void {
  const options = part["providerMetadata"];
  if (!isProviderOptions(options)) return;
  const block = open.byKey.get(key);
  if (block !== undefined) block.options = merge(block.options, options);
  else open.pendingOptions.set(key, merge(open.pendingOptions.get(key) ?? {}, options));
}

/** Reasoning and text may have the same id, so the kind is part of the key. */
function keyOf(part: JsonRecord, kind: BlockKind): string {
  return `${kind} ${String(part["id"])}`;
}

function startOf(block: OpenBlock): ModelEvent {
  return { type: "block-started", index: block.index, block: blockOf(block, "") };
}

function deltaOf({ kind, index }: OpenBlock, text: string): ModelEvent {
  if (kind === "tool_use") return { type: "input-delta", index, json: text };
  return { type: kind === "text" ? "text-delta" : "thinking-delta", index, text };
}

function blockOf(block: OpenBlock, text: string): AssistantBlock {
  if (block.kind === "text") return { type: "text", text };
  if (block.kind === "thinking") return { type: "thinking", thinking: text, signature: "" };
  return { type: "tool_use", id: block.id, name: block.name, input: readCallInput(text) };
}

function merge(a: ProviderOptions, b: ProviderOptions): ProviderOptions {
  const merged = new Map<string, JsonRecord>(Object.entries(a));
  for (const [name, options] of Object.entries(b)) merged.set(name, { ...merged.get(name), ...options });
  return Object.fromEntries([...merged].filter(([, options]) => isRecord(options)));
}

/** Some servers number their calls anew in each answer. */
function unusedId(id: string, used: Set<string>): string {
  let candidate = id;
  for (let number = 2; used.has(candidate); number += 1) candidate = `${id}_${number}`;
  used.add(candidate);
  return candidate;
}

/** What a provider wants back with a block it made: signatures, item ids, encrypted reasoning. By provider, then key. */
type ProviderOptions = Readonly<Record<string, JsonRecord>>;

interface BlockOptions {
  /** Where the block is among the blocks that are not the provider's own. */
  readonly at: number;
  readonly type: string;
  readonly options: ProviderOptions;
}

/**
 * The block that closes a message and says which provider made it and what it wants back. Kept apart from the blocks it
 * is about, so that the message stays readable for every other model.
 */
function originBlock(provider: string, parts: readonly BlockOptions[]): ProviderBlock {
  return { type: "provider", provider, parts };
}

/** The options for each block of a message by its place; undefined when another provider made the message. */
export function originOf(
  message: AssistantMessage,
  provider: string,
): ReadonlyMap<AssistantBlock, ProviderOptions> | undefined {
  const origin = message.content.find((block) => block.type === "provider" && block["provider"] === provider);
  if (origin === undefined || !("parts" in origin) || !Array.isArray(origin["parts"])) return undefined;
  const blocks = message.content.filter(({ type }) => type !== "provider");
  const found = new Map<AssistantBlock, ProviderOptions>();
  for (const part of origin["parts"].filter(isRecord)) {
    const block = blocks[Number(part["at"])];
    const options = part["options"];
    // A block of another kind at this place means that the message was changed since.
    if (block !== undefined && block.type === part["type"] && isProviderOptions(options))
      found.set(block, options);
  }
  return found;
}

function isProviderOptions(value: unknown): value is ProviderOptions {
  return isRecord(value) && Object.values(value).every(isRecord);
}
