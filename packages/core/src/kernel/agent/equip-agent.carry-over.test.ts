import { describe, expect, it } from "vitest";
import { estimateTextTokens } from "../../conversation/estimate-request-tokens.ts";
import { foldTask, startedTask } from "../../protocol/agent-state.ts";
import { readCompactCommand } from "../conversation.ts";
import { carryOverContext } from "./equip-agent.ts";

const task = (id: string, background: boolean) =>
  startedTask({
    id,
    agentType: "Explore",
    description: `work of ${id}`,
    background,
    parentId: "main",
    at: 0,
  });

describe("what is stated again after a compaction", () => {
  it("agents that run in the background, and neither those in front nor those that have ended", () => {
    const totals = {
      usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
      turns: 0,
      toolUses: 0,
      durationMs: 0,
      modelMs: 0,
    };
    const ending = { status: "completed", reason: "end_turn", text: "", totals, denials: [] } as const;
    const ended = foldTask(task("a3", true), { type: "run-ended", ending }, 1);
    const [text, ...others] = carryOverContext({ tasks: [task("a1", true), task("a2", false), ended] });
    expect(text).toContain("a1 (Explore): work of a1");
    expect(text).not.toMatch(/a2|a3/);
    expect(others).toEqual([]);
  });

  it("nothing where nothing continues", () => {
    expect(carryOverContext({})).toEqual([]);
    expect(carryOverContext({ tasks: [task("a2", false)], todos: [], skills: [] })).toEqual([]);
  });

  it("[SKL-3] skills that were called, each with at most 5,000 tokens and all with at most 25,000, the newest first", () => {
    const skills = Array.from({ length: 9 }, (_, number) => ({
      name: `s${number}`,
      text: "word ".repeat(6_000),
    }));
    const [text = ""] = carryOverContext({ skills });
    expect(text.match(/The skill s\d/g)).toEqual(
      ["s4", "s5", "s6", "s7", "s8"].map((name) => `The skill ${name}`),
    );
    expect(estimateTextTokens(text)).toBeLessThan(25_200);
    const [short = ""] = carryOverContext({ skills: [{ name: "small", text: "Do it well." }] });
    expect(short).toContain("Do it well.");
  });
});

describe("the prompt that asks for a compaction", () => {
  it.each([
    ["/compact", undefined],
    ["  /compact  ", undefined],
    ["/compact keep the names", "keep the names"],
    ["/compact\nkeep\nlines", "keep\nlines"],
  ])("%j", (prompt, instructions) => {
    expect(readCompactCommand(prompt)).toEqual({ instructions });
    expect(readCompactCommand([{ type: "text", text: prompt }])).toEqual({ instructions });
  });

  it.each([
    "/compaction",
    "please /compact",
    "compact",
    "",
    "/ compact",
  ])("%j is another prompt", (prompt) => {
    expect(readCompactCommand(prompt)).toBeUndefined();
  });
});
