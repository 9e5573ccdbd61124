import type { ChildProcess } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type CommandOptions,
  createPlace,
  type Finished,
  type Place,
  readJsonLines,
  runCommand,
  runInProcess,
} from "./run-command.ts";

const main = (step: ScriptedStep): Step => ({ match: "You are an engineer at a terminal", ...step });
const child = (task: string, step: ScriptedStep): Step => ({
  match: (request: ModelRequest) => JSON.stringify(request.messages[0]).includes(task),
  ...step,
});
const start = (prompt: string, more: object = {}) => ({
  name: "Agent",
  input: { description: "look", prompt, ...more },
});

interface Stage extends Place {
  readonly provider: FakeProvider;
  run(arguments_: readonly string[]): Promise<Finished>;
  /** The built command, in a process of its own. */
  start(arguments_: readonly string[], options?: CommandOptions): Promise<Finished>;
}

async function createStage(steps: readonly Step[]): Promise<Stage> {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  return {
    ...place,
    provider,
    run: (arguments_) => runInProcess(place, arguments_, { environment }),
    start: (arguments_, options = {}) => runCommand(place, arguments_, { ...options, environment }),
  };
}

interface ListedTask {
  readonly id: string;
  readonly state: string;
}

async function listTasks(stage: Stage): Promise<readonly ListedTask[]> {
  const { out } = await stage.run(["tasks", "--json"]);
  return JSON.parse(out).tasks;
}

/** Asks again until the child's process has come so far. */
async function findRunning(stage: Stage): Promise<ListedTask> {
  let task: ListedTask | undefined;
  await expect
    .poll(async () => {
      task = (await listTasks(stage)).find(({ state }) => state === "running");
      return task?.state;
    })
    .toBe("running");
  return task as ListedTask;
}

describe("children of another process [CLI-3]", () => {
  test("are listed, read, stopped and continued, each from a process of its own [TSK-4]", async () => {
    const stage = await createStage([
      main({ calls: [start("TASK-ONE", { run_in_background: true })] }),
      child("TASK-ONE", { text: "Half of it", failure: "stall", after: 1 }),
      main({ text: "Meanwhile." }),
      main({ text: "It was stopped." }),
      child("TASK-ONE", { text: "Taken up again." }),
    ]);
    const running = stage.start(["-p", "Begin."]);
    const { id } = await findRunning(stage);
    const following = stage.start(["logs", id, "-f"]);
    expect((await stage.run(["tasks"])).out).toMatch(new RegExp(`${id} +general-purpose +running `));
    expect((await stage.run(["logs", id])).out).toContain("> TASK-ONE");
    expect(await stage.run(["resume", id, "Too early."])).toMatchObject({
      code: 1,
      err: expect.stringContaining("still running"),
    });

    expect(await stage.start(["stop", id])).toMatchObject({
      code: 0,
      out: expect.stringContaining(`${id} is stopped.`),
    });
    expect(await following).toMatchObject({ code: 0, out: expect.stringContaining("[stopped: ") });
    expect(await running).toMatchObject({ code: 0, out: "It was stopped.\n" });
    expect((await stage.run(["stop", id])).out).toContain("not running; it is stopped");

    expect(await stage.start(["resume", id.slice(0, 9), "Continue."])).toMatchObject({
      code: 0,
      out: "Taken up again.\n",
    });
    const last = JSON.stringify(stage.provider.requests.at(-1)?.request.messages);
    expect(last).toContain("TASK-ONE");
    expect(last).toContain("Continue.");
    expect(await listTasks(stage)).toMatchObject([{ id, state: "completed", description: "look" }]);
    stage.provider.finish();
  });

  test("one whose process was killed is interrupted, and can be continued", async () => {
    const stage = await createStage([
      main({ calls: [start("TASK-ONE", { run_in_background: false })] }),
      child("TASK-ONE", { text: "Half of it", failure: "stall", after: 1 }),
      child("TASK-ONE", { text: "Done after all." }),
    ]);
    const started = Promise.withResolvers<ChildProcess>();
    const killed = stage.start(["-p", "Begin.", "--output-format", "stream-json"], {
      watch(out, process_) {
        if (out.includes("task_started")) started.resolve(process_);
      },
    });
    const process_ = await started.promise;
    const { id } = await findRunning(stage);
    // The child has asked, so its first answer is taken; the process that continues it gets the next.
    await expect.poll(() => stage.provider.requests.length).toBe(2);
    process_.kill("SIGKILL");
    await killed;
    expect(await listTasks(stage)).toMatchObject([{ id, state: "interrupted" }]);
    expect(await stage.run(["resume", id, "Continue."])).toMatchObject({ code: 0, out: "Done after all.\n" });
  });

  test("what is no id is refused before a path is made of it [TRN-7]", async () => {
    const stage = await createStage([]);
    for (const words of [["logs"], ["stop"], ["resume", "--", "x"]]) {
      const [command = "", ...rest] = words;
      const { code, err } = await stage.run([command, "../../x", ...rest]);
      expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('"../../x" is not the id') });
    }
    expect(await stage.run(["logs", "a0123"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("There is no agent"),
    });
  });
});

test("a plan as JSON names the file of the definition and where each field came from [SPN-4, CLI-3]", async () => {
  const stage = await createStage([]);
  const lines = ["name: helper", "description: Helps.", "tools: Read", "maxTurns: 7", "background: true"];
  stage.write(".claude/agents/helper.md", `---\n${lines.join("\n")}\n---\nHelp.\n`);
  stage.write(".claude/settings.json", JSON.stringify({ limits: { agent: { tokens: 5 } } }));
  const { out } = await stage.run(["plan", "helper", "--model", "haiku", "--trust", "--json"]);
  const file = join(stage.cwd, ".claude/agents/helper.md");
  expect(JSON.parse(out).origins).toEqual({
    prompt: { from: "the definition", file },
    model: { from: "call" },
    tools: { from: "the definition", file, line: 4, column: 1 },
    permissionMode: { from: "the parent" },
    maxTurns: { from: "the definition", file, line: 5, column: 1 },
    background: { from: "the definition", file, line: 6, column: 1 },
    directory: { from: "the parent" },
    "limits.tokens": { from: join(stage.cwd, ".claude/settings.json") },
    "limits.silenceMs": { from: expect.any(String) },
  });
  const builtin = JSON.parse((await stage.run(["plan", "Explore", "--json"])).out);
  expect(builtin.definition).toEqual({ name: "Explore", scope: "builtin" });
  expect(builtin.origins.disallowedTools).toEqual({ from: "the definition" });
});

test("a plan shows every decision and what lost, asks no model and writes nothing [CLI-3]", async () => {
  const stage = await createStage([]);
  stage.write(
    ".claude/agents/helper.md",
    "---\nname: helper\ndescription: Helps.\ntools: Read, Grep\nmodel: opus\nmaxTurns: 7\n---\nHelp.\n",
  );
  const { code, out } = await stage.run(["plan", "helper", "--background", "--model", "haiku", "--json"]);
  expect({ code, ...JSON.parse(out) }).toMatchObject({
    code: 0,
    version: 1,
    plan: {
      model: { value: expect.stringContaining("haiku"), from: "call" },
      overrode: [{ field: "model", value: "opus", from: "definition" }],
      tools: [{ name: "Grep" }, { name: "Read" }],
      maxTurns: { value: 7, from: "the definition" },
      spawn: "none",
      task: { agentType: "helper", background: true },
    },
    definition: { name: "helper", scope: "project", file: join(stage.cwd, ".claude/agents/helper.md") },
  });
  const text = await stage.run(["plan", "helper", "--model", "haiku"]);
  expect(text.out).toMatch(/^helper\nmodel +\S*haiku\S* \(call\)\n/);
  expect(text.out).toMatch(/did not count +model opus \(definition\)/);
  expect(await stage.run(["plan", "helpr"])).toMatchObject({
    code: 1,
    err: expect.stringContaining("Did you mean helper?"),
  });
  expect(readdirSync(stage.home)).toEqual([]);
  expect(stage.provider.requests).toEqual([]);
});

describe("what print mode shows of children [CLI-1]", () => {
  const steps = [
    main({
      calls: [start("TASK-ONE", { subagent_type: "Explore", run_in_background: false })],
      usage: { outputTokens: 10 },
    }),
    child("TASK-ONE", {
      text: "Looking.",
      calls: [{ name: "Glob", input: { pattern: "*" } }],
      usage: { outputTokens: 100 },
    }),
    child("TASK-ONE", { text: "Nothing there.", usage: { outputTokens: 100 } }),
    main({ text: "I see.", usage: { outputTokens: 5 } }),
  ];
  const kindOf = ({ type, subtype, parent_tool_use_id: parent }: Record<string, unknown>) =>
    [type, subtype, typeof parent === "string" ? "of the child" : undefined].filter(Boolean).join(" ");

  test("the stream shows their start, their calls and their end, and their cost is in the result [LIM-4]", async () => {
    const stage = await createStage(steps);
    const { out } = await stage.run(["-p", "Begin.", "--output-format", "stream-json"]);
    const messages = readJsonLines(out);
    expect(messages.map(kindOf)).toEqual([
      "system init",
      "assistant",
      "system task_started",
      "user of the child",
      "system task_progress",
      "assistant of the child",
      "user of the child",
      "system task_updated",
      "system task_notification",
      "user",
      "assistant",
      "result success",
    ]);
    const call = stage.provider.requests[3]?.request.messages[1]?.content[0];
    expect(messages[2]).toMatchObject({
      subagent_type: "Explore",
      description: "look",
      tool_use_id: (call as { id: string }).id,
    });
    expect(messages[8]).toMatchObject({ status: "completed", usage: { tool_uses: 1 } });
    expect(out).not.toContain("Looking.");
    const { usage, modelUsage } = messages[11] as Record<string, Record<string, { outputTokens: number }>>;
    expect(usage).toMatchObject({ output_tokens: 15 });
    const sums = Object.values(modelUsage ?? {}).map(({ outputTokens }) => outputTokens);
    expect(sums.reduce((sum, one) => sum + one, 0)).toBe(215);
  });

  test("with --forward-subagent-text it shows what they say, too", async () => {
    const stage = await createStage(steps);
    const flags = ["--output-format", "stream-json", "--forward-subagent-text"];
    const { out } = await stage.run(["-p", "Begin.", ...flags]);
    const said = readJsonLines(out).filter(({ agent_id: id }) => id !== undefined);
    expect(JSON.stringify(said)).toContain("Looking.");
  });
});
