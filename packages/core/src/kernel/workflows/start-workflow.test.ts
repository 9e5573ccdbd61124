import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { expect, it } from "vitest";
import * as z from "zod";
import type { Message } from "../../conversation/message.ts";
import type { ModelRequest } from "../../models/model.ts";
import type { WorkflowFunction } from "./typed-functions.ts";

const meta = "export const meta = { name: 'w', description: 'one' };\n";

/** The words of the first message of a conversation, and how many answers it has. */
function asked({ messages }: ModelRequest): { readonly label: string; readonly turn: number } {
  const label = /conv:(\w+)/.exec(JSON.stringify(messages[0]))?.[1] ?? "";
  return { label, turn: messages.filter(({ role }: Message) => role === "assistant").length };
}

/** A runtime whose agents answer by the label `conv:LABEL` in their prompts, turn by turn; others in capitals. */
async function stage(agents: Record<string, readonly (string | StepAnswer)[]> = {}) {
  const counts = new Map<string, number>();
  const sample = await createSampleRuntime([
    {
      times: "any",
      respond(request) {
        const { label, turn } = asked(request);
        counts.set(label, (counts.get(label) ?? 0) + 1);
        const answers = agents[label];
        return answers?.[Math.min(turn, answers.length - 1)] ?? label.toUpperCase();
      },
    },
  ]);
  return Object.assign(sample, { counts });
}

/** Another process at the same place, whose agents answer otherwise. */
function restarted(sample: SampleRuntime, agents: Record<string, readonly string[]>) {
  const { runtime } = sample.restart([
    {
      times: "any",
      respond(request) {
        const { label, turn } = asked(request);
        return agents[label]?.[turn] ?? label.toUpperCase();
      },
    },
  ]);
  return runtime;
}

function filesOf({ home }: Pick<SampleRuntime, "home">, ending: string): readonly string[] {
  const projects = join(home, ".claude/projects");
  if (!existsSync(projects)) return [];
  return readdirSync(projects, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(projects, name));
}

it("a script runs agents and gives its result; run file, journal and transcripts are where others look for them [WFL-1, WFL-5]", async () => {
  await using sample = await stage({ one: ["Hello Ada"] });
  const handle = sample.runtime.workflow(
    `${meta}phase('Greet')\nlog('before')\nconst text = await agent('conv:one Say hello to ' + args.who, { label: 'greeter' })\nreturn { text, total: budget.total }`,
    { who: "Ada" },
  );
  expect(await handle.result).toEqual({ text: "Hello Ada", total: null });
  const state = await handle.ended;
  expect(state).toMatchObject({
    status: "completed",
    logs: ["before"],
    phases: [{ index: 1, title: "Greet" }],
  });
  expect(state.steps).toMatchObject([
    { label: "greeter", phase: "Greet", state: "done", result: "Hello Ada" },
  ]);
  expect(state.runId).toMatch(/^wf_[0-9a-f]{8}-[0-9a-f]{3}$/);
  const [run = ""] = filesOf(sample, `workflows/${state.runId}.json`);
  expect(JSON.parse(readFileSync(run, "utf8"))).toMatchObject({
    status: "completed",
    agentCount: 1,
    workflowName: "w",
  });
  const [journal = ""] = filesOf(sample, `subagents/workflows/${state.runId}/journal.jsonl`);
  const lines = readFileSync(journal, "utf8").trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).type)).toEqual(["launched", "started", "result"]);
  expect(filesOf(sample, ".meta.json")).toEqual([expect.stringContaining(`workflows/${state.runId}/agent-`)]);
  expect(filesOf(sample, `scripts/w-${state.runId}.js`)).toHaveLength(1);
  const types: string[] = [];
  for await (const { change } of handle.events) types.push(change.type);
  expect([types[0], types.at(-1)]).toEqual(["started", "ended"]);
});

it("the frame says where a prompt comes from, and a step has neither Agent nor Workflow [WFL-1, WFL-4]", async () => {
  await using sample = await stage();
  await sample.workspace.write(
    ".claude/agents/boss.md",
    "---\nname: boss\ndescription: Starts others.\ntools: Agent, Workflow, Read\n---\nLead.",
  );
  await sample.runtime.workflow(
    `${meta}return [await agent('conv:a x'), await agent('conv:b x', { agentType: 'boss' })]`,
  ).result;
  const names = sample.requests.map(({ tools }) => tools.map(({ name }) => name));
  expect(names[0]).toContain("Bash");
  expect(names.flat()).not.toContain("Agent");
  expect(names.flat()).not.toContain("Workflow");
  expect(names[1]).toEqual(["Read"]);
  expect(JSON.stringify(sample.requests[0]?.messages)).toContain("computed by the script");
  expect(JSON.stringify(sample.requests[0]?.messages)).toContain("\\n    conv:a x\\n");
});

it("null comes only from the provider; what cannot be had throws [WFL-1]", async () => {
  await using sample = await stage({
    dead: [{ failure: "invalid-request" }],
    text: ["no call"],
    wrong: [{ calls: [{ name: "StructuredOutput", input: { n: "x" } }] }],
    empty: [{ text: "" }],
    two: [
      {
        blocks: [
          { type: "text", text: "first" },
          { type: "text", text: " second \n" },
        ],
      },
    ],
  });
  const schema = "{ schema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } }";
  const { result, ended } = sample.runtime.workflow(`${meta}
    const t = async (f) => { try { return await f() } catch (e) { return 'THROWS ' + e.message.slice(0, 30) } }
    return [await t(() => agent('conv:dead x', { label: 'dead' })), await t(() => agent('conv:none x', { agentType: 'nobody' })),
      await t(() => agent('conv:text x', ${schema})), await t(() => agent('conv:wrong x', ${schema})),
      await t(() => agent('conv:r x', { schema: { type: 'array' } })), await t(() => agent('conv:r x', { isolation: 'remote' })),
      await t(() => agent('conv:empty x')), await t(() => agent('conv:two x')), await t(() => agent(7))]`);
  expect(await result).toEqual([
    null,
    expect.stringContaining("THROWS agent({agentType}): There is"),
    expect.stringContaining("THROWS"),
    expect.stringContaining("THROWS"),
    expect.stringContaining("THROWS"),
    expect.stringContaining("THROWS"),
    "",
    " second \n",
    "",
  ]);
  expect([sample.counts.get("text"), sample.counts.get("wrong"), sample.counts.get("empty")]).toEqual([
    2, 5, 2,
  ]);
  const state = await ended;
  expect(state.failures).toEqual([expect.stringMatching(/^\[dead\] failed: /)]);
});

it("the first valid call ends an agent, with what it gave besides [WFL-1]", async () => {
  await using sample = await stage({
    good: [{ calls: [{ name: "StructuredOutput", input: { n: 5, extra: true } }] }, "never asked"],
    twice: [
      {
        calls: [
          { name: "StructuredOutput", input: { n: 1 } },
          { name: "StructuredOutput", input: { n: 2 } },
        ],
      },
    ],
  });
  const schema = "{ schema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } }";
  const { result } = sample.runtime.workflow(
    `${meta}return [await agent('conv:good x', ${schema}), await agent('conv:twice x', ${schema})]`,
  );
  expect(await result).toEqual([{ n: 5, extra: true }, { n: 2 }]);
  expect(sample.counts.get("good")).toBe(1);
});

it("finished steps are taken whatever else changed: an edit, a failure, another order, another session [WFL-3]", async () => {
  await using sample = await stage({ bad: [{ failure: "invalid-request" }] });
  const run = async (body: string, options = {}) => {
    const handle = sample.runtime.workflow(`${meta}${body}`, undefined, options);
    return [await handle.result, (await handle.ended).runId] as const;
  };
  const [first, resumeRun] = await run(
    "return [await agent('conv:a x'), await agent('conv:b x'), await agent('conv:bad x'), await agent('conv:c x'), await agent('conv:c x')]",
  );
  expect(first).toEqual(["A", "B", null, "C", "C"]);
  expect(sample.counts.get("c")).toBe(2);
  const edited =
    "const r = []\nfor (const p of ['new', 'c', 'b2', 'c', 'a']) r.push(() => agent('conv:' + p + ' x', { label: p }))\nreturn await parallel(r)";
  const [second] = await run(edited, { resumeRun });
  expect(second).toEqual(["NEW", "C", "B2", "C", "A"]);
  expect(Object.fromEntries(sample.counts)).toMatchObject({ a: 1, b: 1, c: 2, new: 1, b2: 1 });
  const [third] = await run(edited, { resumeRun, fresh: ["a"] });
  expect(third).toEqual(second);
  expect(Object.fromEntries(sample.counts)).toMatchObject({ a: 2, c: 2, new: 1, b2: 1 });
});

it("each step that was not taken says why [WFL-3]", async () => {
  await using sample = await stage({ bad: [{ failure: "invalid-request" }] });
  const write = (text: string) =>
    sample.workspace.write(
      ".claude/agents/own.md",
      `---\nname: own\ndescription: Has words of its own.\n---\n${text}`,
    );
  await write("One.");
  const schema = (type: string) =>
    `schema: { type: 'object', properties: { n: { type: '${type}' } } }, label: 'typed'`;
  const run = async (body: string, options = {}) => {
    const handle = sample.runtime.workflow(`${meta}${body}`, undefined, options);
    const { runId, steps } = await handle.ended;
    return { runId, steps: steps.map(({ label, taken, why }) => [label, taken === true ? "taken" : why]) };
  };
  const first =
    await run(`await agent('conv:a x', { label: 'same' }); await agent('conv:a x', { label: 'same' })
    await agent('conv:b x', { label: 'worded' }); await agent('conv:c x', { label: 'own', agentType: 'own' })
    await agent('conv:d x', { label: 'model' }); await agent('conv:bad x', { label: 'bad' })
    await agent('conv:t x', { ${schema("string")} }).catch(() => 1)`);
  expect(first.steps.map(([, why]) => why)).toEqual(Array(7).fill(undefined));
  await write("Two.");
  const second = await run(
    `await agent('conv:new x', { label: 'new' }); for (let i = 0; i < 3; i += 1) await agent('conv:a x', { label: 'same' })
    await agent('conv:b y', { label: 'worded' }); await agent('conv:c x', { label: 'own', agentType: 'own' })
    await agent('conv:d x', { label: 'model', model: 'haiku' }); await agent('conv:bad x', { label: 'bad' })
    await agent('conv:t x', { ${schema("number")} }).catch(() => 1)`,
    { resumeRun: first.runId },
  );
  expect(second.steps).toEqual([
    ["new", "new in this run"],
    ["same", "taken"],
    ["same", "taken"],
    ["same", "new in this run"],
    ["worded", "its prompt changed"],
    ["own", "the definition of its agent changed"],
    ["model", expect.stringMatching(/^its model \(.+ → .*haiku.*\) changed$/)],
    ["bad", expect.stringMatching(/^failed before: ./)],
    ["typed", expect.stringContaining("its schema")],
  ]);
});

it("a step with other rights, or in another mode, runs again and says so [WFL-3]", async () => {
  await using sample = await stage();
  const run = async (options: object) => {
    const handle = sample.runtime.workflow(`${meta}return await agent('conv:a x')`, undefined, options);
    const { runId, steps } = await handle.ended;
    return { resumeRun: runId, step: steps[0] };
  };
  const { resumeRun } = await run({});
  expect((await run({ resumeRun })).step).toMatchObject({ taken: true });
  const denied = await run({ resumeRun, disallowedTools: ["WebFetch"] });
  const edits = await run({ resumeRun, permissionMode: "acceptEdits" });
  for (const { step } of [denied, edits]) expect(step?.why).toBe("its rights changed");
  expect((await run({ resumeRun })).step).toMatchObject({ taken: true });
  expect(sample.counts.get("a")).toBe(3);
});

it("a run that works is refused to every other session, and afterwards it is free [WFL-3]", async () => {
  await using sample = await stage({ b: [{ text: "B", delayMs: 60_000 }] });
  const script = `${meta}return [await agent('conv:a x'), await agent('conv:b x')]`;
  const handle = sample.runtime.workflow(script);
  const { runId } = await handle.started;
  for await (const { change } of handle.events)
    if (change.type === "step" && change.step.index === 2 && change.step.state === "running") break;
  const other = await sample.runtime.open();
  const start = async () => other.workflows?.start({ script, resumeFromRunId: runId });
  await expect(start()).rejects.toMatchObject({ code: "workflow-running" });
  await handle.stop();
  const again = await start();
  await again?.stop();
  const third = sample.runtime.workflow(script.replace("conv:b", "conv:c"), undefined, { resumeRun: runId });
  expect(await third.result).toEqual(["A", "C"]);
  expect(sample.counts.get("a")).toBe(1);
  await other.close();
});

it("a step whose agent had ended before its result was written down is taken from its transcript, in every session [WFL-3]", async () => {
  await using sample = await stage({
    t: [{ calls: [{ name: "StructuredOutput", input: { n: 1 } }] }],
  });
  const script = `${meta}return [await agent('conv:a x'), await agent('conv:t x', { schema: { type: 'object', properties: { n: { type: 'number' } } } })]`;
  const handle = sample.runtime.workflow(script);
  const first = await handle.result;
  const { runId } = await handle.ended;
  const [journal = ""] = filesOf(sample, "journal.jsonl");
  const lines = readFileSync(journal, "utf8").split("\n");
  writeFileSync(journal, lines.filter((line) => !line.includes('"type":"result"')).join("\n"));
  const other = await sample.runtime.open();
  const live = await other.workflows?.start({ script, resumeFromRunId: runId });
  const ended = await live?.ended;
  expect(JSON.parse(ended?.result ?? "")).toEqual(first);
  expect(ended?.steps).toMatchObject([{ taken: true }, { taken: true }]);
  expect(Object.fromEntries(sample.counts)).toEqual({ a: 1, t: 1 });
  await other.close();
});

it("a pattern of a schema that never comes to an end fails its step and stops nothing else [WFL-2]", async () => {
  await using sample = await stage({
    s: [{ calls: [{ name: "StructuredOutput", input: { s: `${"a".repeat(60)}b` } }] }],
  });
  const { result } = sample.runtime.workflow(
    `${meta}return await agent('conv:s x', { schema: { type: 'object', properties: { s: { type: 'string', pattern: '^(a+)+$' } } } }).catch((e) => e.message)`,
  );
  expect(await result).toContain("did not hand in a result");
  expect(sample.counts.get("s")).toBe(1);
});

it("functions of a program run the same way, and call saved scripts [WFL-5]", async () => {
  await using sample = await stage();
  await sample.workspace.write(
    ".claude/workflows/inner.js",
    "export const meta = { name: 'inner', description: 'd' }\nphase('hidden')\nlog('hi')\nreturn [args, await agent('conv:in x'), await workflow('inner').catch((e) => e.message)]\n",
  );
  const { result, ended } = sample.runtime.workflow(
    async ({ agent, parallel, workflow, args }) => [
      args,
      await parallel([() => agent("conv:a x"), () => agent("conv:b x")]),
      await workflow("inner", { deep: 1 }),
    ],
    { n: 1 },
  );
  expect(await result).toEqual([
    { n: 1 },
    ["A", "B"],
    [{ deep: 1 }, "IN", "A workflow that another one called cannot call a workflow itself."],
  ]);
  const state = await ended;
  expect(state.phases).toMatchObject([{ title: "▸ inner", isChild: true }]);
  expect(state.logs).toEqual(["[inner] hi"]);
});

it("a result has the type of its schema, also when it is taken from the journal [WFL-5, WFL-3]", async () => {
  await using sample = await stage({
    day: [
      { calls: [{ name: "StructuredOutput", input: { day: "soon" } }] },
      { calls: [{ name: "StructuredOutput", input: { day: "2026-01-02" } }] },
    ],
    far: [{ calls: [{ name: "StructuredOutput", input: { n: 500 } }] }],
  });
  const when = z.object({ day: z.iso.date().transform((day) => new Date(day)) });
  const small = z.object({ n: z.number().refine((n) => n < 100, "is too large") });
  const seen: Date[] = [];
  const body: WorkflowFunction<undefined, readonly string[]> = async ({ agent, parallel, pipeline }) => {
    const found = await agent("conv:day x", { schema: when });
    if (found !== null) seen.push(found.day);
    const [word, far] = await parallel([
      () => agent("conv:word x"),
      () => agent("conv:far x", { schema: small }).then((value) => value?.n),
    ]);
    const lengths = await pipeline(
      ["one"],
      (item) => agent(`conv:${item} x`),
      (text, item) => text.length + item.length,
    );
    return [word ?? "none", String(far), String(lengths[0]?.toFixed())];
  };
  const first = sample.runtime.workflow(body);
  expect(await first.result).toEqual(["WORD", "null", "6"]);
  const { runId: resumeRun, failures } = await first.ended;
  expect(failures).toEqual([expect.stringContaining("parallel[1] failed: The agent did not hand in")]);
  await sample.runtime.workflow(body, undefined, { resumeRun }).result;
  expect(seen).toEqual([new Date("2026-01-02"), new Date("2026-01-02")]);
  expect(sample.counts.get("day")).toBe(2);
});

it("the cap of agents goes through parallel, equal failures end a phase, and a limit of a phase holds [WFL-1, WFL-4]", async () => {
  await using sample = await stage({ bad: [{ failure: "invalid-request" }] });
  const { result, ended } =
    sample.runtime.workflow(`export const meta = { name: 'w', description: 'd', phases: [{ title: 'Few', maxAgents: 2 }] };
    phase('Many')
    const many = await parallel(Array.from({ length: 15 }, () => () => agent('conv:bad x')))
    phase('Few')
    const few = []
    for (let i = 0; i < 3; i += 1) few.push(await agent('conv:f x').catch((e) => e.message))
    return [many, few]`);
  const [many, few] = (await result) as [unknown[], string[]];
  expect(many).toEqual(Array(15).fill(null));
  expect(few).toEqual(["F", "F", 'The phase "Few" may start 2 agents, and it has started that many.']);
  expect(sample.counts.get("bad")).toBeLessThan(15);
  expect((await ended).logs.join("\n")).toContain(
    'The phase "Many" was stopped: 10 agents in a row failed in the same way',
  );
});

it("a stopped run ends its agents and continues where it was [WFL-3]", async () => {
  await using sample = await stage({ b: [{ text: "B", delayMs: 60_000 }] });
  const script = `${meta}return [await agent('conv:a x'), await agent('conv:b x')]`;
  const handle = sample.runtime.workflow(script);
  for await (const { change } of handle.events)
    if (change.type === "step" && change.step.index === 2 && change.step.state === "running")
      void handle.stop();
  const { status, runId } = await handle.ended;
  expect(status).toBe("killed");
  await expect(handle.result).rejects.toMatchObject({ code: "workflow-stopped" });
  const again = sample.runtime.workflow(`${script.replace("conv:b x", "conv:c x")}`, undefined, {
    resumeRun: runId,
  });
  expect(await again.result).toEqual(["A", "C"]);
  expect(sample.counts.get("a")).toBe(1);
});

it.each([
  ["nothing", "unknown-workflow"],
  [`${meta}import x from 'y'`, "workflow-broken"],
])("%s is refused with what is wrong [WFL-2]", async (what, code) => {
  await using sample = await stage();
  const { started, result } = sample.runtime.workflow(what);
  await expect(started).rejects.toMatchObject({ code });
  await expect(result).rejects.toMatchObject({ code });
});

it("a run whose journal is gone is not started anew as if nothing had been done [WFL-3]", async () => {
  await using sample = await stage();
  const script = `${meta}return await agent('conv:a x')`;
  const handle = sample.runtime.workflow(script);
  const { runId: resumeRun } = await handle.ended;
  rmSync(filesOf(sample, "journal.jsonl")[0] ?? "");
  const again = sample.runtime.workflow(script, undefined, { resumeRun });
  await expect(again.result).rejects.toMatchObject({ code: "journal-gone" });
  expect(sample.counts.get("a")).toBe(1);
});

it("an agent that was cut off continues in its conversation, and is not started again [WFL-3]", async () => {
  await using sample = await stage({
    b: [{ calls: [{ name: "Glob", input: { pattern: "*" } }] }, { text: "late", delayMs: 60_000 }],
  });
  const script = `${meta}return [await agent('conv:a x'), await agent('conv:b x', { label: 'b' })]`;
  const handle = sample.runtime.workflow(script);
  for await (const { change } of handle.events)
    if (change.type === "step" && change.step.toolUses === 1) void handle.stop();
  const { runId, steps } = await handle.ended;
  const again = restarted(sample, { b: ["begun again", "B"] });
  const resumed = again.workflow(script, undefined, { resumeRun: runId });
  expect(await resumed.result).toEqual(["A", "B"]);
  const [first, second] = (await resumed.ended).steps;
  expect(first).toMatchObject({ taken: true });
  expect(second).toMatchObject({
    agentId: steps[1]?.agentId,
    why: "continued where it was cut off",
    toolUses: 0,
  });
});

it.each([
  ["unauthorized", "continued where it failed: ", "begun again"],
  ["invalid-request", "failed before: ", "B"],
] as const)("an agent whose provider failed continues, unless its conversation is to blame: %s [WFL-3]", async (failure, why, first) => {
  await using sample = await stage({
    b: [{ calls: [{ name: "Glob", input: { pattern: "*" } }] }, { failure }],
  });
  const script = `${meta}return [await agent('conv:a x'), await agent('conv:b x', { label: 'b' })]`;
  const handle = sample.runtime.workflow(script);
  expect(await handle.result).toEqual(["A", null]);
  const { runId } = await handle.ended;
  const again = restarted(sample, { b: [first, "B"] });
  const resumed = again.workflow(script, undefined, { resumeRun: runId });
  expect(await resumed.result).toEqual(["A", "B"]);
  expect((await resumed.ended).steps).toMatchObject([
    { taken: true },
    { state: "done", why: expect.stringContaining(why) },
  ]);
});

it("a step in a worktree has its branch again, and runs again where that is gone [WFL-3]", async () => {
  await using sample = await stage({
    w: [{ calls: [{ name: "Write", input: { file_path: "new.txt", content: "x" } }] }, "DONE"],
  });
  const git = (...words: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...words], {
      cwd: sample.workspace.project,
      encoding: "utf8",
    });
  git("init", "-q");
  await sample.workspace.write("a.txt", "a");
  git("add", ".");
  git("commit", "-qm", "one");
  const script = `${meta}return await agent('conv:w x', { isolation: 'worktree' })`;
  const run = async (resumeRun?: string) => {
    const handle = sample.runtime.workflow(script, undefined, { resumeRun, skipPermissions: true });
    expect(await handle.result).toBe("DONE");
    return handle.ended;
  };
  const first = await run();
  const branch = first.steps[0]?.branch ?? "";
  expect(git("branch", "--list", branch)).toContain(branch);
  expect((await run(first.runId)).steps).toMatchObject([{ taken: true, branch }]);
  expect(sample.counts.get("w")).toBe(2);
  git(
    "worktree",
    "remove",
    "--force",
    git("worktree", "list", "--porcelain")
      .match(/^worktree (.*)$/gm)?.[1]
      ?.slice(9) ?? "",
  );
  git("branch", "-D", branch);
  const last = await run(first.runId);
  expect(last.steps[0]).toMatchObject({ why: `its branch ${branch} is gone` });
  expect(sample.counts.get("w")).toBe(4);
  git("commit", "-qm", "two", "--allow-empty");
  const later = await run(first.runId);
  expect(later.steps[0]?.why).toMatch(/^the commit it begins from \([0-9a-f]{12} → [0-9a-f]{12}\) changed$/);
  expect(sample.counts.get("w")).toBe(6);
});

it("the money of a run and of a phase is a ceiling that no agent gets over [WFL-4]", async () => {
  await using sample = await stage();
  await sample.workspace.write(".claude/settings.json", JSON.stringify({ workflows: { maxTokens: 30_000 } }));
  const { result, ended } = sample.runtime.workflow(
    `${meta}const out = []\nfor (let i = 0; i < 40; i += 1) out.push(await agent('conv:s' + i + ' x').catch((e) => e.message))\nreturn out`,
    undefined,
    { trusted: true },
  );
  const out = (await result) as string[];
  expect(out[0]).toBe("S0");
  expect(out.at(-1)).toContain("Token limit reached");
  const { steps } = await ended;
  expect(steps.reduce((sum, { tokens }) => sum + tokens, 0)).toBeLessThanOrEqual(30_000);
});
