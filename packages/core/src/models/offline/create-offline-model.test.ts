import { describe, expect, it } from "vitest";
import { costOf } from "../../conversation/usage.ts";
import type { ModelEvent, ModelRequest } from "../model.ts";
import { createOfflineModel } from "./create-offline-model.ts";
import { offlineLabel } from "./offline-answer.ts";

const glob = { name: "Glob", description: "", inputSchema: { type: "object", properties: { pattern: {} } } };

function request(prompt: string, tools: ModelRequest["tools"] = []): ModelRequest {
  return { system: [], tools, messages: [{ role: "user", content: prompt }] };
}

async function drain(asked: ModelRequest, signal = new AbortController().signal): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of createOfflineModel().stream(asked, { signal })) events.push(event);
  return events;
}

describe("[MDL-4] the offline model as a model", () => {
  it("streams its answer in pieces that add up, and ends with one message", async () => {
    const events = await drain(request("what is here"));
    const deltas = events.flatMap((event) => (event.type === "text-delta" ? [event.text] : []));
    const end = events.at(-1);
    expect(deltas.length).toBeGreaterThan(1);
    expect(deltas.join("")).toContain(offlineLabel);
    expect(end).toMatchObject({
      type: "message-ended",
      stopReason: "end_turn",
      message: { content: [{ type: "text", text: deltas.join("") }] },
    });
    expect(events.filter(({ type }) => type === "message-ended")).toHaveLength(1);
  });

  it("calls tools like any model, with its input as deltas", async () => {
    const events = await drain(request("what is here", [glob]));
    expect(events.map(({ type }) => type)).toEqual([
      "message-started",
      "block-started",
      "text-delta",
      "block-ended",
      "block-started",
      "input-delta",
      "block-ended",
      "message-ended",
    ]);
    expect(events.at(-1)).toMatchObject({
      stopReason: "tool_use",
      message: {
        content: [{ type: "text" }, { type: "tool_use", name: "Glob", input: { pattern: "**/*" } }],
      },
    });
  });

  it("says the same to the same request, with ids that differ between conversations", async () => {
    const [one, again, other] = await Promise.all([
      drain(request("map a", [glob])),
      drain(request("map a", [glob])),
      drain(request("map b", [glob])),
    ]);
    expect(again).toEqual(one);
    const idOf = (events: readonly ModelEvent[]) =>
      events.flatMap((event) =>
        event.type === "block-ended" && event.block.type === "tool_use" ? [event.block.id] : [],
      );
    expect(idOf(one)).not.toEqual(idOf(other));
  });

  it("costs nothing and says so", async () => {
    const { facts } = createOfflineModel();
    const end = (await drain(request("hello"))).at(-1);
    expect(facts.provider).toBe("offline");
    if (end?.type !== "message-ended" || facts.price === undefined) throw new Error("no end, or no price");
    expect(costOf(end.usage, facts.price)).toBe(0);
  });

  it("answers the prompt, not the output of a command that was run before it", async () => {
    const aside = { type: "text", text: "I ran this command at the prompt:\n$ ls\nfind _logs" } as const;
    const prompt = { type: "text", text: "read notes.md" } as const;
    const textOfAnswer = async (messages: ModelRequest["messages"]) =>
      (await drain({ ...request(""), messages })).flatMap((event) =>
        event.type === "text-delta" ? [event.text] : [],
      );
    expect(await textOfAnswer([{ role: "user", content: [aside, prompt] }])).toEqual(
      await textOfAnswer([{ role: "user", content: [prompt] }]),
    );
  });

  it("stops when its signal does", async () => {
    await expect(drain(request("hello"), AbortSignal.abort(new Error("too late")))).rejects.toThrow(
      "too late",
    );
    const controller = new AbortController();
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { type } of createOfflineModel().stream(request("hello"), {
        signal: controller.signal,
      })) {
        seen.push(type);
        if (type === "text-delta") controller.abort(new Error("enough"));
      }
    })();
    await expect(reading).rejects.toThrow("enough");
    expect(seen).not.toContain("message-ended");
  });
});
