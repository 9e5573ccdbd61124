import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import {
  type FakeProvider,
  type ProviderRequest,
  startFakeProvider,
} from "@retinue/testing/fake-provider.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createRuntime } from "../../src/index.ts";
import {
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
  input: { description: prompt.toLowerCase(), prompt, ...more },
});
const bash = (id: string, command: string) => ({ id, name: "Bash", input: { command } });
/** Says that it runs, and ends when its folder is gone. */
const endless = "touch reached; while [ -e reached ]; do sleep 0.05; done";

interface Stage extends Place {
  readonly provider: FakeProvider;
  readonly hookLog: string;
  run(...arguments_: string[]): Promise<Finished>;
  /** Starts a session and kills its process as soon as something has happened. */
  runUntil(has: () => boolean, ...arguments_: string[]): Promise<void>;
  lastRequest(): string;
}

async function createStage(steps: readonly Step[], settings: object = {}): Promise<Stage> {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const hookLog = join(place.home, "hooks.log");
  const report = (event: string) => [
    { hooks: [{ type: "command", command: `cat > /dev/null; echo ${event} >> '${hookLog}'` }] },
  ];
  const hooks = { SubagentStart: report("start"), SubagentStop: report("stop") };
  place.write("../home/.claude/settings.json", JSON.stringify({ hooks, ...settings }));
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const skip = "--dangerously-skip-permissions";
  return {
    ...place,
    provider,
    hookLog,
    run: (...arguments_) => runInProcess(place, arguments_, { environment }),
    async runUntil(has, ...arguments_) {
      const begun = Promise.withResolvers<{ kill(signal: "SIGKILL"): boolean }>();
      const flags = [skip, "--output-format", "stream-json"];
      const ended = runCommand(place, [...arguments_, ...flags], {
        environment,
        watch: (_, process_) => begun.resolve(process_),
      });
      const process_ = await Promise.race([
        begun.promise,
        ended.then(({ err }) => Promise.reject(new Error(err))),
      ]);
      let isOver = false;
      void ended.then(() => {
        isOver = true;
      });
      while (!has()) {
        if (isOver) throw new Error(`It ended too early: ${(await ended).out}`);
        await wait(5);
      }
      process_.kill("SIGKILL");
      await ended;
    },
    lastRequest: () => JSON.stringify(provider.requests.at(-1)?.request.messages),
  };
}

const exists = (stage: Place, name: string) => () => existsSync(join(stage.cwd, name));
const received = ({ hookLog }: Stage) => readFileSync(hookLog, "utf8").trim().split("\n");
const sessionOf = (stage: Stage) => [...stage.transcripts().keys()][0] ?? "";

interface Listed {
  readonly tasks: readonly {
    readonly id: string;
    readonly description: string;
    readonly background: boolean;
  }[];
  readonly sessions: readonly { readonly id: string }[];
}

async function listInterrupted(stage: Stage): Promise<Listed> {
  return JSON.parse((await stage.run("tasks", "--interrupted", "--json")).out);
}

describe("[TRN-4] a child whose process was killed", () => {
  test("is listed with what was in flight, named to its parent, and continues without repeating what it had done [TRN-3, HKS-8]", async () => {
    const stage = await createStage([
      main({ calls: [start("TASK-ONE", { run_in_background: false })] }),
      child("TASK-ONE", { calls: [bash("one", "echo one >> log; echo did one"), bash("two", endless)] }),
      main({
        respond: (request) => {
          const resume = /a[0-9a-f]{16}/.exec(JSON.stringify(request.messages.at(-1)))?.[0] ?? "";
          return { calls: [start("Continue.", { resume, run_in_background: false })] };
        },
      }),
      child("TASK-ONE", { text: "Done after all." }),
      main({ text: "Good." }),
    ]);
    await stage.runUntil(exists(stage, "reached"), "-p", "Begin.");

    const { tasks, sessions } = await listInterrupted(stage);
    expect(tasks).toMatchObject([
      {
        state: "interrupted",
        background: false,
        inFlight: [{ name: "Bash", input: endless, repeats: "unsafe" }],
      },
    ]);
    expect(sessions).toMatchObject([{ id: sessionOf(stage), inFlight: [{ name: "Agent" }] }]);
    const id = tasks[0]?.id ?? "";
    const shown = (await stage.run("tasks", "--interrupted")).out;
    expect(shown).toMatch(
      new RegExp(`${id} .*task-one.*\\n  in flight: Bash .*may have run.*\\n  resume: retinue resume ${id}`),
    );
    expect(shown).toContain(`retinue -p --resume ${sessionOf(stage)}`);
    await using runtime = createRuntime({ cwd: stage.cwd, home: stage.home, env: {} });
    expect(await runtime.interrupted()).toMatchObject({
      agents: [{ id }],
      sessions: [{ id: sessionOf(stage) }],
    });

    const { code, out, err } = await stage.run(
      "-p",
      "Continue.",
      "--resume",
      sessionOf(stage),
      "--output-format",
      "json",
    );
    expect({ code, result: JSON.parse(out) }).toMatchObject({
      code: 0,
      result: { result: "Good.", interrupted_agents: 1 },
    });
    expect(err).toContain(`Agent ${id} (general-purpose, "task-one") was cut off`);
    const [, , reported, resumed] = stage.provider.requests.map(({ request }) =>
      JSON.stringify(request.messages),
    );
    expect(reported).toContain(
      `Interrupted: the session ended while the agent ${id} (general-purpose) was running.`,
    );
    expect(reported).toContain(`<task-id>${id}</task-id>`);
    expect(resumed).toContain('"tool_use_id":"one","content":"did one"');
    expect(resumed).toMatch(/"tool_use_id":"two","content":"Interrupted: [^"]*not run again/);
    expect(readFileSync(join(stage.cwd, "log"), "utf8")).toBe("one\n");
    expect(received(stage)).toEqual(["start", "stop", "start", "stop"]);
    expect(await listInterrupted(stage)).toEqual({ version: 1, tasks: [], sessions: [] });
    stage.provider.finish();
  });

  test("continues by itself in the background where settings allow it", async () => {
    const stage = await createStage(
      [
        main({ calls: [start("TASK-ONE", { run_in_background: true })] }),
        child("TASK-ONE", { calls: [bash("two", endless)] }),
        main({ text: "I wait." }),
        main({ text: "I still wait." }),
        child("TASK-ONE", { text: "Done by itself." }),
        main({ text: "It is done." }),
      ],
      { resumeInterruptedAgents: true },
    );
    await stage.runUntil(exists(stage, "reached"), "-p", "Begin.");
    const flags = ["--output-format", "stream-json"];
    const { code, out } = await stage.run(
      "-p",
      "Continue.",
      "--continue",
      "--dangerously-skip-permissions",
      ...flags,
    );
    const messages = readJsonLines(out);
    expect(code).toBe(0);
    expect(messages.find(({ subtype }) => subtype === "agents_interrupted")).toMatchObject({
      agents: [
        { description: "task-one", background: true, standing: "resumed", inFlight: [{ name: "Bash" }] },
      ],
    });
    expect(messages.at(-1)).toMatchObject({ result: "It is done.", interrupted_agents: 1 });
    expect(stage.lastRequest()).toContain("Done by itself.");
    expect(received(stage)).toEqual(["start", "stop", "start", "stop"]);
    stage.provider.finish();
  });

  test("that waited for a place is taken up with its task", async () => {
    const background = { run_in_background: true };
    const stage = await createStage(
      [
        // One after the other: of two in one answer either may be first to ask for the place.
        main({ calls: [start("TASK-ONE", background)] }),
        main({ calls: [start("TASK-TWO", background)] }),
        child("TASK-ONE", { calls: [bash("two", endless)] }),
        main({ text: "I wait." }),
        child("TASK-TWO", { text: "Two is done." }),
        child("TASK-ONE", { text: "One is done." }),
      ],
      { limits: { agents: 1, overflow: "queue" } },
    );
    const isMain = ({ request }: ProviderRequest) => request.system.join().includes("engineer at a terminal");
    const isWaiting = () => exists(stage, "reached")() && stage.provider.requests.filter(isMain).length > 2;
    await stage.runUntil(isWaiting, "-p", "Begin.");
    const { tasks } = await listInterrupted(stage);
    expect(tasks.map(({ description }) => description).sort()).toEqual(["task-one", "task-two"]);
    const two = tasks.find(({ description }) => description === "task-two");
    expect(await stage.run("resume", two?.id ?? "")).toMatchObject({ code: 0, out: "Two is done.\n" });
    expect(stage.lastRequest()).toContain("TASK-TWO");
    expect(received(stage)).toEqual(["start", "start", "stop"]);

    const { code, out } = await stage.run("resume", "--interrupted", "--json");
    expect({ code, ...JSON.parse(out) }).toMatchObject({
      code: 0,
      sessionId: sessionOf(stage),
      agents: [{ description: "task-one", status: "completed", text: "One is done." }],
    });
    expect(stage.lastRequest()).toContain("You were interrupted");
    expect(received(stage).slice(3)).toEqual(["stop", "start", "stop"]);
    expect((await stage.run("resume", "--interrupted")).err).toContain("was interrupted");
    for (const wrong of [["resume"], ["resume", "--interrupted", two?.id ?? ""]])
      expect(await stage.run(...wrong)).toMatchObject({ code: 2 });
    stage.provider.finish();
  });
});

test("[TRN-4] a result in the background that was not reported yet is reported when the session is taken up again", async () => {
  const stage = await createStage([
    main({ calls: [start("TASK-ONE", { run_in_background: true })] }),
    child("TASK-ONE", { text: "Found it." }),
    main({ text: "Half", failure: "stall", after: 1 }),
    main({ text: "I have heard." }),
  ]);
  const hasEnded = () => existsSync(stage.hookLog) && received(stage).includes("stop") && isWritten(stage);
  await stage.runUntil(hasEnded, "-p", "Begin.");
  expect((await listInterrupted(stage)).tasks).toEqual([]);
  expect(await stage.run("-p", "Continue.", "--continue")).toMatchObject({ code: 0, out: "I have heard.\n" });
  expect(stage.lastRequest()).toContain("Found it.");
  expect(stage.lastRequest()).toContain("<status>completed</status>");
  expect(received(stage)).toEqual(["start", "stop"]);
  stage.provider.finish();
});

function isWritten(stage: Stage): boolean {
  const folder = join(
    stage.home,
    ".claude/projects",
    stage.cwd.replace(/[^A-Za-z0-9]/g, "-"),
    sessionOf(stage),
    "subagents",
  );
  const [name = ""] = existsSync(folder) ? readdirSync(folder).filter((each) => each.endsWith(".jsonl")) : [];
  return name !== "" && readFileSync(join(folder, name), "utf8").includes('"runEnding"');
}
