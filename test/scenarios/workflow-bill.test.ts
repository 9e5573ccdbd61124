import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { expect, onTestFinished, test } from "vitest";

type CanUseTool = NonNullable<RuntimeOptions["canUseTool"]>;

const script = `export const meta = { name: 'sweep', description: 'Sweeps files', phases: [{ title: 'Work' }, { title: 'Judge' }] }
phase('Work')
const done = await parallel(args.files.map((file) => () => agent('PIECE ' + file)))
phase('Judge')
return await agent('PIECE judge')`;
const open = script.replace("args.files", "(await agent('PIECE find')).split(',')");
const modelOptions = { facts: { price: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } } };

async function openSample(steps: readonly Step[], options: RuntimeOptions = {}): Promise<SampleRuntime> {
  const sample = await createSampleRuntime(steps, { modelOptions, ...options });
  onTestFinished(() => sample[Symbol.asyncDispose]());
  await sample.workspace.write(".claude/workflows/sweep.js", script);
  return sample;
}

/** A main agent that starts the workflow, and agents that answer. */
const starts = (input: object): readonly Step[] => [
  {
    match: ({ messages }: ModelRequest) => JSON.stringify(messages[0]).includes("PIECE"),
    text: "done",
    times: "any",
  },
  { calls: [{ name: "Workflow", input }] },
  { text: "Answered.", times: "any" },
];

const named = { name: "sweep", args: { files: ["a", "b", "c"] } };

test("the question before a workflow shows its phases, the bill and the whole script, and is the only one [BIL-2, WFL-4]", async () => {
  for (const settings of [{}, { quotes: { askAboveAgents: 1 } }, { quotes: { askAboveUsd: 0.0001 } }]) {
    const asked: { tool: string; preview: Parameters<CanUseTool>[2]["preview"]; started: number }[] = [];
    const sample = await openSample(starts(named), {
      settings,
      canUseTool: async (tool, _input, { preview }) => {
        asked.push({ tool, preview, started: sample.requests.length });
        return { behavior: "allow" };
      },
    });
    await using session = await sample.runtime.open();
    await session.run("Begin.").result;
    expect(asked.map(({ tool, started }) => [tool, started])).toEqual([["Workflow", 1]]);
    const { rows = [], text } = asked[0]?.preview ?? {};
    expect(text).toBe(script);
    const shown = rows.join("\n");
    expect(shown).toContain("sweep: Sweeps files");
    expect(shown).toMatch(/phase Work +3 agents +likely \$/);
    expect(shown).toMatch(/phase Judge +1 agent +likely \$/);
    expect(shown).toContain("4 agents, together likely $");
    expect(shown).toContain("may write:");
    expect(rows.every((row) => row.length <= 74 || row.includes("/"))).toBe(true);
    expect(session.workflows?.runs.list().map(({ status }) => status)).toEqual(["completed"]);
  }
});

test("a workflow that a rule allows is asked about by its bill, above a threshold only [BIL-2]", async () => {
  const permissions = { allow: ["Workflow"] };
  for (const [quotes, count] of [
    [{ askAboveAgents: 3 }, 1],
    [{ askAboveAgents: 4 }, 0],
    [{ askAboveUsd: 0.0001 }, 1],
    [{ askAboveUsd: 1000 }, 0],
  ] as const) {
    const asked: unknown[] = [];
    const sample = await openSample(starts({ script: script, args: named.args }), {
      settings: { quotes, permissions },
      canUseTool: async (tool, input, { quote, reason }) => {
        asked.push({ tool, input, agents: quote?.agents.length, reason });
        return { behavior: "deny", message: "too dear today" };
      },
    });
    await using session = await sample.runtime.open();
    await session.run("Begin.").result;
    expect(asked).toHaveLength(count);
    if (count === 0) continue;
    expect(asked[0]).toMatchObject({
      tool: "Agent",
      input: { start: 'the workflow "sweep"' },
      agents: 4,
      reason: expect.stringContaining('the workflow "sweep": 4 agents would start: likely $'),
    });
    expect(session.workflows?.runs.list()).toEqual([]);
    expect(JSON.stringify(sample.requests.at(-1)?.messages)).toMatch(
      /The workflow was not started\. None of these 4 agents was started\. [^"]*too dear today/,
    );
  }
});

test("where a script decides how many agents start, that is above every threshold but a ceiling of the run [BIL-2, WFL-4]", async () => {
  for (const [settings, reason] of [
    [
      { quotes: { askAboveAgents: 50 } },
      /how many agents start is decided while they run, and settings ask above 50 agents/,
    ],
    [
      { quotes: { askAboveUsd: 500 } },
      /how many agents start is decided while they run, and settings ask above \$500/,
    ],
    [{ quotes: { askAboveUsd: 500 }, workflows: { maxBudgetUsd: 5 } }, undefined],
  ] as const) {
    const reasons: string[] = [];
    const sample = await openSample([{ text: "x,y", times: "any" }], {
      settings,
      canUseTool: async (_tool, _input, context) => {
        reasons.push(context.reason);
        return { behavior: "allow" };
      },
    });
    const run = sample.runtime.workflow(open);
    expect((await run.ended).status).toBe("completed");
    expect(reasons).toEqual(reason === undefined ? [] : [expect.stringMatching(reason)]);
  }
});

test("in unattended runs a workflow above a threshold does not start and names the setting [BIL-2]", async () => {
  const sample = await openSample([], { settings: { quotes: { askAboveAgents: 1 } } });
  const run = sample.runtime.workflow(script, named.args);
  await expect(run.result).rejects.toThrow(
    /The workflow was not started\. None of these 4 agents was started\. .*settings ask above 1 agent \(quotes\.askAboveAgents\)/,
  );
  expect(sample.requests).toEqual([]);
});

test("a bill is made without starting anything, with limits of phases and of the run in it [WFL-4]", async () => {
  const sample = await openSample([], { settings: { workflows: { maxBudgetUsd: 2 } } });
  await using session = await sample.runtime.open();
  const bounded = open.replace("{ title: 'Work' }", "{ title: 'Work', maxAgents: 7 }");
  const bill = await session.workflows?.bill({ script: bounded });
  expect(bill?.phases.map(({ title, agents, isOpen }) => [title, agents, isOpen])).toEqual([
    ["Work", 8, false],
    ["Judge", 1, false],
  ]);
  expect(bill).toMatchObject({ isOpen: false, most: { usd: 2, from: "workflows.maxBudgetUsd" } });
  expect(sample.requests).toEqual([]);
});
