import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";

/** A runtime with files of the project, of the home (`~/`), and of the organisation (`managed/`). */
async function open(
  steps: readonly Step[],
  files: Readonly<Record<string, string>>,
  options: RuntimeOptions = {},
): Promise<SampleRuntime> {
  const sample = await createSampleRuntime(steps, { trusted: true, ...options });
  for (const [name, text] of Object.entries(files)) {
    const isOutside = name.startsWith("managed/");
    const own = isOutside ? join(sample.workspace.root, name) : sample.workspace.path(name);
    const file = name.startsWith("~/") ? join(sample.home, name.slice(2)) : own;
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  return sample;
}

const skill = (fields: string, body: string): string =>
  `---\ndescription: It helps.\n${fields}---\n${body}\n`;
const call = (name: string): Step => ({ calls: [{ name: "Skill", input: { skill: name } }] });
const lastOf = (request: ModelRequest | undefined) => JSON.stringify(request?.messages.at(-1) ?? "");

describe("hooks of a skill", () => {
  const hooks =
    "hooks:\n  PreToolUse:\n    - matcher: Read\n      hooks: [{type: command, command: 'echo heard > log'}]\n";
  const files = { ".claude/skills/watch/SKILL.md": skill(hooks, "Watch."), "a.txt": "a" };
  const steps = (): readonly Step[] => [
    call("watch"),
    { calls: [{ name: "Read", input: { file_path: "a.txt" } }] },
    "Done.",
  ];

  test("[SKL-3] are heard where they may be", async () => {
    await using sample = await open(steps(), files);
    await sample.runtime.run("Go.", { allowedTools: ["Skill(watch)"] }).result;
    expect(existsSync(sample.workspace.path("log"))).toBe(true);
  });

  test.each([
    ["in a folder that is not trusted", {}, { trusted: false }, "the folder is not trusted"],
    [
      "where settings disable hooks",
      { "~/.claude/settings.json": '{"disableAllHooks": true}' },
      {},
      "settings disable hooks",
    ],
    [
      "where only those of the organisation are permitted",
      { "managed/managed-settings.json": '{"allowManagedHooksOnly": true}' },
      {},
      "only the organisation's hooks are allowed",
    ],
  ])("[SKL-3, PRM-11] are not registered %s, and that is said", async (_, more, options, why) => {
    for (const begin of ["Go.", "/watch"]) {
      const whole = steps();
      await using sample = await open(
        begin === "Go." ? whole : whole.slice(1),
        { ...files, ...more },
        options,
      );
      await sample.runtime.run(begin, { allowedTools: ["Skill(watch)"] }).result;
      expect(existsSync(sample.workspace.path("log"))).toBe(false);
      expect(JSON.stringify(sample.requests.at(-1)?.messages)).toContain(
        `The hooks of watch were not registered: ${why}`,
      );
    }
  });
});

describe("a skill in an agent of its own", () => {
  const files = {
    ".claude/skills/far/SKILL.md": skill("context: fork\nagent: Explore\nbackground: true\n", "Look far."),
  };
  const seen: Step = {
    match: ({ messages }: ModelRequest) => JSON.stringify(messages[0]).includes("Look far."),
    text: "Far seen.",
  };

  test("[SKL-3] that is for the background is not waited for, and its result comes as a notice", async () => {
    await using sample = await open([call("far"), seen, "Meanwhile.", "Done."], files);
    const result = await sample.runtime.run("Go.").result;
    expect(result.text).toBe("Done.");
    const own = sample.requests.filter(({ messages }) => JSON.stringify(messages[0]).includes("Go."));
    expect(lastOf(own[1])).not.toContain("Far seen.");
    expect(JSON.stringify(own.at(-1)?.messages)).toContain("Far seen.");
  });

  test("[SKL-3] is given as text to an agent that may start none", async () => {
    await using sample = await open([call("far"), "Done."], files, { disallowedTools: ["Agent"] });
    await sample.runtime.run("Go.").result;
    expect(lastOf(sample.requests[1])).toContain(
      "this agent may not start other agents. Follow it yourself.",
    );
    expect(lastOf(sample.requests[1])).toContain("Look far.");
  });
});

test("[SKL-3] a skill's effort holds for the rest of the turn", async () => {
  await using sample = await open([call("think"), "First.", "Second."], {
    ".claude/skills/think/SKILL.md": skill("effort: high\n", "Think."),
  });
  await using session = await sample.runtime.open();
  await session.prompt("One.").result;
  await session.prompt("Two.").result;
  expect(sample.requests.map(({ effort }) => effort)).toEqual([undefined, "high", undefined]);
});

test("[SKL-1] a skill that a rule denies is not preloaded, and that is reported", async () => {
  await using sample = await open(
    ["Done."],
    {
      ".claude/skills/style/SKILL.md": skill("", "Rule of style."),
      ".claude/agents/writer.md": "---\nname: writer\ndescription: d\nskills: style\n---\nYou write.\n",
    },
    { disallowedTools: ["Skill(style)"] },
  );
  await using session = await sample.runtime.open({ agent: "writer" });
  await session.prompt("Go.").result;
  expect(session.plan.skills ?? []).toEqual([]);
  expect(session.plan.notes.join("\n")).toContain('"style" was not preloaded: a rule denies it');
  expect(sample.requests[0]?.system.join("\n")).not.toContain("Rule of style");
});

test("[SKL-3] commands find the facts of the skill in their environment, whatever its folder is called", async () => {
  const body = '!`printf \'%s\\n\' "$CLAUDE_SKILL_DIR" "$CLAUDE_PROJECT_DIR"`';
  await using sample = await open([call("odd"), "Done."], {
    ".claude/skills/a $(touch made) b/odd/SKILL.md": skill("allowed-tools: Bash\n", body),
  });
  await sample.runtime.run("Go.", { allowedTools: ["Skill(odd)"] }).result;
  expect(lastOf(sample.requests[1])).toContain(
    `${sample.workspace.path(".claude/skills/a $(touch made) b/odd")}\\n${sample.workspace.project}`,
  );
  expect(existsSync(sample.workspace.path("made"))).toBe(false);
});

test("[SKL-3] a skill runs so many commands and no more, and none of them moves the agent", async () => {
  const body = `!\`mkdir sub; cd sub\` ${"!`echo x >> count` ".repeat(45)}`;
  await using sample = await open(
    [call("many"), { calls: [{ name: "Bash", input: { command: "pwd; wc -l < count" } }] }, "Done."],
    { ".claude/skills/many/SKILL.md": skill("allowed-tools: Bash\n", body) },
  );
  await sample.runtime.run("Go.", { allowedTools: ["Skill(many)"] }).result;
  expect(lastOf(sample.requests[1])).toContain("a skill may run 40 commands");
  expect(lastOf(sample.requests[2])).toMatch(/project\\n\s*39\b/);
});

test("[SKL-3] a slip is answered with the names that a model may call, and no others", async () => {
  await using sample = await open([call("nothing"), "Done."], {
    ".claude/skills/open/SKILL.md": skill("", "Open."),
    ".claude/skills/mine/SKILL.md": skill("disable-model-invocation: true\n", "Mine."),
  });
  await sample.runtime.run("Go.").result;
  expect(lastOf(sample.requests[1])).toContain("Available: open.");
});

test("[SKL-1, SCP-2] a plugin's skill knows its folder and where it may keep files", async () => {
  await using sample = await open(["Done."], {
    "kit/.claude-plugin/plugin.json": '{"name": "kit"}',
    "kit/skills/a/SKILL.md": skill("name: hello\n", "$" + "{CLAUDE_PLUGIN_ROOT} $" + "{CLAUDE_PLUGIN_DATA}"),
  });
  const { runtime, requests } = sample.restart(["Done."], {
    pluginDirectories: [sample.workspace.path("kit")],
  });
  await runtime.run("/kit:hello").result;
  const data = join(sample.home, ".claude/plugins/data/kit");
  expect(lastOf(requests[0])).toContain(`${sample.workspace.path("kit")} ${data}`);
});

describe("a person's /name", () => {
  const files = {
    ".claude/skills/ship/SKILL.md": skill("allowed-tools: Bash(touch *)\n", "Ship. !`touch made`"),
    ".claude/skills/slow/SKILL.md": skill("allowed-tools: Bash\n", "!`touch begun; sleep 600; touch made`"),
  };

  test("[SKL-3] works for a skill that is denied to agents, which is then for people only", async () => {
    await using sample = await open(["Done."], files, { disallowedTools: ["Skill(ship)"] });
    await sample.runtime.run("/ship").result;
    expect(lastOf(sample.requests[0])).toContain("Ship.");
    expect(existsSync(sample.workspace.path("made"))).toBe(true);
  });

  test("[SKL-3] is gone once it is switched off", async () => {
    const settings = JSON.stringify({ skillOverrides: { ship: "off" } });
    await using sample = await open([], files, { settings });
    expect(await sample.runtime.run("/ship").result).toMatchObject({ reason: "unknown_command" });
  });

  test("[SKL-3] is put in once, and the same words behind it stay words", async () => {
    await using sample = await open(["Done."], files);
    await sample.runtime.run([
      { type: "text", text: "/ship" },
      { type: "text", text: "/ship" },
    ]).result;
    expect(lastOf(sample.requests[0]).split("Ship.").length - 1).toBe(1);
    expect(lastOf(sample.requests[0])).toContain('"/ship"');
  });

  test("[SKL-3, HKS-6] that a hook refuses runs nothing", async () => {
    const hook = { hooks: [{ type: "command", command: "echo no >&2; exit 2" }] };
    const settings = JSON.stringify({ hooks: { UserPromptSubmit: [hook] } });
    await using sample = await open([], files, { settings });
    expect(await sample.runtime.run("/ship").result).toMatchObject({
      status: "failed",
      reason: "prompt_blocked",
    });
    expect(existsSync(sample.workspace.path("made"))).toBe(false);
  });

  test("[SKL-3] that is stopped while its command runs ends as stopped, and reaches no model", async () => {
    await using sample = await open([], files);
    const run = sample.runtime.run("/slow");
    await expect.poll(() => existsSync(sample.workspace.path("begun")), { timeout: 20_000 }).toBe(true);
    expect(await run.stop()).toMatchObject({ status: "stopped" });
    expect(sample.requests).toEqual([]);
    expect(existsSync(sample.workspace.path("made"))).toBe(false);
  });
});
