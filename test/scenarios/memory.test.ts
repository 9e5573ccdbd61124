import { execFileSync } from "node:child_process";
import { existsSync, linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedCall, Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { createPlace } from "./run-command.ts";

const calling = (...calls: ScriptedCall[]): Step => ({ calls });
const call = (name: string, input: object): ScriptedCall => ({ name, input });
const system = (request: ModelRequest | undefined) => request?.system.join("\n") ?? "";
const names = (request: ModelRequest | undefined) => request?.tools.map(({ name }) => name) ?? [];
const reported = (request: ModelRequest | undefined) => JSON.stringify(request?.messages.at(-1));
const occurrences = (text: string, part: string) => text.split(part).length - 1;

const rev = {
  name: "rev",
  description: "Reviews.",
  prompt: "You review.",
  tools: ["Grep"],
  memory: "project",
} as const;
const { tools: _tools, ...withoutTools } = rev;
const note = "- the tests need node 24\n";

/** A runtime whose scripted calls can name files of the project, which is only made on the way. */
async function stage(steps: (at: (name: string) => string) => readonly Step[], options: RuntimeOptions = {}) {
  const place = { project: "" };
  const sample = await createSampleRuntime([], options);
  place.project = sample.workspace.project;
  const at = (name: string) => join(place.project, name);
  const own = (name = "MEMORY.md") => at(`.claude/agent-memory/rev/${name}`);
  return { sample, at, own, ...sample.restart(steps(at), options) };
}

const memoryFile = ".claude/agent-memory/rev/MEMORY.md";

describe("[MEM-2, SPN-3] memory in the system prompt", () => {
  test("is there exactly once and stays the same over the turns, as the provider sees it", async () => {
    const place = createPlace();
    place.write(memoryFile, note);
    await using provider = await startFakeProvider({
      script: [
        calling(call("Read", { file_path: join(place.cwd, memoryFile) })),
        calling(
          call("Write", { file_path: join(place.cwd, ".claude/agent-memory/rev/more.md"), content: "x" }),
        ),
        "Done.",
      ],
    });
    await using runtime = createRuntime({
      cwd: place.cwd,
      home: place.home,
      settingSources: ["user", "project", "local"],
      transcripts: true,
      env: { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: provider.url, PATH: process.env["PATH"] },
      managedDirectory: join(place.home, "managed"),
      agents: [rev],
    });
    expect(await runtime.spawn("rev", "Review.").result).toMatchObject({ status: "completed", denials: [] });
    const systems = provider.requests.map(({ body }) => JSON.stringify(body["system"]));
    expect(systems).toHaveLength(3);
    expect(occurrences(systems[0] ?? "", "the tests need node 24")).toBe(1);
    expect(new Set(systems.map((text) => text.replaceAll(/"cache_control":\{[^}]*\}/g, ""))).size).toBe(1);
  });

  test("what a child writes the next one reads, and the one after its changes", async () => {
    const { sample, own, runtime, requests } = await stage(
      (at) => [
        calling(call("Write", { file_path: at(memoryFile), content: note })),
        "Kept.",
        calling(call("Read", { file_path: at(memoryFile) })),
        calling(call("Edit", { file_path: at(memoryFile), old_string: "node 24", new_string: "node 26" })),
        "Corrected.",
        "Known.",
      ],
      { agents: [rev] },
    );
    await using _sample = sample;
    await using session = await runtime.open();
    for (const text of ["Kept.", "Corrected.", "Known."])
      expect(await session.spawn("rev", "Review.").result).toMatchObject({ text, denials: [] });
    expect(system(requests[0])).toContain("There is no MEMORY.md yet");
    expect(system(requests[2])).toContain("the tests need node 24");
    expect(system(requests.at(-1))).toContain("the tests need node 26");
    expect(readFileSync(own(), "utf8")).toBe("- the tests need node 26\n");
  });

  test("what was left out is reported", async () => {
    const { sample, runtime, requests } = await stage(() => ["Done."], { agents: [rev] });
    await using _sample = sample;
    await sample.workspace.write(memoryFile, "- one thing\n".repeat(250));
    await runtime.spawn("rev", "Review.").result;
    expect(system(requests[0])).toContain("200 of 250 lines");
    expect(occurrences(system(requests[0]), "- one thing")).toBe(200);
  });

  test("the main agent has its own too, and its child does not get it", async () => {
    const options = {
      agents: [
        { ...rev, tools: ["Agent", "Grep"] },
        { name: "plain", description: "d", prompt: "Plain." },
      ],
    };
    const { sample, runtime, requests } = await stage(
      (at) => [
        calling(call("Write", { file_path: at(".claude/agent-memory/rev/a.md"), content: "x" })),
        calling(call("Agent", { description: "d", prompt: "Go.", subagent_type: "plain" })),
        "Child.",
        "Main.",
      ],
      options,
    );
    await using _sample = sample;
    await sample.workspace.write(memoryFile, note);
    const result = await runtime.run("Begin.", { agent: "rev" }).result;
    expect(result).toMatchObject({ status: "completed", denials: [] });
    expect(occurrences(system(requests[0]), note.trim())).toBe(1);
    expect(system(requests[2])).toContain("Plain.");
    expect(system(requests[2])).not.toContain(note.trim());
  });

  test.each([
    ["a setting", {}, '{"autoMemoryEnabled": false}'],
    ["a variable", { env: { PATH: process.env["PATH"], CLAUDE_CODE_DISABLE_AUTO_MEMORY: "1" } }, "{}"],
  ] as const)("switched off by %s there is neither text nor tool nor directory", async (_, options, settings) => {
    const { sample, own, runtime, requests } = await stage(() => ["Done."], { agents: [rev], ...options });
    await using _sample = sample;
    mkdirSync(join(sample.home, ".claude"), { recursive: true });
    writeFileSync(join(sample.home, ".claude/settings.json"), settings);
    await using session = await runtime.open();
    await session.spawn("rev", "Review.").result;
    expect(system(requests[0])).not.toMatch(/MEMORY\.md/);
    expect(names(requests[0])).toEqual(["Grep"]);
    expect(existsSync(own(""))).toBe(false);
  });
});

describe("[TLS-8] tools that are there for memory", () => {
  const outside: readonly (readonly [string, (at: (name: string) => string) => ScriptedCall])[] = [
    ["a file of the project", (at) => call("Write", { file_path: at("a.ts"), content: "x" })],
    [
      "another agent's memory",
      (at) => call("Write", { file_path: at(".claude/agent-memory/other/MEMORY.md"), content: "x" }),
    ],
    [
      "a way out with `..`",
      (at) => call("Write", { file_path: at(".claude/agent-memory/rev/../../settings.json"), content: "{}" }),
    ],
    [
      "a neighbour whose name begins alike",
      (at) => call("Write", { file_path: at(".claude/agent-memory/rev-evil/a.md"), content: "x" }),
    ],
    [
      "the same name in other letters",
      (at) => call("Write", { file_path: at(".claude/agent-memory/REV/MEMORY.md"), content: "x" }),
    ],
    [
      "a link to a file outside",
      (at) => call("Write", { file_path: at(".claude/agent-memory/rev/link.md"), content: "x" }),
    ],
    [
      "a folder that is a link",
      (at) => call("Write", { file_path: at(".claude/agent-memory/rev/away/a.md"), content: "x" }),
    ],
    [
      "a second name of a file outside",
      (at) =>
        call("Edit", { file_path: at(".claude/agent-memory/rev/hard.md"), old_string: "s", new_string: "x" }),
    ],
    ["a file to read in the project", (at) => call("Read", { file_path: at("secret.txt") })],
  ];

  test.each(outside)("do not reach %s, and the agent hears why", async (_, make) => {
    const { sample, at, own, runtime, requests } = await stage(
      (place) => [calling(make(place)), "Refused."],
      {
        agents: [rev],
        canUseTool: async () => ({ behavior: "allow" }),
      },
    );
    await using _sample = sample;
    await sample.workspace.write("secret.txt", "s");
    mkdirSync(own(""), { recursive: true });
    mkdirSync(at("elsewhere"));
    symlinkSync(at("secret.txt"), own("link.md"));
    symlinkSync(at("elsewhere"), own("away"));
    linkSync(at("secret.txt"), own("hard.md"));
    const { denials } = await runtime.spawn("rev", "Review.").result;
    expect(denials).toHaveLength(1);
    expect(reported(requests[1])).toContain("only inside the agent's memory directory");
    expect(readFileSync(at("secret.txt"), "utf8")).toBe("s");
    for (const name of ["a.ts", "elsewhere/a.md", ".claude/settings.json", ".claude/agent-memory/other"])
      expect(existsSync(at(name))).toBe(false);
  });

  const keep = (at: (name: string) => string) => [
    calling(call("Write", { file_path: at(memoryFile), content: note })),
    calling(call("Read", { file_path: at(memoryFile) })),
    "Kept.",
  ];

  test.each([
    ["in the foreground", {}, {}],
    ["in the background", { background: true }, {}],
    ["where nothing is asked", {}, { permissionMode: "dontAsk" }],
    ["where edits are accepted", {}, { permissionMode: "acceptEdits" }],
  ] as const)("need no permission inside, %s", async (_, options, session) => {
    const { sample, own, runtime } = await stage(keep, { agents: [rev] });
    await using _sample = sample;
    await using opened = await runtime.open(session);
    expect(await opened.spawn("rev", "Review.", options).result).toMatchObject({
      text: "Kept.",
      denials: [],
    });
    expect(readFileSync(own(), "utf8")).toBe(note);
  });

  test("are there although the main agent does not have them", async () => {
    const main = { name: "lead", description: "Leads.", prompt: "Lead.", tools: ["Agent", "Grep"] };
    const { sample, own, runtime } = await stage(
      (at) => [
        calling(call("Agent", { description: "d", prompt: "Go.", subagent_type: "rev" })),
        ...keep(at),
        "Main.",
      ],
      { agents: [main, withoutTools] },
    );
    await using _sample = sample;
    expect(await runtime.run("Begin.", { agent: "lead" }).result).toMatchObject({ text: "Main." });
    expect(readFileSync(own(), "utf8")).toBe(note);
  });

  test("only read while planning", async () => {
    const { sample, own, runtime } = await stage(
      (at) => [
        calling(
          call("Read", { file_path: at(memoryFile) }),
          call("Write", { file_path: at(".claude/agent-memory/rev/b.md"), content: "x" }),
        ),
        "Planned.",
      ],
      { agents: [rev] },
    );
    await using _sample = sample;
    await sample.workspace.write(memoryFile, note);
    await using session = await runtime.open({ permissionMode: "plan" });
    const { denials } = await session.spawn("rev", "Plan.").result;
    expect(denials.map(({ call: { name } }) => name)).toEqual(["Write"]);
    expect(existsSync(own("b.md"))).toBe(false);
  });

  test.each([
    ["a deny rule", { disallowedTools: ["Edit(.claude/agent-memory/**)"] }],
    ["the organisation's rule for the tool", { disallowedTools: ["Write"] }],
  ])("lose against %s", async (_, options) => {
    const { sample, own, runtime } = await stage((at) => [keep(at)[0] ?? "", "Refused."], {
      agents: [rev],
      ...options,
    });
    await using _sample = sample;
    await runtime.spawn("rev", "Review.").result;
    expect(existsSync(own())).toBe(false);
  });

  test("do not write there what other programs obey", async () => {
    const { sample, own, runtime } = await stage(
      (at) => [
        calling(call("Write", { file_path: at(".claude/agent-memory/rev/.envrc"), content: "x" })),
        "Refused.",
      ],
      { agents: [rev] },
    );
    await using _sample = sample;
    expect((await runtime.spawn("rev", "Review.").result).denials).toHaveLength(1);
    expect(existsSync(own(".envrc"))).toBe(false);
  });

  test("of a child in a worktree lead to the memory of the project", async () => {
    const { sample, at, own, runtime } = await stage(keep, { agents: [rev], trusted: true });
    await using _sample = sample;
    const git = (...words: string[]) =>
      execFileSync(
        "git",
        ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false", ...words],
        {
          cwd: at(""),
        },
      );
    git("init", "-q");
    await sample.workspace.write("a.ts", "1\n");
    git("add", "-A");
    git("commit", "-q", "-m", "first");
    await using session = await runtime.open();
    const result = await session.spawn("rev", "Review.", { isolation: "worktree" }).result;
    expect(result).toMatchObject({ text: "Kept.", denials: [] });
    expect(readFileSync(own(), "utf8")).toBe(note);
  });
});

describe("[MEM-1] where memory is, is reported", () => {
  test("[DEF-2, SPN-1] by the plan and by the step of the start", async () => {
    const { sample, own, runtime } = await stage(() => ["Done."], { agents: [rev] });
    await using _sample = sample;
    const memory = { scope: "project", directory: own("").replace(/\/$/, "") };
    await using session = await runtime.open();
    const planned = await session.planAgent({
      agentType: "rev",
      description: "d",
      prompt: "p",
      origin: "model",
    });
    expect(planned).toMatchObject({ type: "planned", plan: { memory } });
    expect(existsSync(own(""))).toBe(false);
    const events: RunEvent[] = [];
    const handle = session.spawn("rev", "Review.");
    for await (const event of handle.events) events.push(event);
    await handle.result;
    const steps = events.flatMap((event) => (event.type === "spawn-advanced" ? event.steps : []));
    expect(steps).toContainEqual({ step: "memory", value: memory });
    expect(existsSync(own(""))).toBe(true);
  });

  test("a directory that cannot be used is a note beside the result, and the agent works without", async () => {
    const { sample, at, runtime, requests } = await stage(() => ["Done."], { agents: [rev] });
    await using _sample = sample;
    mkdirSync(at("elsewhere"));
    symlinkSync(at("elsewhere"), at(".claude"));
    await using session = await runtime.open();
    const planned = await session.planAgent({
      agentType: "rev",
      description: "d",
      prompt: "p",
      origin: "model",
    });
    expect(planned).toMatchObject({ plan: { notes: [expect.stringContaining("cannot be used")] } });
    await session.spawn("rev", "Review.").result;
    expect(names(requests[0])).toEqual(["Grep"]);
  });
});

test("[MEM-1] an agent whose name is a title has a memory too, in a directory that its name cannot leave", async () => {
  const file =
    "---\nname: UI/UX Designer\ndescription: Designs.\ntools: Grep\nmemory: project\n---\nDesign.\n";
  const directory = ".claude/agent-memory/UI%2fUX%20Designer";
  const { sample, runtime, requests, at } = await stage((path) => [
    calling(call("Write", { file_path: path(`${directory}/MEMORY.md`), content: note })),
    "Noted.",
  ]);
  await using _sample = sample;
  await sample.workspace.write(".claude/agents/designer.md", file);
  expect(await runtime.spawn("UI/UX Designer", "Design.").result).toMatchObject({
    status: "completed",
    denials: [],
  });
  expect(readFileSync(at(`${directory}/MEMORY.md`), "utf8")).toBe(note);
  expect(system(requests[0])).toContain(directory);
});
