import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { createPlace, runInProcess } from "./run-command.ts";

const says = (word: string) => (request: ModelRequest) => JSON.stringify(request.messages[0]).includes(word);
const call = (type: string, prompt: string, more: object = {}) => ({
  name: "Agent",
  input: { description: `do ${prompt}`, prompt, subagent_type: type, ...more },
});
const agents = [
  {
    name: "lead",
    description: "Leads.",
    prompt: "You lead.",
    tools: ["Read", "Write", "Agent(worker, lead)"],
  },
  { name: "worker", description: "Works.", prompt: "You work.", tools: ["Read", "Write", "Bash"] },
];
const nested = { limits: { depth: 2 } } as const;
const lastText = ({ messages }: ModelRequest) => JSON.stringify(messages.at(-1));

async function sidecars(sample: SampleRuntime): Promise<readonly Record<string, unknown>[]> {
  const names = await readdir(sample.home, { recursive: true });
  const found = names.filter((name) => name.endsWith(".meta.json"));
  return Promise.all(found.map(async (name) => JSON.parse(await readFile(join(sample.home, name), "utf8"))));
}

describe("[NST-1] agents below agents", () => {
  const steps: readonly Step[] = [
    { match: says("WORK"), text: "Piece done.", times: 2 },
    { match: says("LEAD"), calls: [call("worker", "WORK one"), call("worker", "WORK two")] },
    { match: says("LEAD"), text: "Both done." },
    { calls: [call("lead", "LEAD")] },
    { text: "All done." },
  ];

  test.each([1, 2, 10])("do their work with %i places, and each result goes one level up", async (places) => {
    await using sample = await createSampleRuntime(steps, {
      agents,
      settings: { limits: { agents: places } },
    });
    await using session = await sample.runtime.open(nested);
    expect(await session.prompt("Begin.").result).toMatchObject({ status: "completed", text: "All done." });
    const [lead, ...workers] = session.tasks.list().toSorted((a, b) => (a.agentType < b.agentType ? -1 : 1));
    expect(lead).toMatchObject({ agentType: "lead", parentId: "main", status: "completed" });
    expect(workers).toMatchObject([
      { agentType: "worker", parentId: lead?.id, status: "completed" },
      { agentType: "worker", parentId: lead?.id, status: "completed" },
    ]);
    expect(JSON.stringify(sample.requests.at(-1)?.messages)).not.toContain("Piece done.");
    expect(await sidecars(sample)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ agentType: "lead", spawnDepth: 1 }),
        expect.objectContaining({ agentType: "worker", spawnDepth: 2, parentAgentId: lead?.id }),
      ]),
    );
  });

  test("offer a subagent only the agents that it names, and the last level none", async () => {
    await using sample = await createSampleRuntime(steps, { agents });
    await using session = await sample.runtime.open(nested);
    await session.prompt("Begin.").result;
    const toolOf = (request: ModelRequest | undefined) => request?.tools.find(({ name }) => name === "Agent");
    const [ofLead, ofWorker] = ["LEAD", "WORK"].map((word) => sample.requests.find(says(word)));
    expect(toolOf(ofLead)?.description).toContain("- worker");
    expect(toolOf(ofLead)?.description).not.toContain("general-purpose:");
    expect(toolOf(ofWorker)).toBeUndefined();
  });

  test("stop growing at the total number, with a sentence", async () => {
    await using sample = await createSampleRuntime(
      [
        { match: says("WORK"), text: "Piece done.", times: "any" },
        { match: says("LEAD"), calls: ["a", "b", "c"].map((name) => call("worker", `WORK ${name}`)) },
        { match: says("LEAD"), respond: (request) => `I read: ${lastText(request)}` },
      ],
      { agents },
    );
    await using session = await sample.runtime.open({ limits: { depth: 2, nested: 2 } });
    const result = await session.spawn("lead", "LEAD").result;
    expect(result.text).toContain("2 is the most (limits.nested)");
    expect(session.tasks.list()).toHaveLength(3);
  });

  test("end a definition that delegates to itself at the depth, with a sentence", async () => {
    const isLast = ({ system }: ModelRequest) => JSON.stringify(system).includes("you cannot start others");
    await using sample = await createSampleRuntime(
      [
        { match: isLast, calls: [call("lead", "LEAD again")] },
        { match: isLast, respond: (request) => `I read: ${lastText(request)}` },
        { match: (request: ModelRequest) => !isLast(request), calls: [call("lead", "LEAD")], times: 2 },
        { respond: (request) => `Above: ${lastText(request)}`, times: "any" },
      ],
      { agents },
    );
    await using session = await sample.runtime.open({ limits: { depth: 3 } });
    const result = await session.spawn("lead", "LEAD").result;
    expect(session.tasks.list()).toHaveLength(3);
    expect(result.text).toContain("limits.depth allows 3 levels of agents");
  });

  test("wait for those in the background before they end, and read their results", async () => {
    await using sample = await createSampleRuntime(
      [
        { match: says("WORK"), text: "Piece done.", delayMs: 20 },
        { match: says("LEAD"), calls: [call("worker", "WORK", { run_in_background: true })] },
        { match: says("LEAD"), text: "Nothing left to do." },
        { match: says("LEAD"), respond: (request) => `I read: ${lastText(request)}` },
      ],
      { agents },
    );
    await using session = await sample.runtime.open(nested);
    const result = await session.spawn("lead", "LEAD").result;
    expect(result.text).toContain("Piece done.");
  });

  test.each([
    false,
    true,
  ])("are stopped with the one that started them (background: %s)", async (background) => {
    await using sample = await createSampleRuntime(
      [
        { match: says("WORK"), failure: "stall", after: 1, text: "Piece" },
        { match: says("LEAD"), calls: [call("worker", "WORK", { run_in_background: background })] },
        { match: says("LEAD"), failure: "stall", after: 0, text: "Waiting" },
      ],
      { agents },
    );
    await using session = await sample.runtime.open(nested);
    const lead = session.spawn("lead", "LEAD");
    await expect.poll(() => session.tasks.list().map(({ lastText }) => lastText).length).toBe(2);
    await lead.stop();
    expect(await lead.result).toMatchObject({ status: "stopped" });
    await expect
      .poll(() => session.tasks.list().map(({ agentType, status }) => `${agentType} ${status}`))
      .toEqual(["lead stopped", "worker stopped"]);
  });

  test("take what they spend from the one that started them", async () => {
    await using sample = await createSampleRuntime(
      [
        {
          match: says("WORK"),
          text: "Piece done.",
          usage: { inputTokens: 8000, outputTokens: 500 },
          times: "any",
        },
        { match: says("LEAD"), calls: [call("worker", "WORK a")] },
        { match: says("LEAD"), respond: (request) => `I read: ${lastText(request)}`, times: "any" },
      ],
      { agents: agents.map((one) => (one.name === "lead" ? { ...one, limits: { tokens: 9000 } } : one)) },
    );
    await using session = await sample.runtime.open(nested);
    const result = await session.spawn("lead", "LEAD").result;
    const worker = session.tasks.list().find(({ agentType }) => agentType === "worker");
    expect(worker?.status).toBe("completed");
    expect(result).toMatchObject({ reason: "max_total_tokens" });
  });

  test("ask the person with their whole path", async () => {
    const paths: string[] = [];
    await using sample = await createSampleRuntime(
      [
        { match: says("WORK"), calls: [{ name: "Write", input: { file_path: "a.txt", content: "x" } }] },
        { match: says("WORK"), text: "Written." },
        { match: says("LEAD"), calls: [call("worker", "WORK")] },
        { match: says("LEAD"), text: "Done." },
        { calls: [call("lead", "LEAD")] },
        { text: "Fine." },
      ],
      {
        agents,
        canUseTool: async (_tool, _input, { agentPath = [] }) => {
          paths.push(agentPath.map(({ name }) => name).join(" > "));
          return { behavior: "allow" };
        },
      },
    );
    await using session = await sample.runtime.open(nested);
    await session.prompt("Begin.").result;
    expect(paths).toContain("main > lead > worker");
  });
});

describe("[NST-1] after a session was cut off", () => {
  const first: readonly Step[] = [
    { match: says("WORK"), failure: "stall", after: 1, text: "Piece" },
    { match: says("LEAD"), calls: [call("worker", "WORK")] },
    { calls: [call("lead", "LEAD")] },
  ];

  async function cutOff(sample: SampleRuntime) {
    const session = await sample.runtime.open(nested);
    const run = session.prompt("Begin.");
    run.result.catch(() => undefined);
    await expect.poll(() => session.tasks.list().filter(({ status }) => status === "running").length).toBe(2);
    const ids = Object.fromEntries(session.tasks.list().map(({ agentType, id }) => [agentType, id]));
    await session.close();
    return { id: session.id, lead: ids["lead"] ?? "", worker: ids["worker"] ?? "" };
  }

  test("the main agent resumes its child, the child the one below, and nothing is done twice", async () => {
    await using sample = await createSampleRuntime(first, { agents });
    const { id, lead, worker } = await cutOff(sample);
    const { runtime, requests } = sample.restart([
      { match: says("WORK"), text: "Piece done." },
      { match: says("LEAD"), calls: [call("worker", "Continue.", { resume: worker })] },
      { match: says("LEAD"), respond: (request) => `I read: ${lastText(request)}` },
      { calls: [call("lead", "Continue.", { resume: lead })] },
      { respond: (request) => `Main read: ${lastText(request)}` },
    ]);
    await using session = await runtime.open({ ...nested, resume: id });
    const result = await session.prompt("Go on.").result;
    expect(result.text).toContain("Piece done.");
    expect(
      session.tasks
        .list()
        .map(({ id: own }) => own)
        .toSorted(),
    ).toEqual([lead, worker].toSorted());
    const ofMain = JSON.stringify(requests[0]?.messages);
    expect(ofMain).toContain(lead);
    // The main agent is notified of its own child alone.
    expect(ofMain).not.toContain(worker);
    expect(JSON.stringify(requests.find(says("LEAD"))?.messages)).toContain(worker);
  });

  test("the main agent cannot resume an agent below its child", async () => {
    await using sample = await createSampleRuntime(first, { agents });
    const { id, lead, worker } = await cutOff(sample);
    const { runtime } = sample.restart([]);
    await using session = await runtime.open({ ...nested, resume: id });
    const refusal = session.spawn("worker", "Go on.", { resume: worker }).result;
    await expect(refusal).rejects.toThrow(`resume ${lead} instead`);
  });

  test("a count that was reached stays reached", async () => {
    await using sample = await createSampleRuntime(first, { agents });
    const { id, lead } = await cutOff(sample);
    const { runtime } = sample.restart([
      { match: says("LEAD"), calls: [call("worker", "WORK more")] },
      { match: says("LEAD"), respond: (request) => `I read: ${lastText(request)}` },
    ]);
    await using session = await runtime.open({ limits: { depth: 2, nested: 1 }, resume: id });
    const result = await session.spawn("lead", "Go on.", { resume: lead }).result;
    expect(result.text).toContain("1 is the most (limits.nested)");
  });
});

describe("[NST-1] retinue plan --tree", () => {
  function place(depth: number | undefined) {
    const place = createPlace();
    place.write(
      ".claude/agents/lead.md",
      "---\nname: lead\ndescription: Leads.\ntools: Read, Bash(git *), Agent(lead, worker, nobody)\nlimits:\n  usd: 1\n---\nLead.\n",
    );
    place.write(
      ".claude/agents/worker.md",
      "---\nname: worker\ndescription: Works.\ntools: Read, Write, Bash\n---\nWork.\n",
    );
    const limits = depth === undefined ? {} : { limits: { depth } };
    place.write("../home/.claude/settings.json", JSON.stringify(limits));
    return place;
  }

  test("shows each level with what it would have, and where it ends", async () => {
    const { out, code } = await runInProcess(place(2), ["plan", "lead", "--tree"]);
    expect(code).toBe(0);
    const lines = out.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^main {2}2 levels \(~\/\.claude\/settings\.json\), at most 50 agents/);
    expect(lines.find((line) => line.startsWith("└─ lead"))).toContain("Agent(lead, worker, nobody)");
    expect(lines.find((line) => line.includes("─ worker"))).toMatch(
      /Bash\(git \*\), Read · money at most 1 US/,
    );
    expect(out).toContain("└─ nobody  not started: There is no agent");
    expect(out).toContain("limits.depth allows 2 levels of agents, so lead cannot start agents here");
  });

  test("shows one level without the setting, and all agents without a name", async () => {
    const { out } = await runInProcess(place(undefined), ["plan", "--tree", "--json"]);
    const { tree, nesting } = JSON.parse(out);
    expect(nesting).toBeNull();
    expect(tree.map(({ agent }: { agent: string }) => agent)).toEqual(
      expect.arrayContaining(["lead", "worker", "general-purpose"]),
    );
    expect(tree.flatMap(({ starts }: { starts: unknown[] }) => starts)).toEqual([]);
  });

  test("refuses a depth that is none", async () => {
    const { err, code } = await runInProcess(place(0), ["plan", "--tree"]);
    expect(code).toBe(1);
    expect(err).toContain('"limits.depth" cannot be read: it needs a whole number from 1 to 10, but is 0');
  });
});
