import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedCall, Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";

async function open(
  steps: readonly Step[],
  files: Readonly<Record<string, string>>,
  options: RuntimeOptions = {},
): Promise<SampleRuntime> {
  const sample = await createSampleRuntime(steps, { trusted: true, ...options });
  for (const [name, text] of Object.entries(files)) {
    const file = name.startsWith("~/") ? join(sample.home, name.slice(2)) : sample.workspace.path(name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  return sample;
}

const skill = (fields: string, body: string): string =>
  `---\ndescription: It helps.\n${fields}---\n${body}\n`;
const read = (file: string): Step => ({ calls: [{ name: "Read", input: { file_path: file } }] });
const call = (name: string): ScriptedCall => ({ name: "Skill", input: { skill: name } });
const lastOf = (request: ModelRequest | undefined) => JSON.stringify(request?.messages.at(-1) ?? "");
const allOf = (request: ModelRequest | undefined) => JSON.stringify(request?.messages ?? "");
const toolOf = (request: ModelRequest | undefined) =>
  request?.tools.find(({ name }) => name === "Skill")?.description ?? "";
const count = (text: string, part: string) => text.split(part).length - 1;

const files = {
  "src/a.ts": "a",
  "src/b.ts": "b",
  "docs/a.md": "m",
  "web/app/c.tsx": "c",
  ".claude/skills/plain/SKILL.md": skill("", "Plain."),
  ".claude/skills/typed/SKILL.md": skill("paths: src/**/*.ts\n", "Typed."),
  "web/.claude/skills/forms/SKILL.md": skill("", "Forms."),
  "web/.claude/commands/build.md": "Build the web.",
};

describe("a skill with `paths`", () => {
  test("[SKL-3] is reported once, after a file was used that it is for, and can be called", async () => {
    await using sample = await open(
      [read("docs/a.md"), read("src/a.ts"), read("src/b.ts"), { calls: [call("typed")] }, "Done."],
      files,
    );
    await sample.runtime.run("Go.").result;
    const [first, second, third, fourth, fifth] = sample.requests;
    expect(toolOf(first)).toContain("- plain: It helps.");
    expect(toolOf(first)).not.toContain("typed");
    expect(allOf(second)).not.toContain("typed");
    expect(lastOf(third)).toContain("- typed: It helps. (for files src/**/*.ts)");
    expect(count(allOf(fourth), "- typed:")).toBe(1);
    expect(lastOf(fifth)).toContain("Typed.");
  });

  test("[SKL-3] the Skill tool is there although nothing is listed yet", async () => {
    const { ".claude/skills/typed/SKILL.md": typed, "src/a.ts": a } = files;
    await using sample = await open([read("src/a.ts"), "Done."], {
      ".claude/skills/typed/SKILL.md": typed,
      "src/a.ts": a,
    });
    await sample.runtime.run("Go.").result;
    expect(toolOf(sample.requests[0])).toContain("(none yet");
    expect(lastOf(sample.requests[1])).toContain("- typed:");
  });

  test("[SKL-3] is not mentioned where a rule denies it, only a person may call it, or the read failed", async () => {
    await using sample = await open(
      [read("src/a.ts"), read("src/missing.py"), "Done."],
      {
        ...files,
        ".claude/skills/mine/SKILL.md": skill("paths: src/**\ndisable-model-invocation: true\n", "Mine."),
        ".claude/skills/snake/SKILL.md": skill('paths: "**/*.py"\n', "Snake."),
      },
      { disallowedTools: ["Skill(typed)"] },
    );
    await sample.runtime.run("Go.").result;
    expect(allOf(sample.requests[2])).not.toMatch(/- (?:typed|mine|snake)/);
  });

  test("[SKL-2, SKL-3] what the main agent was informed of a child is notified only when it uses such a file itself", async () => {
    const plain = "---\nname: worker\ndescription: Works.\ntools: Read, Skill\n---\nYou are the worker.\n";
    const bare = "---\nname: bare\ndescription: Works.\ntools: Read\n---\nYou are bare.\n";
    const spawn = (type: string): Step => ({
      calls: [{ name: "Agent", input: { description: "d", prompt: "p", subagent_type: type } }],
    });
    const by = (who: string, step: Step): Step => ({ match: `You are ${who}`, ...(step as object) });
    await using sample = await open(
      [
        read("src/a.ts"),
        spawn("worker"),
        by("the worker", read("docs/a.md")),
        by("the worker", read("src/a.ts")),
        by("the worker", { text: "Worked." }),
        spawn("bare"),
        by("bare", read("src/a.ts")),
        by("bare", { text: "Worked." }),
        "Done.",
      ],
      { ...files, ".claude/agents/worker.md": plain, ".claude/agents/bare.md": bare },
    );
    await sample.runtime.run("Go.").result;
    const ofWorker = sample.requests.filter(({ system }) => system.join("").includes("You are the worker"));
    expect(ofWorker.map((request) => count(allOf(request), "- typed:"))).toEqual([0, 0, 1]);
    const ofBare = sample.requests.filter(({ system }) => system.join("").includes("You are bare"));
    expect(ofBare).toHaveLength(2);
    expect(allOf(ofBare[1])).not.toContain("typed");
  });

  test("[SKL-3] being informed of it changes neither the tools nor the prompt, so that the provider's cache is read", async () => {
    await using provider = await startFakeProvider({
      script: [read("docs/a.md"), read("src/a.ts"), read("web/app/c.tsx"), "Done.", "Again."],
    });
    await using sample = await open([], { ...files, "CLAUDE.md": "Be brief. ".repeat(900) });
    const { runtime } = sample.restart([], {
      env: { PATH: process.env["PATH"], ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "k" },
      model: undefined,
    } as never);
    for (const prompt of ["Go.", "Again."]) await runtime.run(prompt, { model: "claude-sonnet-4-5" }).result;
    const reported = provider.requests.map(({ request }) =>
      count(allOf(request), "Skills for files you have used"),
    );
    expect(reported).toEqual([0, 0, 1, 2, 0]);
    const steady = provider.requests.map(({ request: { system, tools } }) =>
      JSON.stringify({ system, tools }),
    );
    expect(new Set(steady).size).toBe(1);
    for (const { usage } of provider.requests.slice(1)) expect(usage?.cacheReadTokens).toBeGreaterThan(2000);
  });
});

describe("skills in folders below the working folder", () => {
  test("[SKL-1, SKL-3] count once a file there was used, for the agent and the person", async () => {
    await using sample = await open(
      [{ calls: [call("forms")] }, read("web/app/c.tsx"), { calls: [call("forms")] }, "Done.", "Built."],
      files,
    );
    await using session = await sample.runtime.open();
    expect(await session.prompt("/build").result).toMatchObject({ reason: "unknown_command" });
    await session.prompt("Go.").result;
    expect(lastOf(sample.requests[1])).toContain("There is no skill");
    expect(lastOf(sample.requests[2])).toMatch(/- build: .*- forms: It helps\./);
    expect(lastOf(sample.requests[3])).toContain("Forms.");
    await session.prompt("/build").result;
    expect(lastOf(sample.requests[4])).toContain("Build the web.");
  });

  test("[SKL-3, PRM-11] grant nothing in a folder that is not trusted", async () => {
    await using sample = await open(
      [
        read("web/app/c.tsx"),
        { calls: [call("evil")] },
        { calls: [{ name: "Bash", input: { command: "touch made" } }] },
        "Done.",
      ],
      {
        ...files,
        "web/.claude/skills/evil/SKILL.md": skill("allowed-tools: Bash\n", "!`touch by-command`"),
      },
      { trusted: false },
    );
    await sample.runtime.run("Go.", { allowedTools: ["Skill"] }).result;
    expect(lastOf(sample.requests[2])).toContain("the folder is not trusted");
    for (const name of ["made", "by-command"]) expect(existsSync(sample.workspace.path(name))).toBe(false);
  });
});
