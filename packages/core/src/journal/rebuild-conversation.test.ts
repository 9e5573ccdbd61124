import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { parseLines } from "@retinue/base/storage/read-lines.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Message, toolCallsOf, type UserMessage } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import {
  appendUserMessage,
  interruptedResult,
  interruptedResults,
  rebuildConversation,
} from "./rebuild-conversation.ts";
import { createTranscriptWriter } from "./transcript-writer.ts";

/** Why a provider would refuse a conversation; undefined when it would not. */
function refusalOf(messages: readonly Message[]): string | undefined {
  const seen = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (message.role !== (index % 2 === 0 ? "user" : "assistant")) return `${index} has the wrong role`;
    if (message.content.length === 0) return `${index} is empty`;
    if (message.role === "user") {
      const before = messages[index - 1];
      const asked = before?.role === "assistant" ? toolCallsOf(before).map(({ id }) => id) : [];
      const blocks = typeof message.content === "string" ? [] : message.content;
      const answers = blocks.flatMap((block) => (block.type === "tool_result" ? [block.tool_use_id] : []));
      if (JSON.stringify(answers) !== JSON.stringify(asked))
        return `${index} answers ${answers}, asked were ${asked}`;
      if (blocks.slice(0, answers.length).some(({ type }) => type !== "tool_result"))
        return `${index} answers late`;
    } else {
      if (message.content.at(-1)?.type.includes("thinking")) return `${index} ends with thinking`;
      for (const { id } of toolCallsOf(message)) {
        if (seen.has(id)) return `${index} repeats ${id}`;
        seen.add(id);
      }
    }
  }
  const last = messages.at(-1);
  return last?.role === "assistant" && toolCallsOf(last).length > 0
    ? "the last calls are not answered"
    : undefined;
}

function counter(prefix: string, start = 0): () => string {
  let count = start;
  return () => {
    count += 1;
    return `${prefix}${count}`;
  };
}

const words = fc
  .string({ minLength: 1, maxLength: 12, unit: "grapheme" })
  .filter((text) => text.trim() !== "");
const textBlock = words.map((text) => ({ type: "text", text }) as const);
const image = fc.constant({
  type: "image",
  source: { type: "base64", media_type: "image/png", data: "AAAA" },
} as const);
const prompt = fc.oneof(words, fc.array(fc.oneof(textBlock, image), { minLength: 1, maxLength: 2 }));
const call = fc.record({
  name: fc.constantFrom("Read", "Task", "Agent", "mcp__a__b"),
  input: fc.dictionary(
    fc.constantFrom("file_path", "__proto__", "constructor", "x"),
    fc.jsonValue({ maxDepth: 1 }),
  ),
  content: fc.oneof(fc.string(), fc.array(textBlock, { minLength: 1, maxLength: 2 })),
  isError: fc.boolean(),
});
const answer = fc.record({
  thinking: fc.boolean(),
  text: fc.option(textBlock, { nil: undefined }),
  calls: fc.array(call, { minLength: 1, maxLength: 3 }),
  note: fc.option(textBlock, { nil: undefined }),
});
const exchange = fc.record({ prompt, answers: fc.array(answer, { maxLength: 3 }), end: textBlock });
const conversation = fc.array(exchange, { minLength: 1, maxLength: 3 }).map((exchanges) => {
  const nextCall = counter("toolu_");
  const thought = { type: "thinking", thinking: "Hm", signature: "sig" } as const;
  return exchanges.flatMap(({ prompt, answers, end }): readonly Message[] => [
    { role: "user", content: prompt },
    ...answers.flatMap((each): readonly Message[] => {
      const ids = each.calls.map(nextCall);
      return [
        {
          role: "assistant",
          content: [
            ...(each.thinking ? [thought] : []),
            ...(each.text === undefined ? [] : [each.text]),
            ...each.calls.map(
              ({ name, input }, at) => ({ type: "tool_use", id: ids[at] ?? "", name, input }) as const,
            ),
          ],
        },
        {
          role: "user",
          content: [
            ...each.calls.map(({ content, isError }, at) => {
              const block = { type: "tool_result", tool_use_id: ids[at] ?? "", content } as const;
              return isError ? { ...block, is_error: true } : block;
            }),
            ...(each.note === undefined ? [] : [each.note]),
          ],
        },
      ];
    }),
    { role: "assistant", content: [end] },
  ]);
});

function eventsOf(messages: readonly Message[]): readonly RunEvent[] {
  return messages.map((message, index) =>
    message.role === "user"
      ? { type: "user-added", message, origin: "prompt" }
      : {
          type: "assistant-answered",
          id: `msg_${index}`,
          model: "m",
          message,
          stopReason: "end_turn",
          usage: noUsage,
        },
  );
}

/** What a file holds after these messages, on top of what it held before. */
function transcriptOf(
  messages: readonly Message[],
  before: { text?: string; leaf?: string | undefined } = {},
): string {
  let text = before.text ?? "";
  const writer = createTranscriptWriter({
    log: {
      append: (lines) => {
        text += lines.map((line) => `${line}\n`).join("");
        return text.length;
      },
    },
    ids: { uuid: counter("uuid-", text.length) },
    now: () => 0,
    facts: { sessionId: "s", cwd: "/w", version: "1", entrypoint: "cli" },
    leaf: before.leaf,
  });
  for (const event of eventsOf(messages)) writer.record(event);
  return text;
}

const load = (text: string | Buffer) => rebuildConversation(parseLines(Buffer.from(text)).values);

describe("[TRN-3] a conversation comes back from its file", () => {
  it("any conversation that is written loads as the same messages", () => {
    fc.assert(
      fc.property(conversation, (messages) => {
        const loaded = load(transcriptOf(messages));
        expect(loaded.messages).toEqual(messages);
        expect(loaded.unrecorded).toEqual([]);
        expect(refusalOf(loaded.messages)).toBeUndefined();
      }),
    );
  });

  it("[TRN-2] a file cut at any byte loads, continues, and loads again", () => {
    fc.assert(
      fc.property(conversation, fc.nat(), (messages, at) => {
        const whole = Buffer.from(transcriptOf(messages));
        const cut = whole.subarray(0, at % (whole.length + 1));
        const loaded = load(cut);
        expect(refusalOf(loaded.messages)).toBeUndefined();
        expect(loaded.messages.length).toBeLessThanOrEqual(messages.length + 1);

        const next: UserMessage = {
          role: "user",
          content: [...loaded.unrecorded, { type: "text", text: "Continue" }],
        };
        const repaired = `${cut.toString("latin1")}${cut.at(-1) === 10 || cut.length === 0 ? "" : "\n"}`;
        const text = transcriptOf([next], { text: repaired, leaf: loaded.leaf });
        const resumed = load(Buffer.from(text, "latin1"));
        const prompt: UserMessage = { role: "user", content: [{ type: "text", text: "Continue" }] };
        expect(refusalOf(resumed.messages)).toBeUndefined();
        expect(resumed.messages).toEqual(appendUserMessage(loaded.messages, prompt));
        expect(resumed.unrecorded).toEqual([]);
      }),
      { numRuns: 80 },
    );
  });

  it("lines in any order, doubled or dropped make a conversation that a provider accepts", () => {
    fc.assert(
      fc.property(
        conversation.chain((messages) => {
          const lines = transcriptOf(messages).trimEnd().split("\n");
          return fc.array(fc.constantFrom(...lines), { maxLength: lines.length * 2 });
        }),
        (lines) => {
          expect(refusalOf(load(lines.join("\n")).messages)).toBeUndefined();
        },
      ),
    );
  });

  it("any JSON at all can be loaded", () => {
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom("user", "assistant", "a", "b", null),
    );
    const block = fc.dictionary(
      fc.constantFrom("type", "text", "id", "tool_use_id", "content", "input"),
      value,
    );
    const message = fc.record({ id: value, content: fc.oneof(value, fc.array(block)) });
    const line = fc.record({
      type: value,
      uuid: value,
      parentUuid: value,
      message: fc.oneof(message, value),
    });
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        expect(refusalOf(rebuildConversation(lines).messages)).toBeUndefined();
      }),
      { numRuns: 120 },
    );
  });
});

const use = (id: string) => ({ type: "tool_use", id, name: "Read", input: {} });
const result = (id: string, content = "ok") => ({ type: "tool_result", tool_use_id: id, content });
const text = (words: string) => ({ type: "text", text: words });
const user = (
  uuid: string,
  parentUuid: string | null,
  content: unknown,
  fields: object = {},
): JsonRecord => ({
  type: "user",
  uuid,
  parentUuid,
  message: { role: "user", content },
  ...fields,
});
const assistant = (
  uuid: string,
  parentUuid: string | null,
  content: unknown,
  fields: { id?: string; [key: string]: unknown } = {},
): JsonRecord => {
  const { id = `msg_${uuid}`, ...rest } = fields;
  return { type: "assistant", uuid, parentUuid, message: { id, role: "assistant", content }, ...rest };
};
const shape = (records: readonly JsonRecord[]) => rebuildConversation(records).messages;

describe("[TRN-3] a call cut off by a crash is answered as interrupted", () => {
  const cut = [
    user("1", null, "Hi"),
    assistant("2", "1", [use("a")], { id: "m" }),
    assistant("3", "2", [use("b")], { id: "m" }),
  ];

  it("every call of the last answer without a result gets one, and it is reported which", () => {
    const { messages, unrecorded } = rebuildConversation([...cut, user("4", "3", [result("a")])]);
    expect(messages.at(-1)).toEqual({ role: "user", content: [result("a"), interruptedResult("b")] });
    expect(unrecorded).toEqual([interruptedResult("b")]);
    expect(interruptedResult("b")).toMatchObject({
      is_error: true,
      content: expect.stringContaining("not run again"),
    });
  });

  it("a call in the middle that was not answered gets an answer too, without being reported", () => {
    const { messages, unrecorded } = rebuildConversation([
      ...cut,
      user("4", "3", "Continue"),
      assistant("5", "4", [text("Yes")]),
    ]);
    expect(messages[2]).toEqual({
      role: "user",
      content: [interruptedResult("a"), interruptedResult("b"), text("Continue")],
    });
    expect(unrecorded).toEqual([]);
  });

  it("a live conversation is completed the same way", () => {
    const messages: Message[] = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: [{ type: "tool_use", id: "a", name: "Read", input: {} }] },
    ];
    expect(interruptedResults(messages)).toEqual([interruptedResult("a")]);
    expect(
      interruptedResults([...messages, { role: "user", content: interruptedResults(messages) }]),
    ).toEqual([]);
    expect(interruptedResults([])).toEqual([]);
  });
});

describe("[TRN-3] files of other versions and programs are understood", () => {
  it("the newest branch counts, others are dropped", () => {
    const lines = [
      user("1", null, "Hi"),
      assistant("2", "1", [text("Old")]),
      user("3", "2", "Old question"),
      assistant("4", "1", [text("New")]),
    ];
    expect(shape(lines)).toEqual([
      { role: "user", content: "Hi" },
      { role: "assistant", content: [text("New")] },
    ]);
  });

  it("results of calls that ran side by side are found beside the branch, and so is the rest of their answer", () => {
    const lines = [
      user("1", null, "Hi"),
      assistant("2", "1", [use("a")], { id: "m" }),
      assistant("3", "2", [use("b")], { id: "m" }),
      assistant("4", "3", [use("c")], { id: "m" }),
      user("5", "2", [result("a")]),
      user("6", "4", [result("c")]),
      user("7", "3", [result("b")]),
      assistant("8", "7", [text("Done")]),
    ];
    expect(shape(lines)).toEqual([
      { role: "user", content: "Hi" },
      { role: "assistant", content: [use("a"), use("b"), use("c")] },
      { role: "user", content: [result("a"), result("b"), result("c")] },
      { role: "assistant", content: [text("Done")] },
    ]);
  });

  it("an answer whose lines are between its results is still one answer", () => {
    const lines = [
      user("1", null, "Hi"),
      assistant("2", "1", [use("a")], { id: "m" }),
      user("3", "2", [result("a")]),
      assistant("4", "3", [use("b")], { id: "m" }),
      user("5", "4", [result("b")]),
    ];
    expect(shape(lines).slice(1)).toEqual([
      { role: "assistant", content: [use("a"), use("b")] },
      { role: "user", content: [result("a"), result("b")] },
    ]);
  });

  it("nothing before a compaction is loaded, and its summary is", () => {
    const lines = [
      user("1", null, "Old"),
      assistant("2", "1", [text("Old answer")]),
      { type: "system", subtype: "compact_boundary", uuid: "3", parentUuid: null, logicalParentUuid: "2" },
      user("4", "3", "Summary", { isCompactSummary: true, isVisibleInTranscriptOnly: true }),
      user("5", "4", "New"),
    ];
    expect(shape(lines)).toEqual([{ role: "user", content: [text("Summary"), text("New")] }]);
    expect(shape(lines.slice(0, 3))).toHaveLength(2);
  });

  it("lines that a compaction preserved follow its summary", () => {
    const kept = { anchorUuid: "6", uuids: ["3", "4"] };
    const before = [
      user("1", null, "Old"),
      assistant("2", "1", [text("Old answer")]),
      user("3", "2", "Kept"),
      assistant("4", "3", [text("Kept answer")]),
      {
        type: "system",
        subtype: "compact_boundary",
        uuid: "5",
        parentUuid: null,
        compactMetadata: { preservedMessages: kept },
      },
      user("6", "5", "Summary", { isCompactSummary: true }),
    ];
    for (const parent of ["6", "4"]) {
      expect(shape([...before, user("7", parent, "New")])).toEqual([
        { role: "user", content: [text("Summary"), text("Kept")] },
        { role: "assistant", content: [text("Kept answer")] },
        { role: "user", content: "New" },
      ]);
    }
  });

  it("what was sent to the model without being shown belongs to the conversation; what was only shown does not", () => {
    const lines = [
      user("1", null, "Reminder", { isMeta: true }),
      { type: "attachment", uuid: "2", parentUuid: "1", attachment: {} },
      user("3", "2", "Hi"),
      assistant("4", "3", [text("API Error")], { isApiErrorMessage: true }),
      user("5", "4", "Only shown", { isVisibleInTranscriptOnly: true }),
      { type: "file-history-snapshot", messageId: "5" },
      { type: "made-up-next-year", uuid: "6", parentUuid: "5" },
    ];
    expect(rebuildConversation(lines)).toMatchObject({
      messages: [{ role: "user", content: [text("Reminder"), text("Hi")] }],
      leaf: "6",
    });
  });

  it("lines of children are left out of the main conversation, and are a conversation of their own", () => {
    const lines = [
      user("1", null, "Main"),
      user("2", null, "Child", { isSidechain: true, agentId: "1a2b3c4d" }),
      assistant("3", "2", [text("Child answer")], { isSidechain: true, agentId: "1a2b3c4d" }),
    ];
    expect(shape(lines)).toEqual([{ role: "user", content: "Main" }]);
    expect(rebuildConversation(lines, { sidechain: true }).messages).toHaveLength(2);
  });

  it("a broken line in the middle does not cost the history before it", () => {
    const lines = [user("1", null, "Hi"), assistant("2", "1", [text("Yes")]), user("4", "3", "Lost parent")];
    expect(shape(lines)).toHaveLength(3);
  });

  it("a ring of parents ends", () => {
    expect(shape([user("1", "2", "a"), user("2", "1", "b")])).toHaveLength(1);
  });
});

describe("[TRN-3] what a provider would refuse is left out", () => {
  it.each<[string, readonly JsonRecord[], readonly unknown[]]>([
    [
      "a result of no call",
      [user("1", null, "Hi"), user("2", "1", [result("x")])],
      [{ role: "user", content: "Hi" }],
    ],
    [
      "an answer before any prompt",
      [assistant("1", null, [text("Yes")]), user("2", "1", "Hi")],
      [{ role: "user", content: "Hi" }],
    ],
    [
      "text without words",
      [user("1", null, "Hi"), assistant("2", "1", [text(" \n")])],
      [{ role: "user", content: "Hi" }],
    ],
    [
      "thinking at the end of an answer, or without its signature",
      [
        user("1", null, "Hi"),
        assistant("2", "1", [
          { type: "thinking", thinking: "Hm" },
          text("Yes"),
          { type: "thinking", thinking: "Hm", signature: "s" },
        ]),
      ],
      [
        { role: "user", content: "Hi" },
        { role: "assistant", content: [text("Yes")] },
      ],
    ],
    [
      "a provider's own call without its result",
      [
        user("1", null, "Hi"),
        assistant("2", "1", [
          text("Yes"),
          { type: "server_tool_use", id: "s", name: "web_search", input: {} },
        ]),
      ],
      [
        { role: "user", content: "Hi" },
        { role: "assistant", content: [text("Yes")] },
      ],
    ],
    [
      "a call that appears a second time",
      [
        user("1", null, "Hi"),
        assistant("2", "1", [use("a")]),
        user("3", "2", [result("a", "first")]),
        assistant("4", "3", [use("a"), text("Yes")]),
        user("5", "4", [result("a", "second")]),
      ],
      [
        { role: "user", content: "Hi" },
        { role: "assistant", content: [use("a")] },
        { role: "user", content: [result("a", "first")] },
        { role: "assistant", content: [text("Yes")] },
      ],
    ],
  ])("%s", (_, lines, expected) => {
    expect(shape(lines)).toEqual(expected);
  });

  it("a provider's own call and its result meet again when the answer was paused between them", () => {
    const search = { type: "server_tool_use", id: "s", name: "web_search", input: {} };
    const found = { type: "web_search_tool_result", tool_use_id: "s", content: [] };
    const lines = [
      user("1", null, "Hi"),
      assistant("2", "1", [search]),
      assistant("3", "2", [found, text("Yes")]),
    ];
    expect(shape(lines)[1]).toEqual({ role: "assistant", content: [search, found, text("Yes")] });
  });
});
