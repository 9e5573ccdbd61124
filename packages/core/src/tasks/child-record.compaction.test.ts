import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { barePorts } from "@retinue/testing/bare-ports.ts";
import type { Step, StepAnswer } from "@retinue/testing/script.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import type { Message, UserMessage } from "../conversation/message.ts";
import { appendUserMessage, rebuildConversation } from "../journal/rebuild-conversation.ts";
import { createTranscriptWriter, type TranscriptWriter } from "../journal/transcript-writer.ts";
import type { LoopPorts } from "../loop/loop-ports.ts";
import { runAgentLoop } from "../loop/run-agent-loop.ts";
import type { ModelRequest } from "../models/model.ts";
import { defineTool, type Tool } from "../tools/tool.ts";

/** What an agent does in one turn of a made-up run. */
interface Move {
  readonly calls: readonly number[];
  readonly mail: boolean;
  readonly thinks: boolean;
  readonly pauses: boolean;
}

const moves = fc.array(
  fc.record({
    calls: fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1, maxLength: 3 }),
    mail: fc.boolean(),
    thinks: fc.boolean(),
    pauses: fc.boolean(),
  }),
  { minLength: 1, maxLength: 14 },
);

/** Several prompts; `resumed` begins a prompt in a new process, from the transcript alone. */
const runs = fc.array(fc.record({ moves, resumed: fc.boolean(), summaryFails: fc.boolean() }), {
  minLength: 1,
  maxLength: 4,
});

const read: Tool = defineTool<{ letters: number }>({
  name: "Read",
  description: "Reads.",
  effect: "read",
  input: z.object({ letters: z.number() }),
  call: async ({ letters }) => ({ content: "x".repeat(letters) }),
});

let madeCalls = 0;

function newCallId(): string {
  madeCalls += 1;
  return `call_${madeCalls}`;
}

function answerOf({ calls, thinks }: Move): StepAnswer {
  return {
    text: "Reading.",
    ...(thinks ? { thinking: "Hm." } : {}),
    calls: calls.map((letters) => ({ name: "Read", input: { letters }, id: newCallId() })),
  };
}

function stepsOf(list: readonly Move[], summaryFails: boolean): readonly Step[] {
  const isSummary = ({ messages }: ModelRequest): boolean =>
    JSON.stringify(messages.at(-1)).includes("summary that you write now");
  return [
    { match: isSummary, times: "any", ...(summaryFails ? { failure: "server-error" } : { text: "So far." }) },
    ...list.flatMap((move): Step[] => [
      ...(move.pauses ? [{ text: "Wait.", stopReason: "pause_turn" } as const] : []),
      answerOf(move),
    ]),
    "Done.",
  ];
}

function portsOf(list: readonly Move[], summaryFails: boolean): LoopPorts {
  let turn = 0;
  const model = createScriptedModel(stepsOf(list, summaryFails), {
    facts: { contextWindow: 3_000, maxOutputTokens: 500 },
  });
  return {
    ...barePorts({ model, tools: [read] }),
    takeMessages() {
      turn += 1;
      return list[turn % list.length]?.mail === true && turn <= list.length
        ? [{ role: "user", content: `Mail ${turn}.` }]
        : [];
    },
    compaction: { thresholdTokens: 2_850 },
  };
}

/** As a provider reads it: neighbours of the same role are one message. */
function joined(messages: readonly Message[]): readonly Message[] {
  let done: readonly Message[] = [];
  for (const message of messages) {
    const last = done.at(-1);
    if (message.role === "user") done = appendUserMessage(done, asBlocks(message));
    else if (last?.role !== "assistant") done = [...done, message];
    else done = [...done.slice(0, -1), { role: "assistant", content: [...last.content, ...message.content] }];
  }
  return done;
}

function asBlocks({ content }: UserMessage): UserMessage {
  return { role: "user", content: typeof content === "string" ? [{ type: "text", text: content }] : content };
}

describe("a conversation with compactions, made again from its transcript", () => {
  it("[CMP-2, TRN-3] is what the model saw, at every moment, over any number of runs and restarts", async () => {
    let compactions = 0;
    await fc.assert(
      fc.asyncProperty(runs, async (list) => {
        const records: JsonRecord[] = [];
        const file = {
          append: (lines: readonly string[]) => records.push(...lines.map((l) => JSON.parse(l))),
        };
        let count = 0;
        const open = (from?: ReturnType<typeof rebuildConversation>): TranscriptWriter =>
          createTranscriptWriter({
            log: file,
            ids: {
              uuid: () => {
                count += 1;
                return `u${count}`;
              },
            },
            now: () => 0,
            facts: { sessionId: "s", cwd: "/", version: "1", entrypoint: "cli" },
            leaf: from?.leaf,
            sources: from?.sources,
          });
        let writer = open();
        let messages: Message[] = [];
        for (const [number, { moves: plan, resumed, summaryFails }] of list.entries()) {
          if (resumed) {
            const again = rebuildConversation(records);
            messages = [...again.messages];
            writer = open(again);
          }
          const prompt: UserMessage = { role: "user", content: `Prompt ${number}.` };
          const input = { system: ["Work."], history: messages, prompt, maxTurns: 100 };
          for await (const event of runAgentLoop(
            input,
            portsOf(plan, summaryFails),
            new AbortController().signal,
          )) {
            writer.record(event);
            if (event.type === "user-added" || event.type === "assistant-answered")
              messages.push(event.message);
            if (event.type === "context-compacted") {
              compactions += 1;
              messages.splice(0, messages.length - event.kept, event.summary);
            }
            if (messages.at(-1)?.role === "user")
              expect(joined(rebuildConversation(records).messages)).toEqual(joined(messages));
            if (event.type === "run-ended") expect(event.ending.reason).toMatch(/end_turn|context_full/);
          }
        }
      }),
      { numRuns: 25 },
    );
    expect(compactions).toBeGreaterThan(20);
  });

  it("[TRN-2] a file that ends inside the summary's line is the conversation before the compaction", () => {
    const records: JsonRecord[] = [
      { type: "user", uuid: "1", parentUuid: null, message: { role: "user", content: "Task" } },
      {
        type: "assistant",
        uuid: "2",
        parentUuid: "1",
        message: { id: "m", role: "assistant", content: [{ type: "text", text: "Yes." }] },
      },
      {
        type: "system",
        subtype: "compact_boundary",
        uuid: "3",
        parentUuid: null,
        logicalParentUuid: "2",
        compactMetadata: {
          trigger: "auto",
          preTokens: 9,
          preservedMessages: { anchorUuid: "4", uuids: ["2"] },
        },
      },
    ];
    expect(rebuildConversation(records)).toMatchObject({
      messages: [{ role: "user", content: "Task" }, { role: "assistant" }],
      leaf: "2",
    });
  });
});
