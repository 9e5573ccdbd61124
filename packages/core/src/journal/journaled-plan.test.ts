import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { parseLines } from "@retinue/base/storage/read-lines.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Repeats } from "../conversation/interrupted-agent.ts";
import type { AssistantMessage, ToolResultBlock } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import { forkLines } from "./fork-session.ts";
import { journalPlan, readEarlierPlans } from "./journaled-plan.ts";
import { interruptedResult, rebuildConversation } from "./rebuild-conversation.ts";
import { createTranscriptWriter } from "./transcript-writer.ts";

function createTranscript({ agentId }: { agentId?: string } = {}) {
  const writes: string[][] = [];
  let count = 0;
  const uuid = () => {
    count += 1;
    return `u${count}`;
  };
  const writer = createTranscriptWriter({
    log: {
      append: (lines) => {
        writes.push([...lines]);
        return lines.length;
      },
    },
    ids: { uuid },
    now: () => 0,
    facts: {
      sessionId: "s",
      cwd: "/w",
      version: "1",
      entrypoint: "cli",
      agentId,
    },
  });
  const records = () => parseLines(Buffer.from(writes.flat().join("\n"))).values;
  return { writer, writes, records };
}

const use = (id: string, name = "Bash") => ({ type: "tool_use", id, name, input: { command: id } }) as const;
const prompt: RunEvent = { type: "user-added", message: { role: "user", content: "Hi" }, origin: "prompt" };
const answer = (content: AssistantMessage["content"], kinds: Record<string, Repeats>): RunEvent => ({
  type: "assistant-answered",
  id: "m",
  model: "m",
  message: { role: "assistant", content },
  stopReason: "tool_use",
  usage: noUsage,
  intents: Object.entries(kinds).map(([callId, repeats]) => ({ callId, tool: "Bash", repeats })),
});
const finished = (id: string, content: ToolResultBlock["content"], isError = false): RunEvent => ({
  type: "call-finished",
  call: use(id),
  isError,
  content,
  durationMs: 1,
});

describe("[TRN-2] what calls would do when repeated is on disk before they run", () => {
  it("in the same write as the answer, outside the tree of the conversation", () => {
    const { writer, writes } = createTranscript({ agentId: "a1" });
    writer.record(answer([use("x")], { x: "unsafe" }));
    expect(writes).toHaveLength(1);
    expect(writes[0]?.map((line) => JSON.parse(line))).toMatchObject([
      { type: "assistant", uuid: "u1" },
      { type: "retinue-intents", agentId: "a1", calls: [{ id: "x", name: "Bash", repeats: "unsafe" }] },
    ]);
    expect(JSON.parse(writes[0]?.[1] ?? "")).not.toHaveProperty("uuid");
    expect(writer.leaf).toBe("u1");
  });

  it("an answer without calls writes nothing beside itself", () => {
    const { writer, records } = createTranscript();
    writer.record(answer([{ type: "text", text: "Yes" }], {}));
    expect(records().map(({ type }) => type)).toEqual(["assistant"]);
  });
});

describe("[TRN-4] a call that had finished is not lost with those beside it", () => {
  it("its result is in a line of its own while others are open; the last one needs none", () => {
    const { writer, records } = createTranscript();
    writer.record(answer([use("x"), use("y")], { x: "unsafe", y: "unsafe" }));
    writer.record(finished("x", "made it"));
    writer.record(finished("y", "too"));
    expect(records().filter(({ type }) => type === "retinue-outcome")).toMatchObject([
      { id: "x", isError: false, content: "made it" },
    ]);
  });

  it("the rebuilt conversation has it, and shows only of the others that they were interrupted", () => {
    const { writer, records } = createTranscript();
    writer.record(prompt);
    writer.record(answer([use("x"), use("y"), use("z")], { x: "unsafe", y: "unsafe", z: "pure" }));
    writer.record(finished("y", [{ type: "text", text: "no" }], true));
    const { messages, unrecorded, inFlight } = rebuildConversation(records());
    const results = [
      interruptedResult("x"),
      { type: "tool_result", tool_use_id: "y", content: [{ type: "text", text: "no" }], is_error: true },
      interruptedResult("z", "pure"),
    ];
    expect(messages.at(-1)).toEqual({ role: "user", content: results });
    expect(unrecorded).toEqual(results);
    expect(inFlight).toEqual([
      { call: use("x"), repeats: "unsafe" },
      { call: use("z"), repeats: "pure" },
    ]);
  });

  it("a line of the conversation goes before it", () => {
    const { writer, records } = createTranscript();
    writer.record(prompt);
    writer.record(answer([use("x"), use("y")], { x: "unsafe", y: "unsafe" }));
    writer.record(finished("x", "first"));
    const result: ToolResultBlock = { type: "tool_result", tool_use_id: "x", content: "with a note" };
    writer.record({
      type: "user-added",
      message: { role: "user", content: [result] },
      origin: "tool-results",
    });
    expect(JSON.stringify(rebuildConversation(records()).messages)).toContain("with a note");
  });

  it("what is known from elsewhere answers a call too", () => {
    const { writer, records } = createTranscript();
    writer.record(prompt);
    writer.record(answer([use("x", "Agent")], { x: "unsafe" }));
    const known: ToolResultBlock = { type: "tool_result", tool_use_id: "x", content: "The child ended." };
    const rebuilt = rebuildConversation(records(), { known: new Map([["x", known]]) });
    expect(rebuilt.unrecorded).toEqual([known]);
    expect(rebuilt.inFlight).toEqual([]);
  });

  it("a copy of the session keeps it", () => {
    const { writer, records } = createTranscript();
    writer.record(prompt);
    writer.record(answer([use("x"), use("y")], { x: "unsafe", y: "pure" }));
    writer.record(finished("x", "made it"));
    const copy = forkLines(records(), { from: "s", to: "t", ids: { uuid: () => crypto.randomUUID() } });
    const read = parseLines(Buffer.from(copy.map((line) => JSON.stringify(line)).join("\n"))).values;
    expect(rebuildConversation(read).unrecorded).toMatchObject([
      { content: "made it" },
      interruptedResult("y", "pure"),
    ]);
  });
});

it.each([
  ["pure", /only reads; call it again/],
  ["idempotent", /repeating it does no harm/],
  ["unsafe", /not run again/],
] as const)("[TRN-3] an interrupted call that is %s says what to do", (repeats, words) => {
  expect(interruptedResult("x", repeats)).toMatchObject({
    is_error: true,
    content: expect.stringMatching(words),
  });
});

describe("[TRN-4] a run's plan is written down", () => {
  const plan: AgentPlan = {
    sessionId: "s",
    agent: { id: "a1", name: "helper" },
    model: { value: "m", from: "the parent" },
    chosenModel: { id: "m" },
    sessionDirectory: "/p",
    overrode: [],
    tools: [{ name: "Read" }, { name: "Bash", allowOnly: ["git *"], deny: ["git push"] }],
    spawn: "none",
    policy: { mode: "plan", allow: [], ask: [], deny: [], workingDirectories: ["/p"], home: "/h" },
    modeFrom: "the call or the definition",
    system: ["A long prompt."],
    maxTurns: { value: 7, from: "the call" },
    directory: "/p",
    notes: [],
  };
  const task = {
    agentType: "helper",
    description: "look",
    prompt: "Look.",
    background: true,
    parentId: "main",
    callId: "t1",
    resumed: false,
    isolation: "worktree" as const,
    forksContext: false,
  };

  it("a child's immediately, without the texts of its prompt, and it can be read again", () => {
    const { writer, records } = createTranscript({ agentId: "a1" });
    writer.plan(journalPlan({ ...plan, chosenModel: { id: "m" }, overrode: [], task }), "now");
    expect(JSON.stringify(records())).not.toContain("A long prompt.");
    expect(records()).toMatchObject([
      {
        type: "retinue-plan",
        plan: { system: [{ length: 14, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }] },
      },
    ]);
    expect(readEarlierPlans(records())).toEqual([
      {
        agentType: "helper",
        description: "look",
        model: { id: "m" },
        prompt: "Look.",
        callId: "t1",
        background: true,
        isolation: "worktree",
        mode: "plan",
        tools: plan.tools,
        maxTurns: 7,
      },
    ]);
  });

  it("the main agent's behind its first lines, so that a session that never got to them can begin again", () => {
    const { writer, writes } = createTranscript();
    writer.plan(journalPlan(plan), "with-next");
    expect(writes).toEqual([]);
    writer.record(prompt);
    writer.record(prompt);
    expect(writes.map((lines) => lines.map((line) => JSON.parse(line).type))).toEqual([
      ["user", "retinue-plan"],
      ["user"],
    ]);
  });

  it("a mode that was the parent's and turns that were the definition's are not kept", () => {
    const { writer, records } = createTranscript();
    writer.plan(
      journalPlan({ ...plan, modeFrom: "the parent", maxTurns: { value: 7, from: "the definition" } }),
      "now",
    );
    expect(readEarlierPlans(records())).toEqual([
      { background: false, tools: plan.tools, model: plan.chosenModel },
    ]);
  });
});

it("any lines of ours, however broken, can be read", () => {
  const type = fc.constantFrom("retinue-intents", "retinue-outcome", "retinue-plan", "retinue-told");
  const line = fc.tuple(
    type,
    fc.dictionary(fc.constantFrom("calls", "id", "content", "plan", "isError", "__proto__"), fc.jsonValue()),
  );
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      const records: JsonRecord[] = lines.map(([kind, fields]) => ({ ...fields, type: kind }));
      rebuildConversation(records);
      readEarlierPlans(records);
    }),
  );
});
