import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Message } from "@retinue/core/conversation/message.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";

type Written = Readonly<Record<string, string>>;

/** A runtime with files of the project, and of the home where the path begins with `~/`. */
async function open(
  steps: readonly Step[],
  files: Written,
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
const call = (name: string, args?: string) => ({
  name: "Skill",
  input: { skill: name, args },
});
const bash = (command: string) => ({ name: "Bash", input: { command } });

function lastText(request: ModelRequest | undefined): string {
  return JSON.stringify(request?.messages.at(-1) ?? "");
}

/** The text of each result of the last answer's calls. */
function results(
  request: ModelRequest | undefined,
): readonly { readonly text: string; readonly isError: boolean }[] {
  const message: Message | undefined = request?.messages.at(-1);
  if (message?.role !== "user" || typeof message.content === "string") return [];
  return message.content.flatMap((block) =>
    block.type === "tool_result"
      ? [{ text: typeof block.content === "string" ? block.content : "", isError: block.is_error === true }]
      : [],
  );
}

describe("the Skill tool", () => {
  test("[SKL-3] lists the skills there are and gives the text of one with its arguments", async () => {
    await using sample = await open([{ calls: [call("deploy", "staging now")] }, "Done."], {
      ".claude/skills/deploy/SKILL.md": skill("", "Deploy to $0, $ARGUMENTS."),
      "~/.claude/skills/secret/SKILL.md": skill("disable-model-invocation: true\n", "Only for people."),
    });
    const result = await sample.runtime.run("Go.").result;
    expect(result.status).toBe("completed");
    const tool = sample.requests[0]?.tools.find(({ name }) => name === "Skill");
    expect(tool?.description).toContain("- deploy: It helps.");
    expect(tool?.description).not.toContain("secret");
    expect(results(sample.requests[1])[0]?.text).toContain("Deploy to staging, staging now.");
    expect(results(sample.requests[1])[0]?.text).toContain(
      `Base directory of this skill: ${sample.workspace.path(".claude/skills/deploy")}`,
    );
  });

  test("[SKL-3] is not there when there is nothing to call", async () => {
    await using sample = await open(["Done."], {});
    await sample.runtime.run("Go.").result;
    expect(sample.requests[0]?.tools.map(({ name }) => name)).not.toContain("Skill");
  });

  test.each([
    ["deplyo", /There is no skill \\"deplyo\\".*Did you mean deploy\?.*Available: deploy/],
    ["../deploy", /There is no skill/],
    ["mine", /only users may call it/],
  ])("[SKL-3] refuses %s and says why", async (name, why) => {
    await using sample = await open([{ calls: [call(name)] }, "Done."], {
      ".claude/skills/deploy/SKILL.md": skill("", "Deploy."),
      ".claude/skills/mine/SKILL.md": skill("disable-model-invocation: true\n", "Mine."),
    });
    await sample.runtime.run("Go.").result;
    expect(results(sample.requests[1])[0]?.isError).toBe(true);
    expect(lastText(sample.requests[1])).toMatch(why);
  });

  test("[SKL-3] a deny rule keeps a skill from the model, also under a slash", async () => {
    await using sample = await open(
      [{ calls: [call("deploy"), call("/deploy")] }, "Done."],
      {
        ".claude/skills/deploy/SKILL.md": skill("", "Deploy."),
        ".claude/skills/other/SKILL.md": skill("", "x"),
      },
      { disallowedTools: ["Skill(deploy)"] },
    );
    await sample.runtime.run("Go.").result;
    expect(sample.requests[0]?.tools.find(({ name }) => name === "Skill")?.description).not.toContain(
      "deploy:",
    );
    expect(results(sample.requests[1]).map(({ isError }) => isError)).toEqual([true, true]);
  });
});

describe("what a skill may do besides its text", () => {
  const files = {
    ".claude/skills/ship/SKILL.md": skill(
      "allowed-tools: Bash(touch *), AskUserQuestion\ndisallowed-tools: Grep\n",
      "State: !`echo from-the-command`",
    ),
  };
  const steps = (): readonly Step[] => [
    { calls: [call("ship")] },
    { calls: [bash("touch made"), { name: "Grep", input: { pattern: "x" } }] },
    "First.",
    { calls: [bash("touch again")] },
    "Second.",
  ];

  test("[SKL-3] its grants hold for the prompt that called it, and no longer", async () => {
    await using sample = await open(steps(), files);
    await using session = await sample.runtime.open({ allowedTools: ["Skill(ship)"] });
    await session.prompt("One.").result;
    expect(results(sample.requests[1])[0]?.text).toContain("State: from-the-command");
    expect(existsSync(sample.workspace.path("made"))).toBe(true);
    expect(results(sample.requests[2])[1]).toMatchObject({ isError: true });
    await session.prompt("Two.").result;
    expect(existsSync(sample.workspace.path("again"))).toBe(false);
  });

  test("[SKL-3] without a rule and with no one to ask, only the text is given, and that is reported", async () => {
    await using sample = await open(steps(), files);
    await sample.runtime.run("One.").result;
    const [given] = results(sample.requests[1]);
    expect(given?.isError).toBe(false);
    expect(given?.text).not.toContain("State: from-the-command");
    expect(given?.text).toContain("`echo from-the-command` was not run");
    expect(given?.text).toContain("A rule Skill(ship) allows it");
    expect(existsSync(sample.workspace.path("made"))).toBe(false);
  });

  test("[SKL-3] a person who is asked and says no refuses the skill", async () => {
    const asked: string[] = [];
    await using sample = await open([{ calls: [call("ship")] }, "Done."], files, {
      canUseTool: async (tool) => {
        asked.push(tool);
        return { behavior: "deny", message: "not today" };
      },
    });
    await sample.runtime.run("One.").result;
    expect(asked).toEqual(["Skill"]);
    expect(results(sample.requests[1])[0]).toMatchObject({ isError: true });
    expect(lastText(sample.requests[1])).toContain("not today");
  });

  test("[SKL-3] a person is asked with what it does, and a rule for this skill is suggested", async () => {
    const asked: unknown[] = [];
    await using sample = await open(steps(), files, {
      approver: {
        approve: async ({ tool, input, suggestedRules }) => {
          asked.push({ tool, input, suggestedRules });
          return { type: "allow", for: "call" };
        },
      },
    });
    await sample.runtime.run("One.").result;
    expect(asked).toEqual([
      {
        tool: "Skill",
        input: { skill: "ship", does: ["allows Bash(touch *), AskUserQuestion", "runs commands"] },
        suggestedRules: ["Skill(ship *)"],
      },
    ]);
    expect(existsSync(sample.workspace.path("made"))).toBe(true);
  });

  test("[SKL-3] deny rules go before its grants", async () => {
    await using sample = await open(steps(), files, { disallowedTools: ["Bash(touch *)"] });
    await sample.runtime.run("One.", { allowedTools: ["Skill(ship)"] }).result;
    expect(existsSync(sample.workspace.path("made"))).toBe(false);
  });

  test("[SKL-3] in a folder that is not trusted a project's skill grants and runs nothing", async () => {
    await using sample = await open(steps(), files, { trusted: false });
    await sample.runtime.run("One.", { allowedTools: ["Skill(ship)"] }).result;
    expect(results(sample.requests[1])[0]?.text).toContain("the folder is not trusted");
    expect(existsSync(sample.workspace.path("made"))).toBe(false);
  });

  test("[SKL-3] settings can switch commands in skills off", async () => {
    const settings = JSON.stringify({ disableSkillShellExecution: true });
    await using sample = await open(steps(), files, { settings });
    await sample.runtime.run("One.", { allowedTools: ["Skill(ship)"] }).result;
    expect(results(sample.requests[1])[0]?.text).toContain("settings disable commands in skills");
  });

  test("[SKL-3] each command is decided about as a call of the agent's own", async () => {
    await using sample = await open([{ calls: [call("danger")] }, "Done."], {
      ".claude/skills/danger/SKILL.md": skill("", "!`touch made` and !`pwd`"),
    });
    await sample.runtime.run("One.", { allowedTools: ["Skill(danger)"] }).result;
    const text = results(sample.requests[1])[0]?.text ?? "";
    expect(text).toContain("`touch made` was not run: Bash was not allowed");
    expect(text).toContain(`and ${sample.workspace.project}`);
    expect(existsSync(sample.workspace.path("made"))).toBe(false);
  });

  test("[SKL-3] a command that writes too much or hangs on in the background is bounded and ended", async () => {
    await using sample = await open([{ calls: [call("loud")] }, "Done."], {
      ".claude/skills/loud/SKILL.md": skill(
        "allowed-tools: Bash\n",
        "!`seq 1 200000; sleep 600 & echo started`",
      ),
    });
    await sample.runtime.run("One.", { allowedTools: ["Skill(loud)"] }).result;
    const text = results(sample.requests[1])[0]?.text ?? "";
    expect(text).toContain("started");
    expect(text.length).toBeLessThan(40_000);
  });

  test("[SKL-3] arguments bring no commands, and change none", async () => {
    const args = "!`touch one` $(touch two); touch three";
    await using sample = await open([{ calls: [call("echo", args)] }, "Done."], {
      ".claude/skills/echo/SKILL.md": skill("allowed-tools: Bash\n", "Say $ARGUMENTS: !`echo $ARGUMENTS`"),
    });
    await sample.runtime.run("One.", { allowedTools: ["Skill(echo *)"] }).result;
    const text = results(sample.requests[1])[0]?.text ?? "";
    expect(text).toContain(`Say ${args}`);
    expect(text).toContain("was not run: its arguments contain characters");
    for (const name of ["one", "two", "three"]) expect(existsSync(sample.workspace.path(name))).toBe(false);
  });

  test("[SKL-3] its hooks fire from then on, those with `once` a single time", async () => {
    const hooks = [
      "hooks:",
      "  PreToolUse:",
      "    - matcher: Bash",
      "      hooks:",
      "        - {type: command, command: 'echo heard >> log'}",
      "        - {type: command, command: 'echo single >> log', once: true}",
      "",
    ].join("\n");
    await using sample = await open(
      [
        { calls: [bash("pwd")] },
        { calls: [call("watch")] },
        { calls: [bash("pwd")] },
        { calls: [bash("pwd")] },
        { calls: [bash("cat log")] },
        "Done.",
      ],
      { ".claude/skills/watch/SKILL.md": skill(hooks, "Watch.") },
    );
    await sample.runtime.run("One.", { allowedTools: ["Skill(watch)"] }).result;
    const text = results(sample.requests[5])[0]?.text ?? "";
    expect(text.match(/heard/g)).toHaveLength(3);
    expect(text.match(/single/g)).toHaveLength(1);
  });

  test("[SKL-3] its model and effort hold for the rest of the turn", async () => {
    await using provider = await startFakeProvider({
      script: [{ calls: [call("think")] }, "First.", "Second."],
    });
    await using sample = await open([], {
      ".claude/skills/think/SKILL.md": skill("model: claude-opus-4-5\neffort: high\n", "Think."),
    });
    const { runtime } = sample.restart([], {
      env: { PATH: process.env["PATH"], ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "k" },
      model: undefined,
    } as never);
    await using session = await runtime.open({ model: "claude-sonnet-4-5" });
    await session.prompt("One.").result;
    await session.prompt("Two.").result;
    expect(provider.requests.map(({ body }) => body["model"])).toEqual([
      "claude-sonnet-4-5",
      "claude-opus-4-5",
      "claude-sonnet-4-5",
    ]);
  });
});

describe("a skill in an agent of its own", () => {
  const files = {
    ".claude/skills/survey/SKILL.md": skill(
      "context: fork\nagent: surveyor\nallowed-tools: Bash(touch *)\n",
      "Survey $ARGUMENTS.",
    ),
    ".claude/agents/surveyor.md":
      "---\nname: surveyor\ndescription: Surveys.\ntools: Bash, Skill\n---\nYou are the surveyor.\n",
  };
  const surveyor = (step: object): Step => ({ match: "You are the surveyor", ...step });

  test("[SKL-3] runs in the agent that it names, with its grants, and gives the result", async () => {
    await using sample = await open(
      [
        { calls: [call("survey", "the coast")] },
        surveyor({ calls: [bash("touch by-child")] }),
        surveyor({ text: "The coast is clear." }),
        { calls: [bash("touch by-main")] },
        "Done.",
      ],
      files,
    );
    const result = await sample.runtime.run("Go.", { allowedTools: ["Skill(survey *)"] }).result;
    expect(result.status).toBe("completed");
    expect(JSON.stringify(sample.requests[1]?.messages[0])).toContain("Survey the coast.");
    expect(results(sample.requests[3])[0]?.text).toContain("The coast is clear.");
    expect(existsSync(sample.workspace.path("by-child"))).toBe(true);
    expect(existsSync(sample.workspace.path("by-main"))).toBe(false);
  });

  test("[SKL-3, TLS-7] inside a child it is given as text, with a note", async () => {
    await using sample = await open(
      [
        { calls: [{ name: "Agent", input: { description: "d", prompt: "p", subagent_type: "surveyor" } }] },
        surveyor({ calls: [call("survey")] }),
        surveyor({ text: "I did it." }),
        "Done.",
      ],
      files,
    );
    await sample.runtime.run("Go.").result;
    const [given] = results(sample.requests[2]);
    expect(given?.isError).toBe(false);
    expect(given?.text).toContain("Survey");
    expect(given?.text).toContain("meant to run in an agent of its own (surveyor)");
  });

  test("[SKL-3] an agent that may not be started is refused by its rule", async () => {
    await using sample = await open([{ calls: [call("survey")] }, "Done."], files, {
      disallowedTools: ["Agent(surveyor)"],
    });
    await sample.runtime.run("Go.", { allowedTools: ["Skill(survey)"] }).result;
    expect(results(sample.requests[1])[0]?.isError).toBe(true);
  });
});

describe("preloaded skills", () => {
  const files = {
    ".claude/skills/style/SKILL.md": skill("", `Rule of style: short. ${"Be brief. ".repeat(900)}`),
    ".claude/skills/tests/SKILL.md": skill("", "Rule of tests: many."),
    ".claude/agents/writer.md":
      "---\nname: writer\ndescription: Writes.\nskills: [tests, style, tests, nothing]\ntools: Read\n---\nYou are the writer.\n",
    "~/.claude/CLAUDE.md": "Be kind.",
  };
  const spawn = { name: "Agent", input: { description: "d", prompt: "p", subagent_type: "writer" } };
  const writer = (step: object): Step => ({ match: "You are the writer", ...step });

  test("[SKL-1, SPN-3] are once, in the order written, in the child's prompt, and the plan names them", async () => {
    await using sample = await open([{ calls: [spawn] }, writer({ text: "Written." }), "Done."], files);
    await using session = await sample.runtime.open();
    await session.prompt("Go.").result;
    const system = sample.requests[1]?.system.join("\n") ?? "";
    expect(system.match(/Rule of style: short/g)).toHaveLength(1);
    expect(system.match(/Rule of tests: many/g)).toHaveLength(1);
    expect(system.indexOf("Rule of tests")).toBeLessThan(system.indexOf("Rule of style"));
    expect(system).toContain(sample.workspace.path(".claude/skills/style"));
    const planned = await session.planAgent({
      agentType: "writer",
      description: "d",
      prompt: "p",
      origin: "program",
    });
    expect(planned).toMatchObject({ type: "planned", plan: { skills: ["tests", "style"] } });
  });

  test("[SKL-2] an unknown one is a warning in the result and to the person, and nothing fails", async () => {
    const reported: string[] = [];
    await using sample = await open([{ calls: [spawn] }, writer({ text: "Written." }), "Done."], files, {
      onWarning: (text) => void reported.push(text),
    });
    const result = await sample.runtime.run("Go.").result;
    expect(result.status).toBe("completed");
    const [given] = results(sample.requests[2]);
    expect(given?.text).toMatch(/names the skill "nothing", which does not exist[\s\S]*Written\./);
    expect(given?.isError).toBe(false);
    expect(reported).toEqual([expect.stringContaining('"nothing"')]);
  });

  test("[SKL-2] a child inherits neither what its parent has preloaded nor what it has called", async () => {
    const lead =
      "---\nname: lead\ndescription: Leads.\nskills: style\ntools: Agent, Skill\n---\nYou are the lead.\n";
    await using sample = await open(
      [
        { calls: [call("tests")] },
        { calls: [{ name: "Agent", input: { description: "d", prompt: "PLAIN" } }] },
        {
          match: ({ messages }: ModelRequest) => JSON.stringify(messages[0]).includes("PLAIN"),
          text: "Plain.",
        },
        "Done.",
      ],
      { ...files, ".claude/agents/lead.md": lead },
    );
    await sample.runtime.run("Go.", { agent: "lead" }).result;
    expect(sample.requests[0]?.system.join("\n")).toContain("Rule of style");
    const own = sample.requests.find(({ messages }) => JSON.stringify(messages[0]).includes("PLAIN"));
    expect(own).toBeDefined();
    expect(JSON.stringify([own?.system, own?.messages])).not.toContain("Rule of");
  });

  test("[SKL-1] the main agent under --agent has them too", async () => {
    await using sample = await open(["Done."], files);
    await using session = await sample.runtime.open({ agent: "writer" });
    await session.prompt("Go.").result;
    expect(session.plan.skills).toEqual(["tests", "style"]);
    expect(session.plan.notes.join("\n")).toContain('"nothing"');
    expect(sample.requests[0]?.system.join("\n")).toContain("Rule of tests: many.");
  });

  test("[SKL-1] are the same bytes at every turn, so that the provider's cache is read", async () => {
    await using provider = await startFakeProvider({
      script: [
        { calls: [spawn] },
        writer({ calls: [{ name: "Read", input: { file_path: "a.txt" } }] }),
        writer({ calls: [{ name: "Read", input: { file_path: "a.txt" } }] }),
        writer({ text: "Written." }),
        "Done.",
      ],
    });
    await using sample = await open([], { ...files, "a.txt": "a" });
    const { runtime } = sample.restart([], {
      env: { PATH: process.env["PATH"], ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "k" },
      model: undefined,
    } as never);
    const result = await runtime.run("Go.", { model: "claude-sonnet-4-5" }).result;
    expect(result.status).toBe("completed");
    const own = provider.requests.filter(({ request }) =>
      request.system.join("").includes("You are the writer"),
    );
    expect(own).toHaveLength(3);
    expect(new Set(own.map(({ request }) => JSON.stringify(request.system))).size).toBe(1);
    for (const { usage } of own.slice(1)) expect(usage?.cacheReadTokens).toBeGreaterThan(2000);
  });
});

describe("a person calls a skill", () => {
  const files = {
    ".claude/skills/ship/SKILL.md": skill("allowed-tools: Bash(touch *)\n", "Ship $ARGUMENTS. !`echo ready`"),
    ".claude/skills/quiet/SKILL.md": skill("user-invocable: false\n", "Quiet."),
    ".claude/commands/hello.md": "Say hello to $0.",
    ".claude/skills/far/SKILL.md": skill("context: fork\nagent: Explore\n", "Look far."),
  };

  test("[SKL-3] /name is its text, with its grants for that run", async () => {
    await using sample = await open(
      [{ calls: [bash("touch made")] }, "Done.", { calls: [bash("touch again")] }, "Done."],
      files,
    );
    await using session = await sample.runtime.open();
    await session.prompt("/ship it now").result;
    expect(lastText(sample.requests[0])).toContain("Ship it now. ready");
    expect(existsSync(sample.workspace.path("made"))).toBe(true);
    await session.prompt("And again.").result;
    expect(existsSync(sample.workspace.path("again"))).toBe(false);
  });

  test("[SKL-3] a command file is called the same way", async () => {
    await using sample = await open(["Hello."], files);
    await sample.runtime.run("/hello Ada").result;
    expect(lastText(sample.requests[0])).toContain("Say hello to Ada.");
  });

  test("[SKL-3] a fork runs its agent first, and the main agent reads the result", async () => {
    await using sample = await open([{ text: "Far seen." }, "Done."], files);
    const result = await sample.runtime.run("/far").result;
    expect(result.text).toBe("Done.");
    expect(lastText(sample.requests[0])).toContain("Look far.");
    expect(lastText(sample.requests[1])).toContain("Far seen.");
  });

  test.each([
    ["/shp it", /There is no skill "shp".*Did you mean ship\?/],
    ["/quiet", /only agents may call it/],
  ])("[SKL-3] %s is an error and reaches no model", async (prompt, why) => {
    await using sample = await open([], files);
    const result = await sample.runtime.run(prompt).result;
    expect(result).toMatchObject({ status: "failed", reason: "unknown_command" });
    expect(result.error).toMatch(why);
    expect(sample.requests).toEqual([]);
  });

  test.each([
    "/etc/hosts is odd",
    "/tmp is full",
    "// comment",
    "/ alone",
    "a /ship inside",
  ])("[SKL-3] %j stays a plain text", async (prompt) => {
    await using sample = await open(["Fine."], files);
    await sample.runtime.run(prompt).result;
    expect(lastText(sample.requests[0])).toContain(JSON.stringify(prompt).slice(1, -1));
  });

  test("[SKL-3] all of it can be switched off", async () => {
    await using sample = await open(["Fine."], files);
    await sample.runtime.run("/ship it", { slashCommands: false }).result;
    expect(lastText(sample.requests[0])).not.toContain("Ship it");
  });
});

test("[BLT-6] the guide's prompt names the user's skills", async () => {
  await using sample = await open(
    [
      {
        calls: [
          { name: "Agent", input: { description: "d", prompt: "p", subagent_type: "claude-code-guide" } },
        ],
      },
      { match: "What this user has", text: "You have one." },
      "Done.",
    ],
    { ".claude/skills/ship/SKILL.md": skill("", "Ship.") },
  );
  await sample.runtime.run("Go.").result;
  expect(sample.requests[1]?.system.join("\n")).toContain("- ship: It helps.");
});
