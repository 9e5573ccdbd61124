import { existsSync } from "node:fs";
import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { cellsOf, readEvalFile } from "@retinue/hosts/commands/eval/read-eval-file.ts";
import { runEval } from "@retinue/hosts/commands/eval/run-eval.ts";
import { type EvalResult, renderEvalPage, summarize } from "@retinue/hosts/shared/eval-results.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createWorkspace, type Workspace } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { call } from "../replay/scenarios.ts";
import { createPlace, runCommand, runInProcess } from "../scenarios/run-command.ts";

const price = { input: 10, output: 0, cacheRead: 0, cacheWrite: 0 };

describe("a table of tasks is run and scored", () => {
  test("by a command with a score, by a schema and by a judge, each with its reason", async () => {
    await using workspace = await createWorkspace();
    const text = `
tasks:
  - { name: command, prompt: one, check: 'grep -q good && echo 0.5' }
  - { name: fails, prompt: two, check: 'echo "no good"; exit 3' }
  - { name: schema, prompt: three, schema: { type: object, properties: { n: { type: number } }, required: [n] } }
  - { name: judge, prompt: four, judge: { question: 'Is it polite?', pass: 0.7 } }
`;
    const { results } = await evaluate(workspace, text, [
      { match: "one", text: "a good answer" },
      { match: "two", text: "x" },
      { match: "three", ...call("StructuredOutput", { n: 1 }) },
      { match: "Is it polite?", ...call("StructuredOutput", { score: 0.6, reason: "It is rude." }) },
      { match: "four", text: "rude words" },
    ]);
    expect(results.map(({ task, passed, score }) => [task, passed, score])).toEqual([
      ["command", true, 0.5],
      ["fails", false, 0],
      ["schema", true, 1],
      ["judge", false, 0.6],
    ]);
    expect(results[1]?.reason).toBe("The check ended with 3: no good");
    expect(results[3]?.reason).toBe("It is rude.");
  });

  test("every task with every agent and model, several times, each in a copy of the workspace", async () => {
    await using workspace = await createWorkspace();
    await workspace.write("data/a.txt", "old");
    await workspace.write(
      "data/.claude/agents/helper.md",
      "---\nname: helper\ndescription: Helps.\n---\nYou are helper.",
    );
    const text = `
tasks: [{ name: write, prompt: write it, check: 'test "$(cat a.txt)" = new' }]
definitions: [main, helper]
repetitions: 2
workspace: ${workspace.path("data")}
permissionMode: bypassPermissions
`;
    const steps: Step[] = Array.from({ length: 4 }, () => [
      call("Bash", { command: "echo new > a.txt" }),
      "done",
    ]).flat();
    const { results } = await evaluate(workspace, text, steps);
    expect(summarize(results)).toMatchObject([
      { definition: "main", runs: 2, passed: 2 },
      { definition: "helper", runs: 2, passed: 2 },
    ]);
    expect(await readFile(workspace.path("data/a.txt"), "utf8")).toBe("old");
  });

  test("a stopped one continues where it was, also after a torn line, and a changed task is run again", async () => {
    await using workspace = await createWorkspace();
    const text = "tasks: [{ name: a, prompt: a, check: 'true' }, { name: b, prompt: b, check: 'true' }]";
    const stop = new AbortController();
    const first = await evaluate(workspace, text, ["a", "b"], {
      signal: stop.signal,
      onResult: () => stop.abort(),
    });
    expect(first.results.map(({ task }) => task)).toEqual(["a"]);
    await appendFile(join(workspace.root, "results.jsonl"), '{"key":"torn');
    const second = await evaluate(workspace, text, ["b"]);
    expect(second.results.map(({ task }) => task)).toEqual(["a", "b"]);
    const complete = await evaluate(workspace, text, []);
    expect(complete.results.map(({ passed }) => passed)).toEqual([true, true]);
    const third = await evaluate(workspace, text.replace("prompt: b", "prompt: c"), ["c"]);
    expect(third.results.map(({ task, passed }) => [task, passed])).toEqual([
      ["a", true],
      ["b", true],
    ]);
  });

  test("one that was killed with SIGKILL continues with what has no result", async () => {
    const provider = await startFakeProvider({
      script: ["first", { text: "slow", delayMs: 20_000 }, "second"],
    });
    onTestFinished(() => provider[Symbol.asyncDispose]());
    const place = createPlace();
    place.write(
      "e.yaml",
      "tasks: [{ name: a, prompt: a, check: grep -q first }, { name: b, prompt: b, check: grep -q second }]",
    );
    const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
    const file = join(place.cwd, "e.yaml.results.jsonl");
    await runCommand(place, ["eval", "e.yaml"], {
      environment,
      started(child) {
        const timer = setInterval(() => {
          // The second run has asked the model, and the result of the first is written.
          if (provider.requests.length < 2) return;
          clearInterval(timer);
          child.kill("SIGKILL");
        }, 10);
        onTestFinished(() => clearInterval(timer));
      },
    });
    await appendFile(file, '{"key":"torn');
    const again = await runInProcess(place, ["eval", "e.yaml", "--json"], { environment });
    expect(again).toMatchObject({ code: 0 });
    expect(again.err).not.toContain("[1/2]");
    expect(JSON.parse(again.out)).toMatchObject({ planned: 2, done: 2 });
  });

  test("one budget for all of it, earlier runs included", async () => {
    await using workspace = await createWorkspace();
    const text = "tasks: [{ name: a, prompt: a, check: 'true' }]\nrepetitions: 3\nbudgetUsd: 1";
    const usage = { inputTokens: 60_000 };
    const steps = [1, 2, 3].map(() => ({ text: "x", usage }));
    const { results, stopped } = await evaluate(workspace, text, steps);
    expect(results).toHaveLength(2);
    expect(stopped).toBe("The budget of $1 is used up.");
    const again = await evaluate(workspace, text, steps);
    expect(again.results).toHaveLength(2);
    const poor = await evaluate(workspace, text.replace("name: a", "name: b").replace("1", "1.2001"), steps);
    expect(poor).toMatchObject({ results: [], stopped: "The budget of $1.2001 is used up." });
  });

  test("what failed before an answer has no result and is run again, also one that an earlier version kept", async () => {
    await using workspace = await createWorkspace();
    const text = `
tasks: [{ name: a, prompt: a, check: 'true' }, { name: b, prompt: b, check: 'true' }]
repetitions: 2
`;
    const failed: string[] = [];
    const onNoResult = ({ task }: EvalResult) => failed.push(task);
    const first = await evaluate(workspace, text, [{ failure: "unauthorized", times: 9 }], { onNoResult });
    // With a wrong key nothing else is asked.
    expect(failed).toEqual(["a"]);
    expect(first).toMatchObject({
      results: [],
      stopped: expect.stringMatching(/^4 runs have no result.*unauthorized/),
    });
    const [cell] = cellsOf(readEvalFile(text, "e.yaml"));
    const kept = { key: cell?.key, task: "a", definition: "main", model: "default", repetition: 1, score: 0 };
    const old = {
      ...kept,
      passed: false,
      status: "failed",
      endedBy: "unauthorized",
      turns: 0,
      durationMs: 1,
    };
    await appendFile(join(workspace.root, "results.jsonl"), `${JSON.stringify(old)}\n`);
    const steps: Step[] = [
      "one",
      call("Glob", { pattern: "*" }),
      { failure: "invalid-request" },
      "three",
      "four",
    ];
    const second = await evaluate(workspace, text, steps, { onNoResult });
    expect(second.results.map(({ task, repetition }) => [task, repetition])).toEqual([
      ["a", 1],
      ["b", 1],
      ["b", 2],
    ]);
    expect(second.stopped).toContain("1 run has no result");
    const third = await evaluate(workspace, text, ["two"]);
    expect(third.results.map(({ passed }) => passed)).toEqual([true, true, true, true]);
    expect(third.stopped).toBeUndefined();
  });

  test("a judge that cannot answer gives no result, and a model that declines is one", async () => {
    await using workspace = await createWorkspace();
    const text = "tasks: [{ name: a, prompt: a, judge: polite? }, { name: b, prompt: b, check: 'true' }]";
    const { results, stopped } = await evaluate(workspace, text, [
      { match: "polite?", failure: "invalid-request" },
      "an answer",
      { text: "no", stopReason: "refusal" },
    ]);
    expect(results).toMatchObject([{ task: "b", passed: false, endedBy: "refusal" }]);
    expect(stopped).toContain("The judge gave no score");
  });

  test.each([
    ["definitions: [main, nope]\nmodels: [offline]", /There is no agent "nope"/],
    ["models: [offline, sonnet]", /No API key is configured for the model "sonnet"/],
    ["repetitions: 2", /No API key is configured\./],
    ["models: [offline, openai/gpt-5]", /openai/i],
  ])("%j cannot be run, which ends the start in one sentence", async (rest, message) => {
    const place = createPlace();
    place.write("e.yaml", `tasks: [{ name: a, prompt: a, check: 'true' }]\n${rest}`);
    const { code, out, err } = await runInProcess(place, ["eval", "e.yaml"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(message);
    expect(err).not.toContain("not passed");
    expect(existsSync(join(place.cwd, "e.yaml.results.jsonl"))).toBe(false);
  });

  test("a key that is refused leaves nothing behind, and the same command with another key runs it", async () => {
    await using provider = await startFakeProvider({ script: [{ failure: "unauthorized" }, "fine"] });
    const place = createPlace();
    place.write("e.yaml", "tasks: [{ name: a, prompt: a, check: grep -q fine }]\nmodels: [sonnet]");
    const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
    const first = await runInProcess(place, ["eval", "e.yaml"], { environment });
    expect(first).toMatchObject({ code: 1, out: expect.stringContaining("0 of 1 runs") });
    expect(first.err).toContain("a, main, sonnet, run 1: no result: ");
    const again = await runInProcess(place, ["eval", "e.yaml"], { environment });
    expect(again).toMatchObject({ code: 0, out: expect.stringContaining("1 of 1") });
    // Looking whether it can be run is no session.
    expect(place.transcripts().size).toBe(2);
  });

  test.each(["--html", "--results"])("%s below /proc is refused before anything is run", async (option) => {
    const place = createPlace();
    place.write("e.yaml", "tasks: [{ name: a, prompt: a, check: 'true' }]\nmodels: [offline]");
    const { code, err } = await runInProcess(place, ["eval", "e.yaml", option, "/proc/x/y"]);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining("part of the system") });
    expect(err).not.toContain("[1/1]");
  });

  test("the page has every task and reason, and escapes them", () => {
    const result: EvalResult = {
      ...{
        key: "k",
        task: "<b>x",
        definition: "main",
        model: "m",
        repetition: 1,
        status: "completed",
        endedBy: "x",
      },
      ...{ passed: false, score: 0, reason: "<script>", turns: 1, durationMs: 1 },
    };
    const page = renderEvalPage({
      ...{ version: 1, file: "e.yaml", planned: 1, done: 1, costUsd: 0 },
      summaries: summarize([result]),
      results: [result],
    });
    expect(page).toContain("&#60;b&#62;x");
    expect(page).not.toContain("<script>");
    expect(page).toContain("0 of 1");
  });
});

describe("mistakes in the file are named", () => {
  test.each([
    ["[", "e.yaml is neither YAML nor JSON"],
    ["a", "e.yaml: the file must be an object with tasks."],
    ["tasks: []", "e.yaml: tasks must be a list with at least one task."],
    ["tasks: [{ prompt: x }]", "e.yaml: tasks[0] must be scored by check, schema or judge."],
    ["tasks: [{ check: x }]", "e.yaml: tasks[0].prompt must be a string."],
    ["tasks: [{ prompt: x, check: y, chek: z }]", 'tasks[0] has the key "chek"'],
    [
      "tasks: [{ prompt: x, judge: { question: q, pass: 2 } }]",
      "tasks[0].judge.pass must be a number from 0 to 1.",
    ],
    ["tasks: [{ prompt: x, check: y }]\nrepetitions: 0", "repetitions must be a whole number above 0."],
    ["tasks: [{ prompt: x, check: y }]\nmodels: sonnet", "models must be a list of names."],
    [
      "tasks: [{ prompt: x, check: y }, { prompt: x, check: z }]",
      "tasks must be tasks with names of their own.",
    ],
    ["tasks: [{ prompt: x, check: y }]\npermissionMode: all", "permissionMode must be one of"],
  ])("%j", (text, message) => {
    expect(() => readEvalFile(text, "e.yaml")).toThrow(message);
  });
});

function evaluate(
  workspace: Workspace,
  text: string,
  steps: readonly Step[],
  more: Partial<Parameters<typeof runEval>[0]> = {},
) {
  const model = createScriptedModel(steps, { facts: { price } });
  return runEval({
    plan: readEvalFile(text, "e.yaml"),
    resultsFile: join(workspace.root, "results.jsonl"),
    directory: workspace.project,
    environment: { PATH: process.env["PATH"] },
    signal: new AbortController().signal,
    onResult: () => undefined,
    open: (directory) =>
      createRuntime({
        cwd: directory,
        home: join(workspace.root, "home"),
        env: { PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0" },
        managedDirectory: join(workspace.root, "managed"),
        settingSources: ["project"],
        model,
      }),
    ...more,
  });
}
