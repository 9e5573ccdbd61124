import { createHash } from "node:crypto";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import {
  estimateBlockTokens,
  estimateTextTokens,
} from "@retinue/core/conversation/estimate-request-tokens.ts";
import type { AssistantBlock, UserBlock } from "@retinue/core/conversation/message.ts";
import { listOf } from "./wire.ts";

export interface PromptCacheOptions {
  /** Shorter prefixes are not kept. */
  readonly minimumTokens: number;
  readonly now: () => number;
}

export interface CacheCount {
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** Makes what was written readable; called when the answer begins, as with the real provider. */
  keep(): void;
}

export interface PromptCache {
  count(body: JsonRecord): CacheCount;
}

/**
 * Counts a Messages request as the provider does: blocks in the order tools, system, messages; a prefix is kept at each
 * `cache_control`, found again up to 20 blocks before one, and forgotten five minutes (or its `ttl`) after its last use.
 */
export function createPromptCache({ minimumTokens, now }: PromptCacheOptions): PromptCache {
  const expiries = new Map<string, number>();

  const maxHit = (prefixes: readonly Prefix[], marked: readonly number[]): number => {
    const time = now();
    for (const position of marked.toReversed()) {
      for (let at = position; at >= 0 && at > position - lookBack; at -= 1) {
        const prefix = prefixes[at];
        if (prefix !== undefined && (expiries.get(prefix.key) ?? 0) > time) return at;
      }
    }
    return -1;
  };

  return {
    count(body) {
      const prefixes = prefixesOf(body);
      const marked = prefixes.flatMap(({ lifetimeMs, tokens }, at) =>
        lifetimeMs !== undefined && tokens >= minimumTokens ? [at] : [],
      );
      const hit = maxHit(prefixes, marked);
      const total = prefixes.at(-1)?.tokens ?? 0;
      const cacheReadTokens = prefixes[hit]?.tokens ?? 0;
      const covered = Math.max(cacheReadTokens, prefixes[marked.at(-1) ?? -1]?.tokens ?? 0);
      return {
        inputTokens: total - covered,
        cacheReadTokens,
        cacheWriteTokens: covered - cacheReadTokens,
        keep() {
          const kept = hit === -1 ? marked : [...marked, hit];
          for (const at of kept) {
            const prefix = prefixes[at];
            if (prefix !== undefined) expiries.set(prefix.key, now() + (prefix.lifetimeMs ?? minutes(5)));
          }
        },
      };
    },
  };
}

const lookBack = 20;

/** Everything up to and including one block. */
interface Prefix {
  readonly key: string;
  readonly tokens: number;
  /** Present where the block is marked. */
  readonly lifetimeMs?: number;
}

function prefixesOf(body: JsonRecord): readonly Prefix[] {
  const blocks = flatten(body);
  let key = String(body["model"]);
  let tokens = 0;
  return blocks.map(({ text, tokens: own, lifetimeMs }) => {
    key = createHash("sha256").update(key).update("\0").update(text).digest("base64");
    tokens += own;
    return { key, tokens, lifetimeMs };
  });
}

interface FlatBlock {
  readonly text: string;
  readonly tokens: number;
  readonly lifetimeMs?: number;
}

function flatten(body: JsonRecord): readonly FlatBlock[] {
  // A tool that is loaded on demand is read where a result names it, and not before.
  const deferred = new Map(
    listOf(body["tools"]).flatMap((tool) =>
      tool["defer_loading"] === true ? [[String(tool["name"]), flat("tool", tool).tokens] as const] : [],
    ),
  );
  const tools = listOf(body["tools"])
    .filter((tool) => tool["defer_loading"] !== true)
    .map((tool) => flat("tool", tool));
  const system = textBlocks(body["system"]).map((block) => flat("system", block));
  // Other thinking or another tool choice makes other message prefixes; tools and system stay readable.
  const manner = JSON.stringify([body["thinking"], body["tool_choice"]]);
  const messages = listOf(body["messages"]).flatMap((message) =>
    textBlocks(message["content"]).map((block) => {
      const one = flat(`${message["role"]} ${manner}`, block);
      const named = listOf(block["content"]).filter(({ type }) => type === "tool_reference");
      const loaded = named.reduce((sum, { tool_name }) => sum + (deferred.get(String(tool_name)) ?? 0), 0);
      return loaded === 0 ? one : { ...one, tokens: one.tokens + loaded };
    }),
  );
  const all = [...tools, ...system, ...messages];
  const last = all.at(-1);
  const automatic = lifetimeOf(body);
  if (last === undefined || automatic === undefined || last.lifetimeMs !== undefined) return all;
  return [...all.slice(0, -1), { ...last, lifetimeMs: automatic }];
}

function flat(place: string, block: JsonRecord): FlatBlock {
  const { cache_control: _, ...content } = block;
  const text = `${place} ${JSON.stringify(content)}`;
  const lifetimeMs = lifetimeOf(block);
  const tokens = place === "tool" || place === "system" ? estimateTextTokens(text) : tokensOf(content);
  return { text, tokens, lifetimeMs };
}

function tokensOf(block: JsonRecord): number {
  // The shape is the wire's; what does not fit it is counted by its text.
  return estimateBlockTokens(block as unknown as AssistantBlock | UserBlock);
}

function lifetimeOf(holder: JsonRecord): number | undefined {
  const control = holder["cache_control"];
  if (!isRecord(control)) return undefined;
  return control["ttl"] === "1h" ? minutes(60) : minutes(5);
}

function textBlocks(content: unknown): readonly JsonRecord[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : listOf(content);
}

function minutes(count: number): number {
  return count * 60_000;
}
