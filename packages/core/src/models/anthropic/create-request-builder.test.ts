import { defined } from "@retinue/base/foundation/defined.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Message, UserBlock } from "../../conversation/message.ts";
import { lookUpModel } from "../look-up-model.ts";
import type { ModelRequest } from "../model.ts";
import { createRequestBuilder } from "./create-request-builder.ts";

function builderFor(id = "claude-sonnet-5") {
  const { facts, traits, wireId } = lookUpModel(id);
  return createRequestBuilder({ ...facts, model: wireId, traits });
}

const tool = { name: "Read", description: "reads", inputSchema: { type: "object", properties: {} } };
const tools = [tool, { ...tool, name: "Write" }];

function request(messages: readonly Message[], more: Partial<ModelRequest> = {}): ModelRequest {
  return { system: ["one", "two"], tools, messages, ...more };
}

function asks(text: string): Message {
  return { role: "user", content: text };
}

/** One turn: an answer with calls, and their results. */
function turn(name: string, calls = 1): readonly Message[] {
  const ids = Array.from({ length: calls }, (_, index) => `${name}-${index}`);
  return [
    { role: "assistant", content: ids.map((id) => ({ type: "tool_use", id, name: "Read", input: {} })) },
    {
      role: "user",
      content: ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: `of ${id}` })),
    },
  ];
}

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const child of Object.values(value)) frozen(child);
  }
  return value;
}

interface Flat {
  readonly text: string;
  readonly isMarked: boolean;
}

/** The request as the provider's cache sees it: one line of blocks, and where entries end. */
function flatten(parameters: object): readonly Flat[] {
  const { tools: sent = [], system = [], messages } = parameters as Record<string, object[] | undefined>;
  const blocks = [
    ...sent,
    ...system,
    ...(messages ?? []).flatMap((message) => {
      const { role, content } = message as { role: string; content: object[] };
      return content.map((block) => ({ role, ...block }));
    }),
  ];
  return blocks.map((block) => {
    const { cache_control: marked, ...rest } = block as Record<string, unknown>;
    return { text: JSON.stringify(rest), isMarked: marked !== undefined };
  });
}

function marksOf(parameters: object): number[] {
  return flatten(parameters).flatMap(({ isMarked }, index) => (isMarked ? [index] : []));
}

/** How many blocks of a request a provider that remembers these entries, and looks back 20 blocks, need not read. */
function readFromCache(blocks: readonly Flat[], entries: Set<string>): number {
  const prefixOf = (end: number): string =>
    blocks
      .slice(0, end + 1)
      .map(({ text }) => text)
      .join("\n");
  let best = 0;
  blocks.forEach(({ isMarked }, index) => {
    if (!isMarked) return;
    for (let end = index; end > index - 20 && end >= 0; end -= 1) {
      if (entries.has(prefixOf(end))) best = Math.max(best, end + 1);
    }
  });
  blocks.forEach(({ isMarked }, index) => {
    if (isMarked) entries.add(prefixOf(index));
  });
  return best;
}

describe("the request [MDL-3]", () => {
  test("has the model's own names and the order tools, system, messages", () => {
    const built = builderFor().build(request([asks("hi")]));
    expect(Object.keys(defined(built))).toEqual([
      "model",
      "max_tokens",
      "stream",
      "thinking",
      "tools",
      "system",
      "messages",
    ]);
    expect(built).toMatchObject({ model: "claude-sonnet-5", stream: true, max_tokens: 128_000 });
    expect(built.tools?.[0]).toEqual({ name: "Read", description: "reads", input_schema: tool.inputSchema });
  });

  test("nothing that was given is changed", () => {
    const given = frozen(request([asks("hi"), ...turn("a"), ...turn("b", 20)]));
    expect(() => builderFor().build(given)).not.toThrow();
  });

  test("an empty system prompt, no tools and empty blocks are left out", () => {
    const built = builderFor().build(
      request(
        [
          asks("hi"),
          { role: "assistant", content: [{ type: "text", text: " \n" }] },
          {
            role: "user",
            content: [
              { type: "text", text: "" },
              { type: "text", text: "still there?" },
            ],
          },
        ],
        { system: ["", " "], tools: [], toolChoice: "none" },
      ),
    );
    expect(built).not.toHaveProperty("system");
    expect(built).not.toHaveProperty("tools");
    expect(built).not.toHaveProperty("tool_choice");
    expect(built.messages.map(({ role, content }) => [role, content.length])).toEqual([
      ["user", 1],
      ["user", 1],
    ]);
  });

  test.each<[string, UserBlock | Message["content"][number], object[]]>([
    [
      "thinking goes back unchanged",
      { type: "thinking", thinking: "t", signature: "s" },
      [{ type: "thinking", thinking: "t", signature: "s" }],
    ],
    [
      "redacted thinking too",
      { type: "redacted_thinking", data: "d" },
      [{ type: "redacted_thinking", data: "d" }],
    ],
    ["thinking that no one signed cannot go back", { type: "thinking", thinking: "t", signature: "" }, []],
    [
      "a server tool's block goes back unchanged",
      { type: "server_tool_use", id: "s", name: "web_search", input: { q: 1 } },
      [{ type: "server_tool_use", id: "s", name: "web_search", input: { q: 1 } }],
    ],
    [
      "what only this provider knows is unwrapped",
      { type: "provider", provider: "anthropic", block: { type: "new", x: 1 } },
      [{ type: "new", x: 1 }],
    ],
    [
      "what another provider knows stays here",
      { type: "provider", provider: "openai", block: { type: "new" } },
      [],
    ],
    [
      "citations are kept",
      { type: "text", text: "x", citations: [{ url: "u" }] },
      [{ type: "text", text: "x", citations: [{ url: "u" }] }],
    ],
    ["no citations are no key", { type: "text", text: "x", citations: null }, [{ type: "text", text: "x" }]],
    [
      "an id of another provider is made fit",
      { type: "tool_use", id: "call.1:a", name: "Read", input: "bad" },
      [{ type: "tool_use", id: "call_1_a", name: "Read", input: { input: "bad" } }],
    ],
  ])("%s", (_rule, block, expected) => {
    const message = { role: "assistant", content: [block, { type: "text", text: "end" }] } as Message;
    const built = builderFor().build(request([asks("hi"), message, asks("on")]));
    expect(JSON.parse(JSON.stringify(built.messages[1]?.content))).toEqual([
      ...expected,
      { type: "text", text: "end" },
    ]);
  });

  test("results keep their pictures and documents; a failed one says something", () => {
    const source = { type: "base64", media_type: "image/png", data: "AA" } as const;
    const results: UserBlock[] = [
      {
        type: "tool_result",
        tool_use_id: "a.b",
        content: [
          { type: "image", source },
          { type: "text", text: "" },
        ],
      },
      { type: "tool_result", tool_use_id: "c", content: "", is_error: true },
      { type: "tool_result", tool_use_id: "d", content: "", is_error: false },
      { type: "document", source: { ...source, media_type: "application/pdf" }, title: "T" },
    ];
    const built = builderFor().build(request([{ role: "user", content: results }, asks("so?")]));
    expect(built.messages[0]?.content).toEqual([
      { type: "tool_result", tool_use_id: "a_b", content: [{ type: "image", source }] },
      { type: "tool_result", tool_use_id: "c", content: "(no output)", is_error: true },
      { type: "tool_result", tool_use_id: "d", content: "" },
      { type: "document", source: { ...source, media_type: "application/pdf" }, title: "T" },
    ]);
  });

  test("server tools are offered where the model has them", () => {
    const serverTools = [{ name: "web_search", maxUses: 3, blockedDomains: ["x.y"] }] as const;
    const built = builderFor().build(request([asks("hi")], { serverTools }));
    expect(built.tools?.at(-1)).toMatchObject({
      type: "web_search_20250305",
      name: "web_search",
      max_uses: 3,
      blocked_domains: ["x.y"],
    });
    expect(builderFor("unknown").build(request([asks("hi")], { serverTools })).tools).toHaveLength(2);
  });

  test("an answer may be as long as the caller says, and never longer than the model's own limit", () => {
    const longest = (id: string, maxTokens?: number) =>
      builderFor(id).build(request([asks("hi")], maxTokens === undefined ? {} : { maxTokens })).max_tokens;
    expect(longest("claude-sonnet-5", 500)).toBe(500);
    expect(longest("claude-sonnet-5", 9_999_999)).toBe(128_000);
    expect(longest("claude-haiku-4-5")).toBe(32_000);
  });
});

describe("thinking and effort [MDL-3]", () => {
  test.each<[string, Partial<ModelRequest>, object]>([
    ["claude-sonnet-5", {}, { thinking: { type: "adaptive" } }],
    ["claude-sonnet-5", { effort: 0 }, { thinking: { type: "disabled" }, output_config: undefined }],
    [
      "claude-sonnet-5",
      { effort: "xhigh" },
      { thinking: { type: "adaptive" }, output_config: { effort: "xhigh" } },
    ],
    ["claude-sonnet-4-6", { effort: "xhigh" }, { output_config: { effort: "high" } }],
    ["claude-opus-4-5", { effort: "max" }, { output_config: { effort: "high" }, thinking: undefined }],
    [
      "claude-opus-4-5",
      { effort: 5000 },
      { output_config: undefined, thinking: { type: "enabled", budget_tokens: 5000 } },
    ],
    ["claude-haiku-4-5", {}, { thinking: undefined, output_config: undefined }],
    ["claude-haiku-4-5", { effort: "low" }, { thinking: undefined, output_config: undefined }],
    ["claude-haiku-4-5", { effort: "high" }, { thinking: { type: "enabled", budget_tokens: 16_000 } }],
    ["claude-haiku-4-5", { effort: "high", maxTokens: 4000 }, { thinking: { budget_tokens: 2976 } }],
    ["claude-haiku-4-5", { effort: "high", maxTokens: 2000 }, { thinking: undefined }],
    ["claude-sonnet-5", { effort: 20_000 }, { output_config: { effort: "high" } }],
    ["unknown-model", { effort: "high" }, { thinking: undefined, output_config: undefined }],
    ["claude-sonnet-5", { effort: "heroic" }, { output_config: undefined }],
    [
      "claude-haiku-4-5",
      { toolChoice: { tool: "Read" }, effort: "max" },
      { tool_choice: { type: "tool", name: "Read" }, thinking: undefined },
    ],
    [
      "claude-opus-5",
      { toolChoice: { tool: "Read" }, effort: "max" },
      {
        tool_choice: { type: "tool", name: "Read" },
        thinking: { type: "disabled" },
        output_config: { effort: "high" },
      },
    ],
    [
      "claude-opus-5-5",
      { toolChoice: { tool: "Read" } },
      { tool_choice: undefined, thinking: { type: "adaptive" } },
    ],
    ["claude-opus-5-5", { toolChoice: "none" }, { tool_choice: { type: "none" } }],
    ["claude-opus-5-5", { toolChoice: "auto" }, { tool_choice: undefined }],
  ])("%s with %j", (id, more, expected) => {
    const built: object = builderFor(id).build(request([asks("hi")], more));
    for (const [key, value] of Object.entries(expected)) {
      const actual: unknown = Reflect.get(built, key);
      if (value === undefined) expect(actual, key).toBeUndefined();
      else expect(actual, key).toMatchObject(value);
    }
  });
});

describe("prompt caching [MDL-7]", () => {
  test("marks the end of the tools, of the system prompt, of the conversation, and where it ended last time", () => {
    const built = builderFor().build(request([asks("hi"), ...turn("a"), ...turn("b")]));
    // 2 tools, 2 system texts, then one block in each of five messages.
    expect(marksOf(built)).toEqual([1, 3, 6, 8]);
  });

  test("what is not there leaves its mark to earlier turns", () => {
    const messages = [asks("hi"), ...turn("a"), ...turn("b"), ...turn("c"), ...turn("d")];
    const built = builderFor().build(request(messages, { system: [], tools: [] }));
    expect(marksOf(built)).toEqual([2, 4, 6, 8]);
  });

  test("behind a long message the tools give their mark to the turn before it", () => {
    const built = builderFor().build(request([asks("hi"), ...turn("a"), ...turn("b", 20), ...turn("c")]));
    expect(marksOf(built)).toEqual([3, 6, 46, 48]);
  });

  test("thinking is never marked", () => {
    const paused: Message = {
      role: "assistant",
      content: [
        { type: "text", text: "x" },
        { type: "thinking", thinking: "t", signature: "s" },
      ],
    };
    expect(marksOf(builderFor().build(request([asks("hi"), paused])))).toEqual([1, 3, 4, 5]);
  });

  test("from turn to turn the blocks of the request before it stay the same to the byte", () => {
    const builder = builderFor();
    const conversation: Message[] = [asks("hi")];
    let before = flatten(builder.build(request(conversation)));
    for (let round = 0; round < 10; round += 1) {
      conversation.push(...turn(`t${round}`, 1 + (round % 3)));
      const now = flatten(builder.build(request(conversation)));
      expect(now.slice(0, before.length).map(({ text }) => text)).toEqual(before.map(({ text }) => text));
      before = now;
    }
  });

  test("however many calls each turn makes, each request finds everything that was sent before it", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 12 }),
        (callsOfTurns) => {
          const builder = builderFor();
          const entries = new Set<string>();
          const conversation: Message[] = [asks("hi")];
          let sent = flatten(builder.build(request(conversation))).length;
          readFromCache(flatten(builder.build(request(conversation))), entries);
          callsOfTurns.forEach((calls, index) => {
            conversation.push(...turn(`t${index}`, calls));
            const built = builder.build(request(conversation));
            expect(marksOf(built).length).toBeLessThanOrEqual(4);
            expect(readFromCache(flatten(built), entries)).toBe(sent);
            sent = flatten(built).length;
          });
        },
      ),
      { numRuns: 60 },
    );
  });

  test("a message seen before is not converted again", () => {
    const builder = builderFor("unknown");
    const conversation = [asks("hi"), ...turn("a"), ...turn("b"), ...turn("c")];
    const first = builder.build(request(conversation));
    conversation.push(...turn("d"));
    const second = builder.build(request(conversation));
    expect(second.messages[1]).toBe(first.messages[1]);
  });

  test("a message that was replaced in the list is sent as it is now", () => {
    const builder = builderFor("unknown");
    const conversation = [asks("hi"), ...turn("a"), ...turn("b")];
    builder.build(request(conversation));
    conversation.splice(0, 3, asks("summary"));
    expect(builder.build(request(conversation))).toEqual(builderFor("unknown").build(request(conversation)));
  });
});
