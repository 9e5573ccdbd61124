import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, it } from "vitest";
import { createApprovalQueue } from "./create-approval-queue.ts";
import { promptFromUiMessages } from "./prompt-from-ui-messages.ts";

interface Line {
  readonly event: string | undefined;
  readonly data: Record<string, unknown> | "[DONE]";
}

async function* readLines(response: Response): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    rest += decoder.decode(chunk, { stream: true });
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = /^event: (.*)$/m.exec(block)?.[1];
      const data = /^data: (.*)$/m.exec(block)?.[1] ?? "";
      yield { event, data: data === "[DONE]" ? data : JSON.parse(data) };
    }
  }
}

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const value of values) all.push(value);
  return all;
}

const look = { text: "I look.", calls: [{ name: "Glob", input: { pattern: "*" }, id: "c1" }] };

describe("a run as a response [SDK-1]", () => {
  it("sends each event of the run and at last its result", async () => {
    await using sample = await createSampleRuntime([look, "Seen."]);
    const run = sample.runtime.run("Go.");
    const response = run.toResponse({ headers: { "x-own": "1" } });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    expect(response.headers.get("x-own")).toBe("1");
    const lines = await collect(readLines(response));
    expect(lines.at(-1)).toMatchObject({ event: "result", data: { status: "completed", text: "Seen." } });
    expect(lines.map(({ event }) => event)).toEqual(
      expect.arrayContaining(["turn-started", "model-streamed", "call-finished", "run-ended"]),
    );
    expect(lines.every(({ event, data }) => event === "result" || Object(data)["agentId"] === "main")).toBe(
      true,
    );
    const whole = await collect(readLines(run.toResponse({ partial: false })));
    expect(whole.map(({ event }) => event)).not.toContain("model-streamed");
  });

  it("speaks the UI message stream of the AI SDK", async () => {
    await using sample = await createSampleRuntime([look, "Seen."]);
    const response = sample.runtime.run("Go.").toResponse({ format: "ui-messages" });
    expect(response.headers.get("x-vercel-ai-ui-message-stream")).toBe("v1");
    const lines = await collect(readLines(response));
    expect(lines.at(-1)?.data).toBe("[DONE]");
    const types = lines
      .map(({ data }) => Object(data)["type"])
      .filter((type, index, all) => type !== all[index - 1]);
    expect(types).toEqual([
      "start",
      "start-step",
      "text-start",
      "text-delta",
      "text-end",
      "tool-input-available",
      "tool-output-available",
      "finish-step",
      "start-step",
      "text-start",
      "text-delta",
      "text-end",
      "finish-step",
      "finish",
      undefined,
    ]);
  });

  it("shows questions to a page and takes the answer, once", async () => {
    await using sample = await createSampleRuntime([
      { calls: [{ name: "Bash", input: { command: "touch made" } }] },
      "Made.",
    ]);
    const approvals = createApprovalQueue();
    const run = sample.runtime.run("Go.", { approver: approvals });
    const seen: unknown[] = [];
    for await (const { data } of readLines(run.toResponse({ format: "ui-messages", approvals }))) {
      const { type, data: question } = Object(data);
      if (type !== "data-approval") continue;
      seen.push(question.state);
      if (question.state !== "waiting") continue;
      expect(question).toMatchObject({ sessionId: run.sessionId, agentId: "main", tool: "Bash" });
      expect(() => approvals.answer(question.id, { type: "yes" } as never)).toThrow(/An answer must be/);
      approvals.answer(question.id, { type: "allow", for: "call" });
      expect(() => approvals.answer(question.id, { type: "deny" })).toThrow(/is waiting for an answer/);
    }
    expect(seen).toEqual(["waiting", "allowed"]);
    expect(await run.result).toMatchObject({ text: "Made.", denials: [] });
    expect(approvals.pending()).toEqual([]);
  });

  it("notifies a page that a run failed without what is inside the error", async () => {
    await using sample = await createSampleRuntime(["Never."]);
    const lines = await collect(readLines(sample.runtime.run("Go.", { agent: "nobody" }).toResponse()));
    expect(lines.at(-1)).toMatchObject({ event: "error", data: { code: "unknown-agent" } });
  });

  it("continues when its reader leaves", async () => {
    await using sample = await createSampleRuntime([look, "Seen."]);
    const run = sample.runtime.run("Go.");
    for await (const _line of readLines(run.toResponse())) break;
    expect(await run.text).toBe("Seen.");
  });

  it("refuses an option that is unknown", async () => {
    await using sample = await createSampleRuntime(["Seen."]);
    const run = sample.runtime.run("Go.");
    expect(() => run.toResponse({ fromat: "events" } as never)).toThrow(/Did you mean "format"/);
    await run.result;
  });
});

describe("questions for people elsewhere [PRM-12]", () => {
  const request = (sessionId: string) => ({
    sessionId,
    agentId: "main",
    agentPath: [{ id: "main", name: "main" }],
    callId: "c1",
    tool: "Bash",
    input: {},
    reason: "no rule",
    suggestedRules: [],
  });
  const { signal } = new AbortController();

  it("are answered by their own session alone, where the answer says whose it is", async () => {
    const queue = createApprovalQueue();
    const answered = queue.approve(request("ada"), { signal });
    const [question] = queue.pending("ada");
    expect(queue.pending("bob")).toEqual([]);
    const id = question?.id ?? "";
    const allow = { type: "allow", for: "call" } as const;
    expect(() => queue.answer(id, allow, { sessionId: "bob" })).toThrow(/No question with the id/);
    queue.answer(id, allow, { sessionId: "ada" });
    expect(await answered).toEqual(allow);
  });

  it("reach all in the same order, also where one answers immediately or throws", async () => {
    const queue = createApprovalQueue();
    const received: string[] = [];
    queue.onChange((change) => {
      if (change.type === "asked") queue.answer(change.approval.id, { type: "deny" });
    });
    queue.onChange(({ type }) => void received.push(type));
    expect(await queue.approve(request("ada"), { signal })).toEqual({ type: "deny" });
    expect(received).toEqual(["asked", "settled"]);
    const end = queue.onChange(() => {
      throw new Error("broken");
    });
    expect(await queue.approve(request("ada"), { signal })).toEqual({ type: "deny" });
    end();
    expect(await queue.approve(request("ada"), { signal })).toEqual({ type: "deny" });
    expect(received).toHaveLength(6);
  });
});

describe("the prompt in messages of useChat [SDK-1]", () => {
  const user = (...parts: object[]) => [
    { role: "assistant", parts: [] },
    { role: "user", parts },
  ];
  const file = (mediaType: string, data: string) => ({
    type: "file",
    mediaType,
    url: `data:${mediaType};base64,${Buffer.from(data).toString("base64")}`,
  });

  it("is the text and the files of the last", () => {
    expect(promptFromUiMessages(user({ type: "text", text: "Hi." }))).toBe("Hi.");
    expect(
      promptFromUiMessages(
        user(
          { type: "step-start" },
          { type: "text", text: "See." },
          file("image/png", "x"),
          file("application/pdf", "y"),
          file("text/plain", "z"),
        ),
      ),
    ).toEqual([
      { type: "text", text: "See." },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "eA==" } },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: "eQ==" } },
      { type: "text", text: "z" },
    ]);
  });

  it.each([
    ["nothing", undefined],
    ["no list", { role: "user" }],
    ["an answer that the page made up", [{ role: "assistant", parts: [{ type: "text", text: "I may." }] }]],
    ["no text", user({ type: "text", text: " " })],
    ["an address to fetch", user({ type: "file", mediaType: "image/png", url: "http://10.0.0.1/" })],
    ["a file of another kind", user(file("application/zip", "x"))],
  ])("%s is refused", (_what, messages) => {
    expect(() => promptFromUiMessages(messages)).toThrow(/promptFromUiMessages|cannot be part of a prompt/);
  });
});
