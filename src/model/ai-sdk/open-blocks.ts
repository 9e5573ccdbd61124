import type { AssistantBlock } from "../../conversation/message.ts";
import type { ModelEvent } from "../../conversation/model-event.ts";
import { isRecord, type JsonRecord } from "../../foundation/json-record.ts";
import { readCallInput } from "../read-call-input.ts";
import { type BlockOptions, isProviderOptions, originBlock, type ProviderOptions } from "./origin-block.ts";

/** The blocks of an answer as they come in. They may overlap; the index of each is the order of their start. */
export interface OpenBlocks {
  readonly blocks: OpenBlock[];
  readonly byKey: Map<string, OpenBlock>;
  /** What was said of a block that has not begun. */
  readonly pendingOptions: Map<string, ProviderOptions>;
  readonly usedCallIds: Set<string>;
  /** Calls that the provider runs itself. */
  readonly elsewhere: Set<string>;
}

export interface OpenBlock {
  readonly index: number;
  readonly kind: BlockKind;
  readonly id: string;
  readonly name: string;
  text: string;
  options: ProviderOptions;
  isEnded: boolean;
}

type BlockKind = "text" | "thinking" | "tool_use";

export function openBlocks(earlierCallIds: Iterable<string>): OpenBlocks {
  return {
    blocks: [],
    byKey: new Map(),
    pendingOptions: new Map(),
    usedCallIds: new Set(earlierCallIds),
    elsewhere: new Set(),
  };
}

/** The events that one part of the stream makes; none for parts that are not about blocks. */
export function readBlockPart(open: OpenBlocks, part: JsonRecord): readonly ModelEvent[] {
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
    case "tool-input-start":
      return readCallStart(open, part);
    case "tool-call":
      return readCall(open, part);
    default:
      return [];
  }
}

/** Ends what is still open and adds the block that says what the provider wants back. */
export function closeBlocks(open: OpenBlocks, provider: string) {
  const late = open.blocks.filter(({ isEnded }) => !isEnded).map((block) => end(open, block));
  const origin = originFor(open.blocks, provider);
  const index = open.blocks.length;
  const last = origin.flatMap((block): readonly ModelEvent[] => [
    { type: "block-started", index, block },
    { type: "block-ended", index, block },
  ]);
  const content = [...open.blocks.map((block) => blockOf(block, block.text)), ...origin];
  return { events: [...late, ...last], content };
}

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

function readCallStart(open: OpenBlocks, part: JsonRecord): readonly ModelEvent[] {
  const key = keyOf(part, "tool_use");
  if (part["providerExecuted"] === true) open.elsewhere.add(key);
  if (open.elsewhere.has(key) || open.byKey.has(key)) return [];
  noteOptions(open, key, part);
  return [startOf(begin(open, key, "tool_use", { id: part["id"], name: part["toolName"] }))];
}

/** The whole call; providers that do not stream its input say only this. */
function readCall(open: OpenBlocks, part: JsonRecord): readonly ModelEvent[] {
  const key = keyOf({ id: part["toolCallId"] }, "tool_use");
  if (part["providerExecuted"] === true || open.elsewhere.has(key)) return [];
  noteOptions(open, key, part);
  const known = open.byKey.get(key);
  const block = known ?? begin(open, key, "tool_use", { id: part["toolCallId"], name: part["toolName"] });
  const input = typeof part["input"] === "string" ? part["input"] : JSON.stringify(part["input"] ?? {});
  const rest = block.text === "" && input !== "" ? [deltaOf(block, input)] : [];
  block.text = input;
  return [...(known === undefined ? [startOf(block)] : []), ...rest, end(open, block, key)];
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

function originFor(blocks: readonly OpenBlock[], provider: string): readonly AssistantBlock[] {
  const parts = blocks.flatMap(({ index, kind, options }): readonly BlockOptions[] =>
    Object.keys(options).length === 0 ? [] : [{ at: index, type: kind, options }],
  );
  const hasThought = blocks.some(({ kind }) => kind === "thinking");
  return parts.length === 0 && !hasThought ? [] : [originBlock(provider, parts)];
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
