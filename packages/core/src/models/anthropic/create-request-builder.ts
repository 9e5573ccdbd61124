import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import {
  type AssistantBlock,
  type Message,
  referenceText,
  type ToolReferenceBlock,
  type UserBlock,
} from "../../conversation/message.ts";
import type { Effort, ModelTraits } from "../look-up-model.ts";
import type { ModelRequest, ServerTool, ToolSpecification } from "../model.ts";
import { sentCallInput } from "../read-call-input.ts";
import { wrappedBy } from "./block-builder.ts";

interface RequestTarget {
  /** The id as the provider knows it. */
  readonly model: string;
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  readonly traits: ModelTraits;
}

/** The body of a request to the Messages API, as far as it is used here. */
interface WireRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly stream: true;
  readonly thinking?: WireThinking;
  readonly output_config?: { readonly effort: Effort };
  readonly tool_choice?: WireToolChoice;
  readonly tools?: readonly WireTool[];
  readonly system?: readonly WireText[];
  readonly messages: readonly WireMessage[];
}

interface WireText {
  readonly type: "text";
  readonly text: string;
}

type WireThinking =
  | { readonly type: "adaptive"; readonly display: "summarized" }
  | { readonly type: "enabled"; readonly budget_tokens: number }
  | { readonly type: "disabled" };

type WireToolChoice = { readonly type: "none" } | { readonly type: "tool"; readonly name: string };

type WireTool =
  | {
      readonly name: string;
      readonly description: string;
      readonly input_schema: JsonRecord;
      /** The model sees it from where a result names it. */
      readonly defer_loading?: true;
    }
  | {
      readonly type: "web_search_20250305";
      readonly name: string;
      readonly max_uses?: number;
      readonly allowed_domains?: readonly string[];
      readonly blocked_domains?: readonly string[];
    };

interface BuildOptions {
  /** Leaves out earlier thinking, for a provider that refused it because another model or account wrote it. */
  readonly withoutThinking?: boolean;
  /** Tools that were found are loaded where they were found, which leaves caches valid; else they come behind the others. */
  readonly defersTools?: boolean;
}

interface RequestBuilder {
  build(request: ModelRequest, options?: BuildOptions): WireRequest;
}

/** What was converted of a list of messages that grows at its end. */
interface Conversation {
  readonly sources: Message[];
  readonly wire: WireMessage[];
  /** The tools that it names as found, and the places of the messages that do. */
  readonly references: Set<string>;
  readonly referring: number[];
}

/**
 * Turns requests into parameters of the Messages API. Messages of the same list are not converted again, so a turn
 * costs what is new in it; the request itself is never changed.
 */
export function createRequestBuilder(target: RequestTarget): RequestBuilder {
  const { convertMessages, resolveReferences } = createMessageConverter();
  const specified = new WeakMap<ToolSpecification, WireTool>();
  const instructed = new WeakMap<readonly string[], readonly WireText[]>();
  // Marks the last item of a list; the same item gives the same marked one each time.
  const usuallyMarked = new WeakMap<object, object>();
  const longMarked = new WeakMap<object, object>();
  const withMark = <T extends object>(list: readonly T[], isMarked: boolean, mark: CacheMark): T[] => {
    const last = list.at(-1);
    if (!isMarked || last === undefined) return [...list];
    const marked = mark === longMark ? longMarked : usuallyMarked;
    const known = marked.get(last) ?? { ...last, ...mark };
    marked.set(last, known);
    // Made from the item it is kept for, so it has that item's type.
    return [...list.slice(0, -1), known as T];
  };

  function convertTool(specification: ToolSpecification): WireTool {
    const tool = specified.get(specification) ?? {
      name: specification.name,
      description: specification.description,
      input_schema: { ...specification.inputSchema, type: "object" },
    };
    specified.set(specification, tool);
    return tool;
  }

  function convertTools(request: ModelRequest): readonly WireTool[] {
    const tools = request.tools.map(convertTool);
    const server = target.traits.serverTools ? (request.serverTools ?? []) : [];
    return server.length === 0 ? tools : [...tools, ...server.map(toWireServerTool)];
  }

  const postponed = new WeakMap<ToolSpecification, WireTool>();
  /** Behind all others, and without a mark: the provider takes none there. */
  function deferTools(tools: readonly ToolSpecification[]): readonly WireTool[] {
    if (!tools.some(({ loading }) => loading === "searches")) return [];
    return [
      placeholder,
      ...tools
        .filter(({ loading }) => loading === "found")
        .map((specification) => {
          const tool = postponed.get(specification) ?? { ...convertTool(specification), ...deferredMark };
          postponed.set(specification, tool);
          return tool;
        }),
    ];
  }

  function convertSystem(texts: readonly string[]): readonly WireText[] {
    let system = instructed.get(texts);
    if (system === undefined) {
      system = texts.filter((text) => text.trim() !== "").map((text) => ({ type: "text", text }));
      instructed.set(texts, system);
    }
    return system;
  }

  return {
    build(request, options = {}) {
      const conversation = convertMessages(request.messages);
      const isDeferred = ({ name, loading }: ToolSpecification): boolean =>
        options.defersTools === true && loading === "found" && conversation.references.has(name);
      const later = request.tools.filter(isDeferred);
      const deferred = options.defersTools === true ? deferTools([...searching(request), ...later]) : [];
      const tools = convertTools(
        later.length === 0
          ? request
          : { ...request, tools: request.tools.filter((tool) => !isDeferred(tool)) },
      );
      const system = convertSystem(request.system);
      const all = resolveReferences(conversation, new Set(later.map(({ name }) => name)));
      const messages = options.withoutThinking === true ? withoutThinking(all) : all;
      const plan = planBreakpoints(messages, { tools: tools.length > 0, system: system.length > 0 });
      const settings = thinkingSettings(request, target, options);
      const mark = request.cacheTtl === "1h" ? longMark : defaultMark;
      return {
        model: target.model,
        max_tokens: settings.maxTokens,
        stream: true,
        thinking: settings.thinking,
        output_config: settings.effort === undefined ? undefined : { effort: settings.effort },
        ...(tools.length === 0
          ? {}
          : { ...toolChoice(request, target), tools: [...withMark(tools, plan.tools, mark), ...deferred] }),
        ...(system.length === 0 ? {} : { system: withMark(system, plan.system, mark) }),
        messages: withMarks(messages, plan.conversation, mark),
      };
    },
  };
}

/** Converts each message once, also those that say which tools were found. */
function createMessageConverter() {
  // Converts what was added to a list since the last time; a list that was changed otherwise is converted anew.
  const conversations = new WeakMap<readonly Message[], Conversation>();
  const convertMessages = (messages: readonly Message[]): Conversation => {
    const known = conversations.get(messages);
    const isContinued = known?.sources.every((source, index) => source === messages[index]) === true;
    const conversation: Conversation = isContinued
      ? known
      : { sources: [], wire: [], references: new Set(), referring: [] };
    const { sources, wire, references, referring } = conversation;
    for (const message of messages.slice(sources.length)) {
      sources.push(message);
      const converted = toWireMessage(message);
      if (converted === undefined) continue;
      const names = referencesIn(converted);
      for (const name of names) references.add(name);
      if (names.length > 0) referring.push(wire.length);
      wire.push(converted);
    }
    if (!isContinued) conversations.set(messages, conversation);
    return conversation;
  };
  // The same message for the same deferred tools, so that it is encoded once.
  const referred = new WeakMap<WireMessage, { readonly key: string; readonly message: WireMessage }>();
  const resolveReferences = (
    { wire, referring }: Conversation,
    deferred: ReadonlySet<string>,
  ): readonly WireMessage[] => {
    if (referring.length === 0) return wire;
    const resolved = [...wire];
    for (const at of referring) {
      const message = wire[at];
      if (message === undefined) continue;
      const key = referencesIn(message)
        .filter((name) => deferred.has(name))
        .join();
      const before = referred.get(message);
      const made = before?.key === key ? before : { key, message: withReferences(message, deferred) };
      referred.set(message, made);
      resolved[at] = made.message;
    }
    return resolved;
  };
  return { convertMessages, resolveReferences };
}

interface CacheMark {
  readonly cache_control: { readonly type: "ephemeral"; readonly ttl?: "1h" };
}

/** Five minutes, which is what the provider does by default. */
const defaultMark: CacheMark = { cache_control: { type: "ephemeral" } };
const longMark: CacheMark = { cache_control: { type: "ephemeral", ttl: "1h" } };
const deferredMark = { defer_loading: true } as const;

/** From the first request on, so that the first tool that is found changes nothing of what comes before the conversation. */
const placeholder: WireTool = {
  name: "deferred_tools",
  description: "Stands for the tools that are loaded on demand. It cannot be called.",
  input_schema: { type: "object", properties: {} },
  ...deferredMark,
};

function searching({ tools }: ModelRequest): readonly ToolSpecification[] {
  return tools.filter(({ loading }) => loading === "searches");
}

function withoutThinking(messages: readonly WireMessage[]): readonly WireMessage[] {
  return messages.flatMap((message) => {
    const content = message.content.filter(({ type }) => type !== "thinking" && type !== "redacted_thinking");
    return content.length === 0 ? [] : [{ role: message.role, content }];
  });
}

function withMarks(
  messages: readonly WireMessage[],
  breakpoints: readonly Breakpoint[],
  mark: CacheMark,
): WireMessage[] {
  const marked = [...messages];
  for (const { message: at, block } of breakpoints) {
    const message = marked[at];
    if (message === undefined) continue;
    marked[at] = {
      role: message.role,
      content: message.content.map((item, index) => (index === block ? { ...item, ...mark } : item)),
    };
  }
  return marked;
}

function toWireServerTool(tool: ServerTool): WireTool {
  return {
    type: "web_search_20250305",
    name: tool.name,
    max_uses: tool.maxUses,
    allowed_domains: tool.allowedDomains === undefined ? undefined : [...tool.allowedDomains],
    blocked_domains: tool.blockedDomains === undefined ? undefined : [...tool.blockedDomains],
  };
}

function isForced(request: ModelRequest, target: RequestTarget): boolean {
  return typeof request.toolChoice === "object" && target.traits.forcedTool;
}

/** A model that cannot be forced to a tool is left to choose; the caller sees from the answer whether it did. */
function toolChoice(request: ModelRequest, target: RequestTarget): Pick<WireRequest, "tool_choice"> {
  const { toolChoice: choice } = request;
  if (choice === "none") return { tool_choice: { type: "none" } };
  if (typeof choice !== "object" || !isForced(request, target)) return {};
  return { tool_choice: { type: "tool", name: choice.tool } };
}

interface ThinkingSettings {
  readonly maxTokens: number;
  readonly thinking?: WireThinking;
  readonly effort?: Effort;
}

/** The part of the window that is kept for an answer without a configured length. */
const answerShare = 0.16;

function thinkingSettings(
  request: ModelRequest,
  target: RequestTarget,
  options: BuildOptions,
): ThinkingSettings {
  const { traits } = target;
  const usual = Math.min(target.maxOutputTokens, Math.floor(target.contextWindow * answerShare));
  const maxTokens = Math.max(1, Math.min(request.maxTokens ?? usual, target.maxOutputTokens));
  const chosen = chooseEffort(request.effort, traits);
  const effort = chosen.level === undefined ? {} : { effort: chosen.level };
  if (traits.thinking === "always") return { maxTokens, thinking: shownThinking, ...effort };
  if (traits.thinking === "adaptive") {
    // No tokens for thinking at all is how hosts switch it off.
    if (request.effort === 0) return { maxTokens, thinking: { type: "disabled" } };
    const thinks = !isForced(request, target) && request.thinks !== false;
    if (thinks) return { maxTokens, thinking: shownThinking, ...effort };
    // Forcing a tool and thinking exclude each other, and the highest efforts cannot do without thinking.
    const isHighest = chosen.level === "xhigh" || chosen.level === "max";
    return { maxTokens, thinking: { type: "disabled" }, ...(isHighest ? { effort: "high" } : effort) };
  }
  const asked = chosen.budget ?? (request.thinks === true ? defaultBudget : 0);
  const budget = Math.min(asked, maxTokens - 1024);
  const isFree = !isForced(request, target) && !options.withoutThinking && request.thinks !== false;
  const mayThink = traits.thinking === "budget" && isFree;
  if (!mayThink || budget < 1024) return { maxTokens, ...effort };
  return { maxTokens, thinking: { type: "enabled", budget_tokens: budget }, ...effort };
}

/** Tokens for thinking of a model that thinks only when it is asked to. */
const defaultBudget = 8_000;

/** Without it the newest models keep what they say between calls to themselves, and a watcher sees nothing. */
const shownThinking: WireThinking = { type: "adaptive", display: "summarized" };

interface ChosenEffort {
  /** A level the model knows. */
  readonly level?: Effort;
  /** Tokens for thinking, for models that take a number instead. */
  readonly budget?: number;
}

/**
 * What an effort means to a model: a level it knows (the next lower one if it is missing this one), or a number of tokens
 * for thinking. A number is read as such tokens. A model that knows neither gets nothing.
 */
function chooseEffort(effort: string | number | undefined, traits: ModelTraits): ChosenEffort {
  if (effort === undefined) return {};
  const wanted =
    typeof effort === "number"
      ? ladder.findLast(({ budget }) => effort >= budget)
      : ladder.find(({ level }) => level === effort);
  if (wanted === undefined) return {};
  if (traits.efforts.length === 0 || (typeof effort === "number" && traits.thinking === "budget")) {
    const budget = typeof effort === "number" ? Math.floor(effort) : wanted.budget;
    return traits.thinking === "budget" && budget > 0 ? { budget } : {};
  }
  const level = ladder
    .slice(0, ladder.indexOf(wanted) + 1)
    .findLast((rung) => traits.efforts.includes(rung.level))?.level;
  return level === undefined ? {} : { level };
}

interface EffortBudget {
  readonly level: Effort;
  readonly budget: number;
}

const ladder: readonly EffortBudget[] = [
  { level: "low", budget: 0 },
  { level: "medium", budget: 8_000 },
  { level: "high", budget: 16_000 },
  { level: "xhigh", budget: 24_000 },
  { level: "max", budget: 32_000 },
];

/** Where a cache entry ends: a block of a message. */
interface Breakpoint {
  readonly message: number;
  readonly block: number;
}

interface BreakpointPlan {
  readonly tools: boolean;
  readonly system: boolean;
  readonly conversation: readonly Breakpoint[];
}

const allowed = 4;
/** The provider looks this far back from a breakpoint for an entry written earlier; a little less, to be sure. */
const reach = 15;

/**
 * Chooses at most four cache breakpoints: the end of the tools, the end of the system prompt, the end of the
 * conversation, and where the conversation ended when it was last sent, so that the entry written then is met exactly,
 * however many blocks came since. A spare one marks the sending before that. When that lies out of reach behind a long
 * message, the tools give up theirs, since the system prompt's covers them.
 */
function planBreakpoints(
  messages: readonly WireMessage[],
  has: { readonly tools: boolean; readonly system: boolean },
): BreakpointPlan {
  // The last blocks of this sending and of those before it, newest first. Each sending ended where an answer began.
  const ends: Breakpoint[] = [];
  let isWanted = true;
  for (let index = messages.length - 1; index >= 0 && ends.length < allowed; index -= 1) {
    const message = messages[index];
    if (message === undefined) continue;
    const block = isWanted ? message.content.findLastIndex(({ type }) => cacheable.has(type)) : -1;
    if (block >= 0) {
      ends.push({ message: index, block });
      isWanted = false;
    }
    if (message.role === "assistant") isWanted = true;
  }
  const [, second, third] = ends;
  const isFar = second !== undefined && third !== undefined && blocksBetween(messages, third, second) > reach;
  const tools = has.tools && !(isFar && has.system);
  const spare = allowed - Number(tools) - Number(has.system);
  return { tools, system: has.system, conversation: ends.slice(0, spare) };
}

const cacheable: ReadonlySet<string> = new Set([
  "text",
  "tool_use",
  "tool_result",
  "image",
  "document",
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
]);

function blocksBetween(messages: readonly WireMessage[], from: Breakpoint, to: Breakpoint): number {
  let count = to.block - from.block;
  for (let index = from.message; index < to.message; index += 1)
    count += messages[index]?.content.length ?? 0;
  return count;
}

/** A content block as it is sent; keys always in the same order, so that the same conversation gives the same bytes. */
export interface WireBlock {
  readonly type: string;
  readonly [key: string]: unknown;
}

export interface WireMessage {
  readonly role: "user" | "assistant";
  readonly content: readonly WireBlock[];
}

/** A message as the Messages API takes it, or undefined when nothing of it can be sent. */
export function toWireMessage(message: Message): WireMessage | undefined {
  const blocks: readonly (AssistantBlock | UserBlock)[] =
    typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  const content = blocks.flatMap(toWireBlock);
  return content.length === 0 ? undefined : { role: message.role, content };
}

function toWireBlock(block: AssistantBlock | UserBlock | ToolReferenceBlock): readonly WireBlock[] {
  switch (block.type) {
    case "tool_reference":
      return [{ type: "tool_reference", tool_name: block.tool_name }];
    case "text": {
      // The API refuses text blocks without a visible character.
      if (block.text.trim() === "") return [];
      const citations = block.citations ?? [];
      const text = { type: "text", text: block.text };
      return [citations.length === 0 ? text : { ...text, citations }];
    }
    case "thinking":
      // Without a signature it came from another provider, which this one cannot check.
      if (block.signature === "") return [];
      return [{ type: "thinking", thinking: block.thinking, signature: block.signature }];
    case "redacted_thinking":
      return [{ type: "redacted_thinking", data: block.data }];
    case "tool_use":
      return [
        { type: "tool_use", id: wireId(block.id), name: block.name, input: sentCallInput(block.input) },
      ];
    case "tool_result": {
      const failed = block.is_error === true;
      const content =
        typeof block.content === "string"
          ? block.content
          : block.content.flatMap((part) => toWireBlock(part));
      const wireResult: WireBlock = {
        type: "tool_result",
        tool_use_id: wireId(block.tool_use_id),
        // The API refuses a failed result that says nothing.
        content: failed && content.length === 0 ? "(no output)" : content,
        ...(failed ? { is_error: true } : {}),
      };
      return [wireResult];
    }
    case "image":
      return [{ type: "image", source: block.source }];
    case "document":
      return [
        {
          type: "document",
          source: block.source,
          title: block.title,
        },
      ];
    case "provider": {
      const wrapped = block["block"];
      const isOurs =
        block["provider"] === wrappedBy && isRecord(wrapped) && typeof wrapped["type"] === "string";
      return isOurs ? [{ ...wrapped, type: String(wrapped["type"]) }] : [];
    }
    default:
      return [block];
  }
}

/** The tools that the results of a message name as found. */
export function referencesIn({ content }: WireMessage): readonly string[] {
  return content.flatMap((block) =>
    partsOf(block).flatMap((part) => (isReference(part) ? part.tool_name : [])),
  );
}

/**
 * References stay where the request defers the tool they name; all others become words. What else is in such a result comes
 * behind it: the API takes references alone.
 */
export function withReferences(message: WireMessage, deferred: ReadonlySet<string>): WireMessage {
  const behind: WireBlock[] = [];
  const content = message.content.map((block): WireBlock => {
    const parts = partsOf(block).map((part) =>
      isReference(part) && !deferred.has(part.tool_name) ? inWords(part) : part,
    );
    const kept = parts.filter(isReference);
    if (kept.length === 0) return parts.length === 0 ? block : { ...block, content: parts };
    behind.push(...parts.filter((part) => !isReference(part)));
    return { ...block, content: kept };
  });
  return { role: message.role, content: [...content, ...behind] };
}

function partsOf(block: WireBlock): readonly WireBlock[] {
  const parts: unknown = block.type === "tool_result" ? block["content"] : undefined;
  // Written by toWireBlock above.
  return Array.isArray(parts) && parts.some(isReference) ? (parts as readonly WireBlock[]) : [];
}

function isReference(part: unknown): part is WireBlock & { readonly tool_name: string } {
  return isRecord(part) && part["type"] === "tool_reference" && typeof part["tool_name"] === "string";
}

function inWords({ tool_name }: { readonly tool_name: string }): WireBlock {
  return { type: "text", text: referenceText({ type: "tool_reference", tool_name }) };
}

/** Ids of calls that another provider made may have signs that this one refuses. */
function wireId(id: string): string {
  return plainId.test(id) ? id : id.replace(/[^A-Za-z0-9_-]/g, "_") || "call";
}

const plainId = /^[A-Za-z0-9_-]+$/;
