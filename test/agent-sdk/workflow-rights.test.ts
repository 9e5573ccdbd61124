import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, test } from "vitest";
import { createSdkStage, ofType, resultOf, type SdkStage } from "./sdk-stage.ts";

const inline =
  "export const meta = { name: 'saved', description: 'Says so itself', phases: [{ title: 'P' }] }\nreturn 'INLINE'\n";
const saved = "export const meta = { name: 'saved', description: 'A saved one' }\nreturn 'SAVED'\n";

/** A main agent that makes these calls, one after the other, and then says END. */
async function stage(...inputs: readonly object[]): Promise<SdkStage> {
  const made = await createSdkStage([
    {
      times: "any",
      respond({ messages }) {
        const turn = messages.filter(({ role }) => role === "assistant").length;
        const input = inputs[turn];
        return input === undefined ? "END" : { calls: [{ name: "Workflow", input }] };
      },
    },
  ]);
  const file = join(made.home, ".claude/workflows/saved.js");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, saved);
  return made;
}

async function play(made: SdkStage, options: Options = {}) {
  const finished = await made.run("go", options);
  const started = ofType(finished, "system", "task_started").map((message) => message["workflow_name"]);
  const denials = (resultOf(finished)?.["permission_denials"] as { tool_name: string }[] | undefined) ?? [];
  return { finished, started: started.length, denied: denials.map(({ tool_name }) => tool_name) };
}

const calls = [{ name: "saved" }, { script: inline }];

describe("one question per run [WFL-4]", () => {
  test.each<[string, Options, number]>([
    ["no one can be asked", {}, 0],
    ["accepted edits are no answer", { permissionMode: "acceptEdits" }, 0],
    ["the mode that asks nobody", { permissionMode: "dontAsk" }, 0],
    ["nothing is asked", { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true }, 2],
    ["a rule for all", { allowedTools: ["Workflow"] }, 2],
    [
      "a rule for a saved one is none for a script that calls itself so",
      { allowedTools: ["Workflow(saved)"] },
      1,
    ],
    ["a rule for another", { allowedTools: ["Workflow(other)"] }, 0],
    [
      "a deny rule for a saved one",
      {
        permissionMode: "bypassPermissions",
        allowDangerouslySkipPermissions: true,
        disallowedTools: ["Workflow(saved)"],
      },
      1,
    ],
  ])("%s", async (_title, options, count) => {
    const { started, denied } = await play(await stage(...calls), options);
    expect([started, denied.length]).toEqual([count, 2 - count]);
  });

  test("the question shows the whole script, and a host that changes it changes what runs", async () => {
    const asked: Record<string, unknown>[] = [];
    const made = await stage({ name: "saved" }, { script: inline });
    const { finished, started } = await play(made, {
      async canUseTool(_tool, shown) {
        asked.push(shown);
        return asked.length === 1
          ? { behavior: "allow", updatedInput: shown }
          : { behavior: "allow", updatedInput: { ...shown, script: inline.replace("INLINE", "CHANGED") } };
      },
    });
    expect(asked).toMatchObject([
      { name: "saved", script: saved, description: "A saved one" },
      { script: inline, description: "Says so itself", phases: [{ title: "P" }] },
    ]);
    expect(started).toBe(2);
    const prompts = ofType(finished, "system", "task_started").map((message) => message["prompt"]);
    expect(prompts).toEqual([saved, inline.replace("INLINE", "CHANGED")]);
  });

  test("a script that is broken is an error with its line, and no question is asked", async () => {
    let questions = 0;
    const made = await stage(
      { script: "export const meta = { name: 'x', description: 'd' }\nimport x from 'y'" },
      {},
    );
    const { started } = await play(made, {
      async canUseTool() {
        questions += 1;
        return { behavior: "deny", message: "no" };
      },
    });
    expect([started, questions]).toEqual([0, 0]);
    const last = JSON.stringify(made.provider.requests.at(-1)?.request.messages);
    expect(last).toContain("line 2");
    expect(last).toContain("give script, name or scriptPath");
  });
});

describe("workflows are off [WFL-1]", () => {
  test.each<[string, Options]>([
    ["disableWorkflows", { settings: JSON.stringify({ disableWorkflows: true }) }],
    ["enableWorkflows", { settings: JSON.stringify({ enableWorkflows: false }) }],
    ["the variable", { env: { CLAUDE_CODE_DISABLE_WORKFLOWS: "1" } }],
    ["a deny rule", { disallowedTools: ["Workflow"] }],
  ])("by %s: the tool is not there", async (_title, options) => {
    const made = await stage();
    const { finished } = await play(made, options);
    const [init] = ofType(finished, "system", "init");
    expect(init?.["tools"]).not.toContain("Workflow");
    expect(init?.["slash_commands"]).not.toContain("saved");
    expect(made.provider.requests[0]?.request.tools.map(({ name }) => name)).not.toContain("Workflow");
  });

  test("otherwise it is, with the saved ones as commands that ask for it", async () => {
    const made = await stage();
    const { finished } = await play(made);
    const [init] = ofType(finished, "system", "init");
    expect(init?.["tools"]).toContain("Workflow");
    expect(init?.["slash_commands"]).toContain("saved");
    expect(init?.["skills"]).toContain("saved");
    const again = await stage();
    await again.run("/saved some words");
    const asked = JSON.stringify(again.provider.requests[0]?.request.messages);
    expect(asked).toContain("call the Workflow tool");
    expect(asked).toContain("some words");
  });
});

test.each([
  [{}, true],
  [{ settings: JSON.stringify({ workflowKeywordTriggerEnabled: false }) }, false],
])("the word ultracode asks for a workflow, unless settings say otherwise: %j [WFL-1]", async (options, isAsked) => {
  const made = await stage();
  await made.run("Do it with ultracode.", options);
  expect(JSON.stringify(made.provider.requests[0]?.request.messages).includes("by a workflow")).toBe(isAsked);
});

test("/workflows needs a terminal [WFL-1]", async () => {
  const made = await stage();
  const finished = await made.run("/workflows");
  expect(made.provider.requests).toHaveLength(0);
  expect(JSON.stringify(resultOf(finished))).toContain("/workflows");
});

test.each<[Record<string, unknown>, string, boolean]>([
  [{}, "review-diff", true],
  [{ disableBundledSkills: true }, "review-diff", false],
  [{}, "up to about fifteen agents", true],
  [{ workflowSizeGuideline: "small" }, "up to about five agents", true],
])("%j decides what the tool says of workflows: %s [WFL-1]", async (settings, text, isSaid) => {
  const made = await stage();
  await made.run("go", { settings: JSON.stringify(settings) });
  const tool = made.provider.requests[0]?.request.tools.find(({ name }) => name === "Workflow");
  expect(tool?.description.includes(text)).toBe(isSaid);
});
