import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { saveRecording } from "@retinue/core/kernel/replay/save-recording.ts";
import { describeReplay } from "@retinue/core/replay/describe-replay.ts";
import { loadRecording } from "@retinue/core/replay/load-recording.ts";
import { assertReplay } from "@retinue/testing/assert-replay.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { afterEach, describe, expect, test, vi } from "vitest";
import { call, makeScenario, recordScenario, type Scenario, scenarios } from "./scenarios.ts";

afterEach(() => vi.restoreAllMocks());

describe("a recorded session is replayed without a model", () => {
  const made = Array.from({ length: 4 }, (_, index) => makeScenario(index + 1));

  test.each([
    ...scenarios,
    ...made,
  ])("the same requests to the byte and no network: $name [RPL-1]", async (scenario) => {
    await using sample = await start(scenario);
    const sent = await recordScenario(sample, scenario);
    const connect = vi.spyOn(Socket.prototype, "connect");
    const fetch = vi.spyOn(globalThis, "fetch");
    const replayed: string[] = [];
    const report = await sample.runtime.replay(undefined, {
      onRequest: (request) => replayed.push(JSON.stringify(request)),
    });
    expect(connect).not.toHaveBeenCalled();
    expect(fetch).not.toHaveBeenCalled();
    expect(report.differences).toEqual([]);
    expect(report.requests.same).toBe(report.requests.made);
    expect(report.requests.made).toBeGreaterThan(0);
    // A request that failed is no answer of the agent, nor is a summary that a person asked for between two runs.
    const asides = scenario.name.includes("asked for") || scenario.name.includes("fails") ? 1 : 0;
    expect(replayed).toHaveLength(sent.length - asides);
    expect(sent).toEqual(expect.arrayContaining(replayed));
    expect(new Set(replayed).size).toBe(new Set(sent).size - asides);
  });

  test("a session that a crash has cut off anywhere is replayed as far as it goes [RPL-1]", async () => {
    await using sample = await start(named("a child that is waited for"));
    await recordScenario(sample, named("a child that is waited for"));
    const { transcripts } = (await sample.runtime.agents()).paths;
    const { sessionId } = await loadRecording(transcripts, undefined);
    const file = join(transcripts, `${sessionId}.jsonl`);
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    for (let kept = 1; kept < lines.length; kept += 2) {
      await writeFile(file, `${lines.slice(0, kept).join("\n")}\n${lines[kept]?.slice(0, 20)}`);
      expect((await sample.runtime.replay(sessionId)).differences).toEqual([]);
    }
  });

  test("a child is replayed alone, by its id [RPL-1]", async () => {
    await using sample = await start(named("a child that is waited for"));
    await recordScenario(sample, named("a child that is waited for"));
    const { transcripts } = (await sample.runtime.agents()).paths;
    const { agents } = await loadRecording(transcripts, undefined);
    const report = await sample.runtime.replay(agents[1]?.id);
    expect(report).toMatchObject({ agents: 1, requests: { made: 2, same: 2 }, differences: [] });
  });

  test("what there is no session for is refused with what to do [RPL-1]", async () => {
    await using sample = await start(named("a child that is waited for"));
    await expect(sample.runtime.replay("nothing")).rejects.toThrow(/nothing/);
    await recordScenario(sample, named("a child that is waited for"));
    await expect(sample.runtime.replay(undefined, { from: "99" })).rejects.toMatchObject({
      code: "unknown-message",
      advice: expect.stringContaining("1 to 2"),
    });
    await expect(sample.runtime.replay(undefined, { model: "sonnet" })).rejects.toThrow(/needs the message/);
  });
});

const reviewed: Scenario = {
  name: "reviewed",
  steps: [
    call("Agent", { description: "review", prompt: "look", subagent_type: "reviewer" }),
    call("Read", { file_path: "a.txt" }),
    "found",
    "done",
  ],
  prompts: ["go"],
};

describe("what differs now is shown", () => {
  test("a changed prompt and tools of a child, with the changed lines [RPL-2]", async () => {
    await using sample = await startReviewed();
    await defineReviewer(sample, "You review fast.", "Read");
    const { differences } = await sample.runtime.replay();
    const own = differences.filter(({ agent }) => agent === "reviewer (review)");
    expect(own.map(({ kind, turn }) => [kind, turn])).toEqual([
      ["prompt", 1],
      ["tools", 1],
    ]);
    expect(own[0]?.lines).toEqual(expect.arrayContaining(["-You review.", "+You review fast."]));
    expect(own[1]?.lines).toEqual(["- Grep"]);
  });

  test("a rule that decides otherwise about a call of then [RPL-2]", async () => {
    await using sample = await startReviewed();
    await sample.workspace.write(
      ".claude/settings.json",
      JSON.stringify({ permissions: { deny: ["Read(./a.txt)"] } }),
    );
    const report = await sample.runtime.replay();
    expect(report.requests.same).toBe(4);
    expect(report.differences).toMatchObject([{ kind: "decision", agent: "reviewer (review)" }]);
    expect(describeReplay(report)).toMatch(/- allow: .*\n.*\+ deny: the rule Read\(\.\/a\.txt\)/);
  });

  test("an agent that is gone [RPL-2]", async () => {
    await using sample = await startReviewed();
    await rm(sample.workspace.path(".claude/agents/reviewer.md"));
    const { differences } = await sample.runtime.replay();
    expect(differences).toContainEqual(
      expect.objectContaining({
        kind: "decision",
        title: expect.stringContaining("could not be started with today's files"),
      }),
    );
  });

  test("real tools run again on the recorded answers, and other results are shown [RPL-2]", async () => {
    await using sample = await startReviewed();
    const same = await sample.runtime.replay(undefined, { tools: "real" });
    // Only how long a child took can differ.
    expect(same.differences.filter(({ kind }) => kind !== "message")).toEqual([]);
    expect(same.replayedAs).toBeDefined();
    await sample.workspace.write("a.txt", "goodbye\n");
    const changed = await sample.runtime.replay(same.replayedAs, { tools: "real" });
    const [own] = changed.differences.filter(({ agent }) => agent === "reviewer (review)");
    expect(own).toMatchObject({ kind: "message", turn: 2 });
    expect(own?.lines.join("\n")).toMatch(/^-1\thello$/m);
  });

  test("from an answer on the model is asked with another prompt, on recorded results before it [RPL-2]", async () => {
    await using sample = await startReviewed();
    const live = sample.restart(["something else"]);
    const report = await live.runtime.replay(undefined, { from: "2", appendSystemPrompt: "Be different." });
    expect(live.requests).toHaveLength(1);
    expect(live.requests[0]?.system.join("\n")).toContain("Be different.");
    expect(JSON.stringify(live.requests[0]?.messages)).toContain("found");
    expect(report.differences.map(({ kind, turn }) => [kind, turn])).toEqual([
      ["prompt", 1],
      ["message", 2],
    ]);
  });

  test("one that cannot start leaves no session behind [RPL-2]", async () => {
    await using sample = await createSampleRuntime(["one", "two"]);
    const session = await sample.runtime.open();
    await session.run("First.").result;
    await session.run("Second.").result;
    await session.close();
    const { transcripts } = (await sample.runtime.agents()).paths;
    const before = await readdir(transcripts);
    await expect(sample.runtime.replay(undefined, { from: "2", agent: "nobody" })).rejects.toThrow("nobody");
    expect(await readdir(transcripts)).toEqual(before);
  });

  test("with recorded tools a new call runs nothing, and one that is known has its result [RPL-2]", async () => {
    await using sample = await startReviewed();
    const live = sample.restart([
      call("Bash", { command: "touch made.txt" }),
      call("Agent", { description: "review", prompt: "look", subagent_type: "reviewer" }),
      "done",
    ]);
    await live.runtime.replay(undefined, { from: "2" });
    const said = JSON.stringify(live.requests.at(-1)?.messages);
    expect(said).toContain("No result of this call was recorded");
    expect(said.match(/found/g)).toHaveLength(2);
    await expect(readFile(sample.workspace.path("made.txt"))).rejects.toThrow();
  });
});

describe("a session becomes a test", () => {
  test("it passes elsewhere, and fails with a readable difference [RPL-1]", async () => {
    await using sample = await startReviewed();
    const { transcripts } = (await sample.runtime.agents()).paths;
    const directory = sample.workspace.path("test");
    const recording = await loadRecording(transcripts, undefined);
    const saved = await saveRecording(recording, {
      directory,
      title: "Go!",
      home: sample.home,
      make: createRuntime,
    });
    expect(saved.text).not.toContain(sample.workspace.root);
    const elsewhere = join(sample.workspace.root, "elsewhere");
    await mkdir(join(elsewhere, "test"), { recursive: true });
    const file = join(elsewhere, "test", `${saved.name}.replay.json`);
    await writeFile(file, saved.text);
    await writeFile(join(elsewhere, "a.txt"), "anything");
    await cp(sample.workspace.path(".claude"), join(elsewhere, ".claude"), { recursive: true });
    expect(await assertReplay(file)).toMatchObject({ requests: { made: 4, same: 4 } });
    await defineIn(elsewhere, "You review slowly.", "Read, Grep");
    await expect(assertReplay(file)).rejects.toThrow(/-You review\.\n\s*\+You review slowly\./);
    await writeFile(file, "{}");
    await expect(assertReplay(file)).rejects.toMatchObject({ code: "invalid-recording" });
  });
});

function named(name: string): Scenario {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(name);
  return found;
}

function start({ steps, options = {} }: Scenario): Promise<SampleRuntime> {
  return createSampleRuntime(steps, { durability: "os", ...options });
}

async function startReviewed(): Promise<SampleRuntime> {
  const sample = await start(reviewed);
  await defineReviewer(sample, "You review.", "Read, Grep");
  await recordScenario(sample, reviewed);
  return sample;
}

function defineReviewer({ workspace }: SampleRuntime, prompt: string, tools: string): Promise<void> {
  return defineIn(workspace.project, prompt, tools);
}

async function defineIn(project: string, prompt: string, tools: string): Promise<void> {
  const folder = join(project, ".claude/agents");
  await mkdir(folder, { recursive: true });
  const head = `---\nname: reviewer\ndescription: Reviews. Use when asked.\ntools: ${tools}\n---\n`;
  await writeFile(join(folder, "reviewer.md"), `${head}${prompt}`);
}
