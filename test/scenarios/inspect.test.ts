import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Inspection } from "@retinue/core/inspection/inspection.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import { parseHTML } from "linkedom";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type CommandOptions,
  createPlace,
  type Finished,
  type InProcessOptions,
  type Place,
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
  input: { description: "look", prompt, subagent_type: "Explore", ...more },
});
const usage = (outputTokens: number) => ({
  inputTokens: outputTokens * 7,
  outputTokens,
  cacheReadTokens: outputTokens * 3,
  cacheWriteTokens: 11,
});

interface Stage extends Place {
  run(arguments_: readonly string[], options?: InProcessOptions): Promise<Finished>;
  /** The built command, in a process of its own. */
  start(arguments_: readonly string[], options?: CommandOptions): Promise<Finished>;
  inspect(...words: readonly string[]): Promise<Inspection>;
}

async function createStage(steps: readonly Step[]): Promise<Stage> {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const run: Stage["run"] = (arguments_, options = {}) =>
    runInProcess(place, arguments_, { ...options, environment: { ...environment, ...options.environment } });
  return {
    ...place,
    run,
    start: (arguments_, options = {}) => runCommand(place, arguments_, { ...options, environment }),
    async inspect(...words) {
      const { code, out, err } = await run(["inspect", ...words, "--json"]);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      return JSON.parse(out);
    },
  };
}

/** Asks again until the session has come so far. */
async function waitFor(stage: Stage, hasCome: (inspection: Inspection) => boolean): Promise<Inspection> {
  let last = {} as Inspection;
  await expect
    .poll(async () => {
      last = await stage.inspect();
      return hasCome(last) ? "come so far" : JSON.stringify(last.agents);
    })
    .toBe("come so far");
  return last;
}

const family = [
  main({ calls: [start("TASK-ONE"), start("TASK-TWO", { model: "haiku" })], usage: usage(101) }),
  child("TASK-ONE", { calls: [{ name: "Glob", input: { pattern: "*" } }], usage: usage(203) }),
  child("TASK-TWO", { failure: "overloaded", retryAfterMs: 1 }),
  child("TASK-TWO", { text: "Two.", usage: usage(57) }),
  child("TASK-ONE", { text: "One.", usage: usage(33) }),
  main({ calls: [{ name: "Bash", input: { command: "rm -rf build" } }], usage: usage(19) }),
  main({ text: "All done.", usage: usage(7) }),
];

describe("what a session did is reported by its files", () => {
  test("tokens, cost, turns and calls are to the last digit those of the result [LIM-4]", async () => {
    const stage = await createStage(family);
    const { out } = await stage.run(["-p", "Begin.", "--output-format", "json"]);
    const said = JSON.parse(out);
    const inspection = await stage.inspect();
    expect(inspection.totals.costUsd).toBe(said.total_cost_usd);
    expect(said.total_cost_usd).toBeGreaterThan(0);
    // The result counts each message after the prompt, as programs expect; the inspection counts answers of the model.
    expect(said.num_turns).toBe(4);
    const [top, ...children] = inspection.agents;
    expect(top).toMatchObject({
      id: "main",
      state: "completed",
      reason: "end_turn",
      prompt: "Begin.",
      result: "All done.",
      totals: {
        turns: 3,
        toolUses: 3,
        refusedCalls: 1,
        usage: {
          inputTokens: said.usage.input_tokens,
          outputTokens: said.usage.output_tokens,
          cacheReadTokens: said.usage.cache_read_input_tokens,
          cacheWriteTokens: said.usage.cache_creation_input_tokens,
        },
      },
    });
    expect(children.map(({ parentId, state, totals }) => [parentId, state, totals.toolUses])).toEqual([
      ["main", "completed", 1],
      ["main", "completed", 0],
    ]);
    const models = Object.fromEntries(
      inspection.byModel.map(({ model, costUsd: cost, usage: used }) => [
        model,
        { ...used, cost: Number(cost?.toFixed(9)) },
      ]),
    );
    const expected = Object.entries(said.modelUsage).map(([model, sum]) => {
      const reported = sum as Record<string, number>; // Each entry of a result is an object of numbers.
      return [
        model,
        {
          inputTokens: reported["inputTokens"],
          outputTokens: reported["outputTokens"],
          cacheReadTokens: reported["cacheReadInputTokens"],
          cacheWriteTokens: reported["cacheCreationInputTokens"],
          cost: Number(reported["costUSD"]?.toFixed(9)),
        },
      ];
    });
    expect(models).toEqual(Object.fromEntries(expected));
    expect(inspection.agents.every(({ totals, recorded }) => totals.costUsd === recorded?.costUsd)).toBe(
      true,
    );
    expect(inspection.notes).toEqual([]);
  });

  test("calls, refusals and retries have their place, in the terminal and on the page [CLI-3, TSK-4]", async () => {
    const stage = await createStage(family);
    await stage.run(["-p", "Begin."]);
    const { refusals, totals, agents, byTool } = await stage.inspect();
    expect(refusals).toMatchObject([
      {
        agentId: "main",
        tool: "Bash",
        about: "rm -rf build",
        reason: expect.stringContaining("not allowed"),
      },
    ]);
    expect(totals.retries).toBe(1);
    expect(byTool.find(({ tool }) => tool === "Agent")?.agentsCost).toBeGreaterThan(0);
    const started = agents[0]?.steps.flatMap((step) =>
      step.type === "call" && step.agentId !== undefined ? [step] : [],
    );
    expect(started?.map(({ agentId }) => agentId).sort()).toEqual(
      agents
        .slice(1)
        .map(({ id }) => id)
        .sort(),
    );
    expect(started?.every(({ durationMs }) => durationMs !== undefined)).toBe(true);

    const { out } = await stage.run(["inspect"], { environment: { COLUMNS: "80" } });
    for (const { id } of agents.slice(1)) expect(out).toContain(id);
    expect(out.split("\n").filter((line) => [...line].length > 80)).toEqual([]);
    const one = await stage.run(["inspect", agents[1]?.id.slice(0, 12) ?? ""]);
    expect(one.out).toContain(`STEPS OF ${agents[1]?.id}`);

    const page = await stage.run(["inspect", "--html", "page.html"]);
    expect(page).toMatchObject({ code: 0, out: "", err: "Written: page.html\n" });
    const { document } = parseHTML(readFileSync(join(stage.cwd, "page.html"), "utf8"));
    const data = JSON.parse(document.querySelector("#data")?.textContent ?? "");
    expect(data.session.agents).toHaveLength(3);
    expect(Object.keys(data.agents)).toEqual(agents.map(({ id }) => id));
    expect(JSON.stringify(data.agents)).toContain("TASK-ONE");
  });

  test("of a session whose process was killed, what was in flight is reported [CLI-3]", async () => {
    const stage = await createStage([
      main({ calls: [start("TASK-ONE"), start("TASK-TWO")] }),
      child("TASK-ONE", { calls: [{ name: "Grep", input: { pattern: "TODO" } }] }),
      child("TASK-ONE", { text: "Half of it", failure: "stall", after: 1 }),
      child("TASK-TWO", { text: "Also half", failure: "stall", after: 1 }),
    ]);
    const isStalled = ({ agents }: Inspection): boolean =>
      agents.length === 3 &&
      agents.slice(1).every(({ inFlight }) => inFlight[0]?.type === "model") &&
      agents.reduce((sum, { totals }) => sum + totals.toolUses, 0) === 3;
    let [watched, isKilled] = [false, false];
    await new Promise<void>((resolve, reject) => {
      const running = stage.start(["-p", "Begin.", "--output-format", "stream-json"], {
        watch(out, process_) {
          if (!out.includes("task_started") || watched) return;
          watched = true;
          waitFor(stage, isStalled)
            .then((live) => {
              expect(live.session.isLive).toBe(true);
              expect(live.agents.map(({ state }) => state)).toEqual(["running", "running", "running"]);
              isKilled = process_.kill("SIGKILL");
            })
            .catch(reject);
        },
      });
      running.then(({ out, err }) => {
        if (isKilled) resolve();
        else reject(new Error(`It ended by itself: ${out}${err}`));
      }, reject);
    });
    const { agents, session } = await stage.inspect();
    expect(session.isLive).toBe(false);
    expect(agents.map(({ state }) => state)).toEqual(["interrupted", "interrupted", "interrupted"]);
    expect(agents[0]?.inFlight).toMatchObject([
      { type: "call", tool: "Agent" },
      { type: "call", tool: "Agent" },
    ]);
    expect(agents.slice(1).map(({ inFlight }) => inFlight)).toMatchObject([
      [{ type: "model" }],
      [{ type: "model" }],
    ]);
    const { out } = await stage.run(["inspect"]);
    expect(out).toContain("IN FLIGHT\nmain: Agent look when it was cut off\n");
  });

  test("what is not there, or cannot be shown so, is said in one sentence [CLI-3]", async () => {
    const stage = await createStage([{ text: "Hello." }]);
    expect(await stage.run(["inspect"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("There are no sessions in this folder yet."),
    });
    await stage.run(["-p", "Say hello."]);
    expect(await stage.run(["inspect", "../../x"])).toMatchObject({
      code: 1,
      err: expect.stringContaining('There is no session or agent "../../x"'),
    });
    expect((await stage.inspect("say", "hello.")).agents).toHaveLength(1);
    expect(await stage.run(["inspect", "--follow", "--json"])).toMatchObject({ code: 2 });
    stage.write("file", "");
    expect(await stage.run(["inspect", "--html", "file/page.html"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("file/page.html"),
    });
  });
});
