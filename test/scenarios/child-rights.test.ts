import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createFakeHost } from "@retinue/testing/fake-host.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedCall, Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";

const calling = (...calls: ScriptedCall[]): Step => ({ calls });
const bash = (command: string): ScriptedCall => ({ name: "Bash", input: { command } });
const names = (request: ModelRequest | undefined) => request?.tools.map(({ name }) => name) ?? [];
const reported = (request: ModelRequest | undefined) => JSON.stringify(request?.messages.at(-1));
const allowAll: RuntimeOptions = { canUseTool: async () => ({ behavior: "allow" }) };
const worker = { name: "worker", description: "Works.", prompt: "You work." };

describe("built-in agents as children", () => {
  const reading = ["Glob", "Grep", "Read"];
  const changing = ["Edit", "Write", "NotebookEdit"];

  test.each([["Explore"], ["Plan"]])("[BLT-2, BLT-3] %s can read and change nothing", async (type) => {
    await using sample = await createSampleRuntime(["Seen."]);
    expect(await sample.runtime.spawn(type, "Look.").result).toMatchObject({ status: "completed" });
    expect(names(sample.requests[0])).toEqual(expect.arrayContaining(reading));
    expect(names(sample.requests[0]).filter((name) => changing.includes(name))).toEqual([]);
  });

  test("[BLT-1] general-purpose has what the session has, without the tools that start others", async () => {
    await using sample = await createSampleRuntime(["Done."]);
    await using session = await sample.runtime.open();
    await session.spawn("general-purpose", "Work.").result;
    const forMain = ["Agent", "SendMessage", "Workflow"];
    const own = session.plan.tools.map(({ name }) => name).filter((name) => !forMain.includes(name));
    expect([...names(sample.requests[0])].sort()).toEqual(own.sort());
  });

  test("[BLT-4] Bash has the one tool", async () => {
    await using sample = await createSampleRuntime(["Done."]);
    await sample.runtime.spawn("Bash", "Run.").result;
    expect(names(sample.requests[0])).toEqual(["Bash"]);
  });

  test("[BLT-7] a definition of a higher scope runs in place of a built-in one", async () => {
    await using sample = await createSampleRuntime(["Mine."]);
    const file = "---\nname: Explore\ndescription: Looks.\ntools: Read\n---\nMY EXPLORER\n";
    await sample.workspace.write(".claude/agents/explore.md", file);
    await sample.runtime.spawn("Explore", "Look.").result;
    expect(sample.requests[0]?.system.join("\n")).toContain("MY EXPLORER");
    expect(names(sample.requests[0])).toEqual(["Read"]);
  });
});

describe("what a child may call", () => {
  test("[TLS-2, TLS-3] its lists narrow single calls, also where the program allows everything", async () => {
    await using sample = await createSampleRuntime(
      [calling(bash("echo yes"), bash("touch made"), bash("echo secret")), "Done."],
      {
        ...allowAll,
        agents: [{ ...worker, tools: ["Bash(echo *)"], disallowedTools: ["Bash(echo secret*)"] }],
      },
    );
    const { denials } = await sample.runtime.spawn("worker", "Work.").result;
    expect(denials.map(({ call }) => call.input)).toEqual([
      { command: "touch made" },
      { command: "echo secret" },
    ]);
  });

  test("[PRM-12] a program decides its calls too, and is reported whose they are", async () => {
    const asked: string[] = [];
    await using sample = await createSampleRuntime([calling(bash("touch made")), "Done."], {
      canUseTool: async (_tool, _input, { agentId }) => {
        asked.push(agentId);
        return { behavior: "deny", message: "not you" };
      },
    });
    const result = await sample.runtime.spawn("general-purpose", "Work.").result;
    expect(asked).toEqual([result.agentId]);
    expect(result.denials[0]?.reason).toContain("not you");
  });

  test("[TLS-9] in the background it cannot ask a person, and continues", async () => {
    const question = {
      question: "Which?",
      header: "Q",
      options: [
        { label: "a", description: "A" },
        { label: "b", description: "B" },
      ],
    };
    await using sample = await createSampleRuntime(
      [calling({ name: "AskUserQuestion", input: { questions: [question] } }), "Done without."],
      { host: createFakeHost({ answers: { "Which?": "a" } }) },
    );
    const result = await sample.runtime.spawn("general-purpose", "Ask.", { background: true }).result;
    expect(result).toMatchObject({ status: "completed", text: "Done without." });
    expect(reported(sample.requests[1])).toContain("no one can answer here");
  });
});

test("a program that takes questions is asked by its agents without an approver [TLS-9]", async () => {
  const options = ["red", "blue"].map((label) => ({ label, description: label }));
  const question = { question: "Which colour?", header: "Colour", options };
  const asks = calling({ name: "AskUserQuestion", input: { questions: [question] } });
  const host = createFakeHost({ answers: { "Which colour?": "blue" } });
  await using sample = await createSampleRuntime([asks, "Blue.", asks, "Child: blue.", asks, "None."], {
    host,
  });
  expect(await sample.runtime.run("Paint.").text).toBe("Blue.");
  expect(host.questions).toHaveLength(1);
  expect(await sample.runtime.spawn("general-purpose", "Paint.").text).toBe("Child: blue.");
  expect(host.questions).toHaveLength(2);
  const { denials } = await sample.runtime.run("Paint.", { permissionMode: "dontAsk" }).result;
  expect(denials).toHaveLength(1);
  expect(host.questions).toHaveLength(2);
});

describe("what a program says about a child", () => {
  test("[DEF-10] a prompt made for the task, and a word at its end", async () => {
    const ends: string[] = [];
    await using sample = await createSampleRuntime(["Done."], {
      agents: [
        {
          ...worker,
          prompt: ({ task }) => `You do only this: ${task}`,
          onEnd: ({ status, text }) => void ends.push(`${status} ${text}`),
        },
      ],
    });
    await sample.runtime.spawn("worker", "count").result;
    expect(sample.requests[0]?.system.join("\n")).toContain("You do only this: count");
    expect(ends).toEqual(["completed Done."]);
  });

  test("[DEF-11, SCP-6] a file that changes counts at the next start of the same session", async () => {
    const file = (body: string) => `---\nname: worker\ndescription: Works.\n---\n${body}\n`;
    await using sample = await createSampleRuntime(["One.", "Two."]);
    await sample.workspace.write(".claude/agents/worker.md", file("BODY-ONE"));
    await using session = await sample.runtime.open();
    await session.spawn("worker", "Work.").result;
    await sample.workspace.write(".claude/agents/worker.md", file("BODY-TWO, which is longer"));
    await session.spawn("worker", "Work.").result;
    const systems = sample.requests.map(({ system }) => system.join("\n"));
    expect(systems.map((text) => [text.includes("BODY-ONE"), text.includes("BODY-TWO")])).toEqual([
      [true, false],
      [false, true],
    ]);
  });

  test("[SCP-5] a deny rule refuses its start by name", async () => {
    await using sample = await createSampleRuntime([], { disallowedTools: ["Agent(Explore)"] });
    await expect(sample.runtime.spawn("Explore", "Look.").result).rejects.toThrow(/denied by the rule/);
  });
});

test("[HKS-2, HKS-3] hooks in a child's own file live as long as it, and only for it", async () => {
  const file = [
    "---",
    "name: worker",
    "description: Works.",
    "hooks:",
    "  PreToolUse:",
    "    - matcher: Glob",
    "      hooks: [{ type: command, command: \"echo 'guarded here' >&2; exit 2\" }]",
    "---",
    "You work.",
  ].join("\n");
  const glob = calling({ name: "Glob", input: { pattern: "*" } });
  await using sample = await createSampleRuntime([glob, "One.", glob, "Two."], { trusted: true });
  await sample.workspace.write(".claude/agents/worker.md", file);
  await using session = await sample.runtime.open();
  await session.spawn("worker", "Work.").result;
  expect(reported(sample.requests[1])).toContain("guarded here");
  await session.spawn("Explore", "Look.").result;
  expect(reported(sample.requests[3])).not.toContain("guarded here");
});
