import { defineAgent } from "@retinue/config/agents/define-agent.ts";
import { describe, expect, test } from "vitest";
import type { SpawnRequest } from "../planning/agent-request.ts";
import { specificationOf } from "../tools/json-schema-of.ts";
import type { ToolContext } from "../tools/tool.ts";
import { createAgentTool } from "./create-agent-tool.ts";
import type { SpawnOutcome } from "./spawn-outcome.ts";

const define = (name: string, fields: object = {}) =>
  defineAgent({ name, description: `Does ${name}.`, prompt: "Do.", ...fields });

function create(outcome: SpawnOutcome, more: { background?: boolean } = {}) {
  const requests: SpawnRequest[] = [];
  const tool = createAgentTool({
    agents: [
      define("reader", { tools: ["Read", "Grep"] }),
      define("maker"),
      define("careful", { disallowedTools: ["Bash"] }),
      define("heir", { forkContext: true }),
    ],
    background: more.background ?? true,
    spawn: async (request) => {
      requests.push(request);
      return outcome;
    },
  });
  // The tool uses nothing else of its surroundings.
  const context = { signal: new AbortController().signal, callId: "c1" } as ToolContext;
  const call = async (input: object) => {
    const checked = tool.input?.safeParse(input);
    if (checked?.success !== true) return { issues: checked?.error.issues ?? [] };
    return { outcome: await tool.call(checked.data, context) };
  };
  return { tool, requests, call };
}

const done: SpawnOutcome = { type: "ended", text: "Done.", isError: false, data: { status: "completed" } };
const least = { description: "look", prompt: "Look around." };

describe("[AGT-1] the input of the Agent tool", () => {
  test("is handed on whole, as the request of a model", async () => {
    const { call, requests } = create(done);
    await call({
      ...least,
      subagent_type: "reader",
      model: "haiku",
      resume: "a1",
      run_in_background: true,
      max_turns: 5,
      name: "ada",
      mode: "plan",
      isolation: "worktree",
      cwd: "packages/api",
      env: { CI: "1" },
      timeout: 60,
      effort: "high",
    });
    expect(requests).toEqual([
      {
        ...least,
        origin: "model",
        callId: "c1",
        agentType: "reader",
        model: "haiku",
        resume: "a1",
        background: true,
        maxTurns: 5,
        name: "ada",
        mode: "plan",
        isolation: "worktree",
        cwd: "packages/api",
        env: { CI: "1" },
        timeout: 60,
        effort: "high",
      },
    ]);
  });

  test("unknown keys are ignored", async () => {
    const { call, requests } = create(done);
    const input = JSON.parse(
      JSON.stringify(least).replace("{", '{"colour":"red","__proto__":{"mode":"plan"},'),
    );
    expect(await call(input)).toHaveProperty("outcome");
    expect(requests).toEqual([{ ...least, origin: "model", callId: "c1" }]);
  });

  test.each([
    ["no prompt", { description: "look" }, "prompt", /expected string/],
    ["an empty prompt", { ...least, prompt: "" }, "prompt", />=1/],
    ["a mode no one knows", { ...least, mode: "yolo" }, "mode", /expected one of .*acceptEdits.*plan/],
    ["no turns", { ...least, max_turns: 0 }, "max_turns", />0/],
    ["turns in words", { ...least, max_turns: "many" }, "max_turns", /expected number/],
    [
      "background as a word",
      { ...least, run_in_background: "later" },
      "run_in_background",
      /expected boolean/,
    ],
  ])("%s is answered with what is expected", async (_title, input, key, message) => {
    const { call, requests } = create(done);
    const { issues = [] } = (await call(input)) as { issues?: { path: PropertyKey[]; message: string }[] };
    expect(issues.map(({ path }) => path.join("."))).toEqual([key]);
    expect(issues[0]?.message).toMatch(message);
    expect(requests).toEqual([]);
  });

  test("turns written as a text of digits are understood", async () => {
    const { call, requests } = create(done);
    await call({ ...least, max_turns: "7" });
    expect(requests[0]?.maxTurns).toBe(7);
  });
});

describe("[AGT-2] the description of the Agent tool", () => {
  test("lists every agent with its tools, and marks those that see the conversation", () => {
    const { description } = create(done).tool;
    expect(description).toContain("- reader: Does reader. (Tools: Read, Grep)");
    expect(description).toContain("- maker: Does maker. (Tools: All tools)");
    expect(description).toContain("- careful: Does careful. (Tools: All tools except Bash)");
    expect(description).toMatch(/- heir: .*sees the conversation/);
  });

  test("[BGR-4] mentions the background only where it is enabled, and so does the schema", () => {
    const on = specificationOf(create(done).tool);
    const off = specificationOf(create(done, { background: false }).tool);
    expect(JSON.stringify(on)).toContain("run_in_background");
    expect(JSON.stringify(off)).not.toContain("background");
  });
});

describe("[AGT-3] the outcome of a call", () => {
  test.each<[string, SpawnOutcome, object]>([
    ["an end", done, { content: "Done.", data: { status: "completed" } }],
    [
      "a bad end",
      { ...done, isError: true },
      { content: "Done.", data: { status: "completed" }, isError: true },
    ],
    [
      "a start in the background",
      { type: "launched", text: "It runs.", data: { status: "async_launched" } },
      { content: "It runs.", data: { status: "async_launched" } },
    ],
    ["a refusal", { type: "refused", reason: "Too many." }, { content: "Too many.", isError: true }],
  ])("%s", async (_title, outcome, expected) => {
    expect(await create(outcome).call(least)).toEqual({ outcome: expected });
  });
});
