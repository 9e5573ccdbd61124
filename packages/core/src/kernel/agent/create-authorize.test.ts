import { link, symlink } from "node:fs/promises";
import { join } from "node:path";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, it } from "vitest";
import { createWall } from "../../tools/sandbox/wall.ts";
import { defineTool, type Tool } from "../../tools/tool.ts";
import type { RuntimeOptions, SessionOptions } from "../options/runtime-options.ts";
import type { CanUseTool } from "./create-authorize.ts";

/** Lets a scripted model make one call in a real project and shows what became of it. */
async function tryCall(
  call: { readonly name: string; readonly input: Readonly<Record<string, unknown>> },
  options: { readonly runtime?: RuntimeOptions; readonly session?: SessionOptions } = {},
) {
  await using sample = await createSampleRuntime([{ calls: [call] }, "Done."], options.runtime);
  const { workspace } = sample;
  await workspace.write("a.txt", "inside\n");
  await workspace.write("../outside.txt", "outside\n");
  await symlink(join(workspace.root, "outside.txt"), workspace.path("link.txt"));
  await workspace.write("secrets/key.txt", "hunter2\n");
  await link(workspace.path("secrets/key.txt"), workspace.path("other-name.txt"));
  const { denials } = await sample.runtime.run("Go.", options.session).result;
  const last = sample.requests[1]?.messages.at(-1)?.content;
  const [block] = typeof last === "object" ? last : [];
  const answer = block?.type === "tool_result" ? JSON.stringify(block.content) : "";
  return { answer, reason: denials[0]?.reason, isDenied: denials.length > 0 };
}

const read = (file_path: string) => ({ name: "Read", input: { file_path } });
const bash = (command: string) => ({ name: "Bash", input: { command } });
const write = { name: "Write", input: { file_path: "new.txt", content: "new" } };

describe("without rules, everything but reading inside the folder is refused", () => {
  it.each([
    ["reading a file", read("a.txt"), false],
    ["searching", { name: "Grep", input: { pattern: "inside" } }, false],
    ["finding", { name: "Glob", input: { pattern: "*" } }, false],
    ["a list of steps", { name: "TodoWrite", input: { todos: [] } }, false],
    ["reading outside", read("../outside.txt"), true],
    ["reading the home directory", read("~/x"), true],
    ["reading outside by a link", read("link.txt"), true],
    ["writing", write, true],
    ["a command that only reads inside", bash("ls"), false],
    ["a command that changes something", bash("touch made"), true],
    ["a command that reads outside", bash("cat ../outside.txt"), true],
    ["the network", { name: "WebFetch", input: { url: "https://example.com/", prompt: "Read." } }, true],
  ])("%s", async (_, call, isDenied) => {
    const result = await tryCall(call);
    expect(result.isDenied).toBe(isDenied);
    if (isDenied) expect(result.reason).toMatch(/was not allowed: .*, and no one can be asked here\./);
  });
});

describe("tools of MCP servers", () => {
  it.each([
    ["a", "b__c", false],
    ["a__b", "c", true],
  ])("a rule speaks of the server %j and its tool %j, not of their joined name [PRM-2]", async (server, tool, isDenied) => {
    const made: Tool = {
      name: "mcp__a__b__c",
      description: "Looks something up at its server.",
      effect: "execute",
      origin: "mcp",
      mcp: { server, tool, serverName: server, source: "user", hints: {} },
      call: async () => ({ content: "found" }),
    };
    const options = { runtime: { tools: [made] }, session: { allowedTools: ["mcp__a__b__c"] } };
    expect((await tryCall({ name: made.name, input: {} }, options)).isDenied).toBe(isDenied);
  });
});

describe("rules and modes", () => {
  it.each<[string, ReturnType<typeof bash | typeof read>, SessionOptions, boolean]>([
    ["allowedTools allows", bash("touch made"), { allowedTools: ["Bash"] }, false],
    ["a scoped rule allows what it names", bash("touch made"), { allowedTools: ["Bash(touch *)"] }, false],
    ["a scoped rule allows nothing else", bash("touch made"), { allowedTools: ["Bash(npm test *)"] }, true],
    ["a list may be in one text", bash("touch made"), { allowedTools: ["Read, Bash(touch *)"] }, false],
    [
      "disallowedTools wins",
      bash("touch made"),
      { allowedTools: ["Bash"], disallowedTools: ["Bash(touch *)"] },
      true,
    ],
    [
      "a denial wins over a bypass",
      read("secrets/key.txt"),
      { skipPermissions: true, disallowedTools: ["Read(secrets/**)"] },
      true,
    ],
    ["a bypass allows the rest", bash("touch made"), { skipPermissions: true }, false],
  ])("%s", async (_, call, session, isDenied) => {
    expect((await tryCall(call, { session })).isDenied).toBe(isDenied);
  });

  it.each([
    ["acceptEdits", false],
    ["default", true],
    ["plan", true],
    ["dontAsk", true],
  ] as const)("in the mode %s writing inside the folder is refused: %s", async (permissionMode, isDenied) => {
    expect((await tryCall(write, { session: { permissionMode } })).isDenied).toBe(isDenied);
  });

  it("what may not be read is not found by a search either", async () => {
    const session = { disallowedTools: ["Read(secrets/**)"] };
    const grep = { name: "Grep", input: { pattern: "inside|hunter2", output_mode: "content" } };
    const { answer, isDenied } = await tryCall(grep, { session });
    expect(isDenied).toBe(false);
    expect(answer).toContain("inside");
    expect(answer).not.toContain("hunter2");
  });

  it.each<[string, RuntimeOptions, SessionOptions]>([
    ["a rule about searching", {}, { disallowedTools: ["Grep(secrets/**)"] }],
    ["a rule about the other name of a file", {}, { disallowedTools: ["Read(other-name.txt)"] }],
    ["a pattern, for a file with several names", {}, { disallowedTools: ["Read(other-*)"] }],
    [
      "the definition of the agent",
      { agents: [{ name: "lead", description: "d", prompt: "p", disallowedTools: ["Read(secrets/**)"] }] },
      { agent: "lead" },
    ],
  ])("what %s forbids is not found by a search [PRM-1, PRM-10]", async (_, runtime, session) => {
    const grep = { name: "Grep", input: { pattern: "inside|hunter2", output_mode: "content" } };
    const { answer } = await tryCall(grep, { runtime, session });
    expect(answer).toContain("inside");
    expect(answer).not.toContain("hunter2");
  });

  it("what a lead may not read is not found by a search of its child [PRM-4]", async () => {
    const lead = { name: "lead", description: "d", prompt: "p", disallowedTools: ["Read(secrets/**)"] };
    const spawn = {
      name: "Agent",
      input: { description: "d", prompt: "p", subagent_type: "general-purpose" },
    };
    const grep = { name: "Grep", input: { pattern: "inside|hunter2", output_mode: "content" } };
    await using sample = await createSampleRuntime(
      [{ calls: [spawn] }, { calls: [grep] }, "Done.", "Done."],
      {
        agents: [lead],
      },
    );
    await sample.workspace.write("a.txt", "inside\n");
    await sample.workspace.write("secrets/key.txt", "hunter2\n");
    await sample.runtime.run("Go.", { agent: "lead" }).result;
    const found = JSON.stringify(sample.requests[2]?.messages.at(-1));
    expect(found).toContain("a.txt:1:inside");
    expect(found).not.toContain("hunter2");
  });
});

describe("a definition's specifiers", () => {
  const narrow = (fields: object): RuntimeOptions => ({
    agents: [{ name: "narrow", description: "Narrow. Use it. Not wide.", prompt: "Go.", ...fields }],
  });
  const session = { agent: "narrow", skipPermissions: true };

  it.each([
    ["git diff --stat", false],
    ["git diff", false],
    ["git push", true],
    ["git diff; rm -rf x", true],
    ["git diff $(rm x)", true],
    ["git difftool", true],
  ])("`tools: Bash(git diff *)` refuses %j, whatever the mode: %s [TLS-3]", async (command, isDenied) => {
    const runtime = narrow({ tools: ["Bash(git diff *)"] });
    const result = await tryCall(bash(command), { runtime, session });
    expect(result.isDenied).toBe(isDenied);
    if (isDenied) expect(result.reason).toContain("git diff *");
  });

  it.each([
    ["rm -rf x", true],
    ["echo hi", false],
    ["echo hi && rm x", true],
  ])("`disallowedTools: Bash(rm *)` refuses %j: %s [TLS-2, TLS-3]", async (command, isDenied) => {
    const runtime = narrow({ disallowedTools: ["Bash(rm *)"] });
    expect((await tryCall(bash(command), { runtime, session })).isDenied).toBe(isDenied);
  });

  it("of one reading tool hold for all of them", async () => {
    const runtime = narrow({ disallowedTools: ["Read(secrets/**)"] });
    const grep = { name: "Grep", input: { pattern: "hunter2", path: "secrets" } };
    expect((await tryCall(grep, { runtime, session })).isDenied).toBe(true);
  });

  it("a tool it does not have is answered with those there are [TLS-10]", async () => {
    const { answer, isDenied } = await tryCall(bash("ls"), {
      runtime: narrow({ tools: ["Read", "Glob"] }),
      session,
    });
    expect(isDenied).toBe(false);
    expect(answer).toMatch(/no tool .*Bash.* Available: Glob, Read/);
  });
});

describe("a program's own answer", () => {
  const asking = (canUseTool: CanUseTool) => ({ runtime: { canUseTool } });

  it("allows or refuses what rules leave open, and is reported why it is asked", async () => {
    const asked: unknown[] = [];
    const canUseTool: CanUseTool = async (name, input, { agentId, reason }) => {
      asked.push([name, input["command"], agentId, reason]);
      return name === "Bash" ? { behavior: "allow" } : { behavior: "deny", message: "not on Mondays." };
    };
    expect((await tryCall(bash("touch made && echo hi"), asking(canUseTool))).answer).toContain("hi");
    expect((await tryCall(write, asking(canUseTool))).reason).toMatch(
      /^Write was not allowed: not on Mondays\. Do/,
    );
    expect((await tryCall(read("a.txt"), asking(canUseTool))).isDenied).toBe(false);
    expect(asked).toEqual([
      ["Bash", "touch made && echo hi", "main", expect.any(String)],
      ["Write", undefined, "main", "no allow rule matches"],
    ]);
  });

  it("may change the input, which is checked again", async () => {
    const change = (command: unknown) =>
      asking(async () => ({ behavior: "allow", updatedInput: { command } }));
    expect((await tryCall(bash("rm x"), change("echo safe"))).answer).toContain("safe");
    expect((await tryCall(bash("rm x"), change(7))).answer).toMatch(/not valid.*command/);
    const session = { disallowedTools: ["Bash(rm *)"] };
    const sneaky = await tryCall(bash("touch made"), { ...change("rm x"), session });
    expect(sneaky.reason).toContain("Bash(rm *)");
  });

  it.each([
    true,
    false,
    "allow",
    undefined,
    null,
    {},
    { behavior: "yes" },
    { behavior: "denied" },
    { allow: false },
    [],
  ])("that is none of its answers lets nothing through: %j", async (given) => {
    const odd = (async () => given) as unknown as CanUseTool;
    const { isDenied, reason } = await tryCall(bash("touch made"), asking(odd));
    expect(isDenied).toBe(true);
    expect(reason).toContain("canUseTool must answer");
  });

  it("ends the run where it refuses and interrupts", async () => {
    const ending: CanUseTool = async () => ({ behavior: "deny", message: "enough", interrupt: true });
    await using sample = await createSampleRuntime([{ calls: [bash("touch made")] }, "No."], {
      canUseTool: ending,
    });
    expect(await sample.runtime.run("Go.").result).toMatchObject({ status: "stopped" });
    expect(sample.requests).toHaveLength(1);
  });

  it("is not asked where a rule denies", async () => {
    const never: CanUseTool = () => Promise.reject(new Error("It was asked."));
    const session = { disallowedTools: ["Bash(rm *)"] };
    expect((await tryCall(bash("rm x"), { ...asking(never), session })).reason).toContain("Bash(rm *)");
  });

  it("that fails lets nothing through", async () => {
    const broken: CanUseTool = () => Promise.reject(new Error("The desk is closed"));
    expect((await tryCall(bash("touch made"), asking(broken))).reason).toContain("The desk is closed");
  });

  it("that never comes does not hold up the end of a run [SDK-3]", async () => {
    const stop = new AbortController();
    const canUseTool: CanUseTool = () => {
      stop.abort();
      return new Promise(() => undefined);
    };
    await using sample = await createSampleRuntime([{ calls: [bash("touch made")] }], { canUseTool });
    const result = await sample.runtime.run("Go.", { signal: stop.signal }).result;
    expect(result).toMatchObject({ status: "stopped", denials: [] });
  });
});

describe("a tool is reported what let its call through [PRM-12]", () => {
  const allowing = {
    hookSpecificOutput: { hookEventName: "PermissionRequest", decision: { behavior: "allow" } },
  };
  it.each<[string, RuntimeOptions, SessionOptions, string | undefined]>([
    ["rule", {}, { allowedTools: ["Act"] }, "rule"],
    ["mode", {}, { permissionMode: "bypassPermissions" }, "mode"],
    ["program", { canUseTool: async () => ({ behavior: "allow" }) }, {}, "program"],
    ["person", { approver: { approve: async () => ({ type: "allow", for: "call" }) } }, {}, "person"],
    ["hook", { hooks: [{ event: "PermissionRequest", run: () => allowing }] }, {}, "hook"],
    ["nothing", {}, {}, undefined],
  ])("%s", async (_, runtime, session, expected) => {
    let reported: string | undefined;
    const tool = defineTool({
      name: "Act",
      description: "Does something.",
      effect: "execute",
      call: async (__, { allowedBy }) => {
        reported = allowedBy;
        return { content: "done" };
      },
    });
    await tryCall({ name: "Act", input: {} }, { runtime: { tools: ["default", tool], ...runtime }, session });
    expect(reported).toBe(expected);
  });
});

const isolation = await createWall().start();
const notIsolated = isolation.type === "ready" ? "" : ` (skipped: ${isolation.why})`;

describe.skipIf(isolation.type !== "ready")(`a command that only reads${notIsolated}`, () => {
  const mounts = { name: "Bash", input: { command: "cat /proc/self/mountinfo" } };
  const reading = { allowedTools: ["Read(//proc/**)"] };
  /** Whether the root of the file system can only be read. */
  const isReadOnly = (answer: string) => / \/ \/ ro[, ]/.test(answer);

  it("runs where it can do nothing else [PRM-9]", async () => {
    expect(isReadOnly((await tryCall(mounts, { session: reading })).answer)).toBe(true);
  });

  it.each<[string, SessionOptions]>([
    ["a rule", { allowedTools: [...reading.allowedTools, "Bash(cat *)"] }],
    ["the mode", { permissionMode: "bypassPermissions" }],
  ])("runs as it is where %s allows it [PRM-9]", async (_, session) => {
    const { answer } = await tryCall(mounts, { session });
    expect(answer).toContain(" / / ");
    expect(isReadOnly(answer)).toBe(false);
  });

  it.each([
    ["user", false],
    ["project", true],
  ] as const)("is let out by a setting of the %s: %s [PRM-9, PRM-11]", async (scope, isKept) => {
    await using sample = await createSampleRuntime([{ calls: [mounts] }, "Done."], { trusted: true });
    const settings = JSON.stringify({ sandbox: { isolateReadOnlyCommands: false } });
    await sample.workspace.write(
      scope === "user" ? "../home/.claude/settings.json" : ".claude/settings.json",
      settings,
    );
    await sample.runtime.run("Go.", reading).result;
    const answer = JSON.stringify(sample.requests[1]?.messages.at(-1)?.content);
    expect(answer).toContain(" / / ");
    expect(isReadOnly(answer)).toBe(isKept);
  });
});
