import { readSessionAgents } from "@retinue/config/agents/read-definition-object.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";

const wish = { description: "help me", prompt: "NESTED", subagent_type: "general-purpose" };
const isChild = ({ messages }: ModelRequest) => JSON.stringify(messages[0]).includes("TASK-ONE");
const isNested = ({ messages }: ModelRequest) => JSON.stringify(messages[0]).includes("NESTED");

/** The main agent starts a boss, who tries under both names and then gives up. */
const steps: readonly Step[] = [
  { match: isNested, text: "I should not be here.", times: "any" },
  { match: isChild, calls: ["Agent", "Task", "agent"].map((name) => ({ name, input: wish })) },
  { match: isChild, text: "No helpers." },
  { calls: [{ name: "Agent", input: { description: "go", prompt: "TASK-ONE", subagent_type: "boss" } }] },
  { text: "Fine." },
];

function expectNoNesting({ requests }: Pick<SampleRuntime, "requests">): void {
  expect(requests.filter(isNested)).toEqual([]);
  const own = requests.filter(isChild);
  expect(own.flatMap(({ tools }) => tools.map(({ name }) => name))).not.toContain("Agent");
  const answers = JSON.stringify(own.at(-1)?.messages.at(-1));
  for (const name of ["Agent", "Task", "agent"])
    expect(answers).toContain(`There is no tool \\"${name}\\" here.`);
}

const boss = {
  description: "Bosses others.",
  prompt: "You boss.",
  tools: ["Agent", "Task", "Task(general-purpose)", "Read"],
};
const fromJson = () => readSessionAgents(JSON.parse(JSON.stringify({ boss })), () => undefined).definitions;

describe("[TLS-7] no child starts a child", () => {
  test.each<[string, RuntimeOptions, string?]>([
    [
      "a file that lists Agent and Task",
      {},
      "---\nname: boss\ndescription: Bosses others.\ntools: Agent, Task, Read\n---\nYou boss.\n",
    ],
    ["a file without a list", {}, "---\nname: boss\ndescription: Bosses others.\n---\nYou boss.\n"],
    ["the JSON of --agents", { agents: fromJson() }],
    ["a definition of the program", { agents: [{ name: "boss", ...boss }] }],
    [
      "a program that allows every call",
      { agents: [{ name: "boss", ...boss }], canUseTool: async () => ({ behavior: "allow" }) },
    ],
    [
      "hooks that allow it and ask for it",
      {
        agents: [{ name: "boss", ...boss }],
        hooks: [
          {
            event: "SubagentStart",
            run: async () => ({
              hookSpecificOutput: {
                hookEventName: "SubagentStart",
                additionalContext: "Use the Agent tool.",
              },
            }),
          },
          {
            event: "PreToolUse",
            run: async () => ({
              hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow" },
            }),
          },
        ],
      },
    ],
  ])("with %s", async (_title, options, file) => {
    await using sample = await createSampleRuntime(steps, options);
    if (file !== undefined) await sample.workspace.write(".claude/agents/boss.md", file);
    await using session = await sample.runtime.open({
      permissionMode: "bypassPermissions",
      skipPermissions: true,
    });
    expect(await session.prompt("Begin.").result).toMatchObject({ status: "completed", text: "Fine." });
    expect(session.tasks.list().map(({ agentType }) => agentType)).toEqual(["boss"]);
    expectNoNesting(sample);
  });

  test("with an earlier conversation that holds such calls, when it is taken up again", async () => {
    const again: readonly Step[] = [
      steps[0] ?? "",
      { match: isChild, calls: [{ name: "Agent", input: wish }] },
      { match: isChild, text: "None yet." },
      { match: isChild, calls: ["Agent", "Task", "agent"].map((name) => ({ name, input: wish })) },
      { match: isChild, text: "Still none." },
    ];
    await using sample = await createSampleRuntime(again, { agents: [{ name: "boss", ...boss }] });
    await using session = await sample.runtime.open();
    const first = await session.spawn("boss", "TASK-ONE").result;
    const second = await session.spawn("boss", "Once more.", { resume: first.agentId }).result;
    expect(second).toMatchObject({ status: "completed", text: "Still none.", agentId: first.agentId });
    expect(JSON.stringify(sample.requests.at(-1)?.messages).match(/"name":"Agent"/g)).toHaveLength(2);
    expectNoNesting(sample);
  });
});

test("[AGT-1] a main agent that calls the tool by its old name starts a child", async () => {
  await using sample = await createSampleRuntime([
    { match: isNested, text: "Here I am." },
    { calls: [{ name: "Task", input: wish }] },
    { text: "Good." },
  ]);
  expect(await sample.runtime.run("Begin.").result).toMatchObject({ status: "completed", text: "Good." });
  expect(JSON.stringify(sample.requests.at(-1)?.messages)).toContain("Here I am.");
});
