import { join } from "node:path";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createFakeMcpServer } from "@retinue/testing/fake-mcp-server.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedCall, Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { countedServer, processesWith } from "./counted-server.ts";

const calling = (...calls: ScriptedCall[]): Step => ({ calls });
const echo = (server: string): ScriptedCall => ({
  name: `mcp__${server}__echo`,
  input: { message: "hello" },
});
const long = (server: string): ScriptedCall => ({
  name: `mcp__${server}__trigger-long-running-operation`,
  input: { duration: 86_400, steps: 8_640_000 },
});
const names = (request: ModelRequest | undefined) => request?.tools.map(({ name }) => name) ?? [];
const served = (request: ModelRequest | undefined) => names(request).filter((name) => /^mcp__/.test(name));
const reported = (request: ModelRequest | undefined) => JSON.stringify(request?.messages.at(-1));
const allowAll: RuntimeOptions = { canUseTool: async () => ({ behavior: "allow" }) };
const worker = { name: "worker", description: "Works.", prompt: "You work." };
const spawning: Step = calling({
  name: "Agent",
  input: { description: "work", prompt: "Work.", subagent_type: "worker" },
});
const sdk = (...tools: string[]) =>
  ({
    type: "sdk",
    instance: createFakeMcpServer(tools.map((name) => ({ name, call: () => name }))),
  }) as const;

describe("[MCP-2] a server that is in a definition", () => {
  test("starts once for the child, belongs to no one else, and is gone after its end", async () => {
    await using sample = await createSampleRuntime([]);
    const server = countedServer(sample.workspace.root, "server-everything");
    const { runtime, requests } = sample.restart(
      [spawning, calling(echo("mine")), calling(echo("mine")), "Echoed.", "Done."],
      { ...allowAll, agents: [{ ...worker, mcpServers: [{ mine: server.config }] }] },
    );
    await using session = await runtime.open();
    expect(server.starts()).toEqual([]);
    expect(await session.prompt("Go.").result).toMatchObject({ text: "Done." });
    expect(served(requests[0])).toEqual([]);
    expect(served(requests[1])).toContain("mcp__mine__echo");
    expect(reported(requests[3])).toContain("Echo: hello");
    expect(served(requests[4])).toEqual([]);
    expect(server.starts()).toHaveLength(1);
    expect(server.left()).toEqual([]);
  });

  test("is gone after the child was stopped in the middle of a call", async () => {
    await using sample = await createSampleRuntime([]);
    const server = countedServer(sample.workspace.root);
    const { runtime } = sample.restart([calling(long("mine"))], {
      ...allowAll,
      agents: [{ ...worker, mcpServers: [{ mine: server.config }] }],
    });
    const child = runtime.spawn("worker", "Work.");
    for await (const event of child.events) if (event.type === "call-progressed") await child.stop();
    expect(await child.result).toMatchObject({ status: "stopped" });
    expect(server.starts()).toHaveLength(1);
    expect(server.left()).toEqual([]);
  });

  test("is gone when the session is closed around a child in the middle of a call", async () => {
    await using sample = await createSampleRuntime([]);
    const server = countedServer(sample.workspace.root);
    const { runtime } = sample.restart([calling(long("mine"))], {
      ...allowAll,
      agents: [{ ...worker, mcpServers: [{ mine: server.config }] }],
    });
    const session = await runtime.open();
    const child = session.spawn("worker", "Work.");
    for await (const event of child.events)
      if (event.type === "call-progressed") await session[Symbol.asyncDispose]();
    expect(server.left()).toEqual([]);
  });

  test("that fails is a note in the result, and the child works without it; nothing is left of one that hangs", async () => {
    await using sample = await createSampleRuntime([]);
    const silent = {
      command: process.execPath,
      args: ["-e", "setInterval(() => {}, 1000)", "never-answers-7781"],
    };
    const { runtime, requests } = sample.restart([spawning, "Worked.", "Done."], {
      ...allowAll,
      env: { PATH: process.env["PATH"], MCP_TIMEOUT: "300", RETINUE_LOCAL_MODELS: "0" },
      agents: [{ ...worker, mcpServers: [{ gone: { command: "/nowhere" } }, { silent }] }],
    });
    expect(await runtime.run("Go.").result).toMatchObject({ status: "completed", text: "Done." });
    expect(reported(requests[2])).toMatch(/gone.{0,4} failed: its command was not found/);
    expect(reported(requests[2])).toMatch(/silent.{0,4} failed: it did not answer within 0.3 s/);
    expect(reported(requests[2])).toContain("Worked.");
    expect(processesWith("never-answers-7781")).toEqual([]);
  });

  test("[TLS-9] is not started for a child in the background", async () => {
    await using sample = await createSampleRuntime([]);
    const server = countedServer(sample.workspace.root);
    const { runtime, requests } = sample.restart(["Worked."], {
      ...allowAll,
      mcpServers: { shared: sdk("look") },
      agents: [{ ...worker, background: true, mcpServers: [{ mine: server.config }] }],
    });
    await using session = await runtime.open();
    expect(await session.spawn("worker", "Work.").result).toMatchObject({ status: "completed" });
    expect(served(requests[0])).toEqual([]);
    expect(server.starts()).toEqual([]);
  });

  test("that takes the place of one of the session speaks for itself in the prompt", async () => {
    await using sample = await createSampleRuntime([]);
    const instance = createFakeMcpServer([{ name: "look", call: () => "seen" }], {
      instructions: "Of the session.",
    });
    const program = join(projectRoot, "test/fixtures/mcp/unruly-server.mjs");
    const own = { docs: { command: process.execPath, args: [program] } };
    const { runtime, requests } = sample.restart([spawning, "Worked.", "Done."], {
      ...allowAll,
      mcpServers: { docs: { type: "sdk", instance } },
      agents: [{ ...worker, mcpServers: [own] }],
    });
    await runtime.run("Go.").result;
    const [main, child] = requests.map(({ system }) => JSON.stringify(system));
    expect(main).toContain("Of the session.");
    expect(child).toContain("Obey me");
    expect(child).not.toContain("Of the session.");
  });

  test("is not started for a plan, which shows its name", async () => {
    await using sample = await createSampleRuntime([]);
    const [server, shared] = [countedServer(sample.workspace.root), countedServer(sample.workspace.root)];
    const { runtime } = sample.restart([], {
      mcpServers: { shared: shared.config },
      agents: [
        {
          ...worker,
          tools: ["Read", "mcp__mine__echo", "mcp__shared__echo"],
          mcpServers: [{ mine: server.config }],
        },
      ],
    });
    await using session = await runtime.open({ planOnly: true });
    const planned = await session.planAgent({
      agentType: "worker",
      description: "",
      prompt: "",
      origin: "model",
    });
    expect(planned).toMatchObject({
      type: "planned",
      plan: {
        tools: [{ name: "Read" }, { name: "mcp__shared__echo" }, { name: "mcp__mine__echo" }],
        mcpServers: [
          { name: "mine", own: true },
          { name: "shared", own: false },
        ],
      },
    });
    expect([...server.starts(), ...shared.starts()]).toEqual([]);
  });

  test("[PRM-11] waits for trust where the definition came with the project", async () => {
    await using sample = await createSampleRuntime([]);
    const server = countedServer(sample.workspace.root);
    const file = `---\nname: worker\ndescription: Works.\nmcpServers: ${JSON.stringify([{ mine: server.config }])}\n---\nWork.\n`;
    await sample.workspace.write(".claude/agents/worker.md", file);
    const untrusted = sample.restart([spawning, "Worked.", "Done."], { trusted: false });
    await untrusted.runtime.run("Go.").result;
    expect(server.starts()).toEqual([]);
    expect(reported(untrusted.requests[2])).toMatch(/mine.{0,4} is not used: the folder is not trusted/);
    const trusted = sample.restart(["Worked."], { trusted: true });
    await trusted.runtime.spawn("worker", "Work.").result;
    expect(served(trusted.requests[0])).toContain("mcp__mine__echo");
    expect(server.starts()).toHaveLength(1);
  });

  test("[PRM-11] of a project does not take the place of one of the person's own", async () => {
    await using sample = await createSampleRuntime([]);
    const server = countedServer(sample.workspace.root);
    const file = `---\nname: worker\ndescription: Works.\nmcpServers: ${JSON.stringify([{ mine: server.config }])}\n---\nWork.\n`;
    await sample.workspace.write(".claude/agents/worker.md", file);
    const options = { trusted: true, mcpServers: { mine: sdk("look") } };
    const { runtime, requests } = sample.restart([spawning, "Worked.", "Done."], options);
    await runtime.run("Go.").result;
    expect(server.starts()).toEqual([]);
    expect(served(requests[1])).toEqual(["mcp__mine__look"]);
    expect(reported(requests[2])).toContain("your own server of this name is used instead");
  });

  test("[MCP-1] is covered by strict configuration and by the organisation's list", async () => {
    const agents = [{ ...worker, mcpServers: [{ mine: { command: "/nowhere" } }] }];
    for (const options of [
      { strictMcpConfig: true },
      { settings: JSON.stringify({ deniedMcpServers: [{ serverName: "mine" }] }) },
    ]) {
      await using sample = await createSampleRuntime([spawning, "Worked.", "Done."], { agents, ...options });
      await sample.runtime.run("Go.").result;
      expect(reported(sample.requests[2])).toMatch(
        /mine.{0,4} is not used: .*(strict-mcp-config|deniedMcpServers)/,
      );
    }
  });

  test("of the main agent lives as long as the session", async () => {
    await using sample = await createSampleRuntime([]);
    const server = countedServer(sample.workspace.root);
    const { runtime, requests } = sample.restart([calling(echo("mine")), "Done.", "Again."], {
      ...allowAll,
      agents: [{ ...worker, tools: ["Read"], mcpServers: [{ mine: server.config }] }],
    });
    const session = await runtime.open({ agent: "worker" });
    await session.prompt("Go.").result;
    await session.prompt("Again.").result;
    expect(reported(requests[1])).toContain("Echo: hello");
    expect(session.plan.mcpServers).toEqual([{ name: "mine", own: true }]);
    expect(server.starts()).toHaveLength(1);
    await session[Symbol.asyncDispose]();
    expect(server.left()).toEqual([]);
  });
});

describe("servers of the session and its children", () => {
  test("[MCP-1] two children share the process of the session's server", async () => {
    await using sample = await createSampleRuntime([]);
    const server = countedServer(sample.workspace.root);
    const work: Step = {
      match: (request: ModelRequest) => request.system.join("").includes("You work."),
      respond: (request) =>
        reported(request).includes("Echo: hello") ? "Echoed." : { calls: [echo("shared")] },
      times: "any",
    };
    const { runtime } = sample.restart([work], {
      ...allowAll,
      agents: [worker],
      mcpServers: { shared: server.config },
    });
    await using session = await runtime.open();
    const results = await Promise.all([
      session.spawn("worker", "One.").result,
      session.spawn("worker", "Two.").result,
    ]);
    expect(results.map(({ text }) => text)).toEqual(["Echoed.", "Echoed."]);
    expect(server.starts()).toHaveLength(1);
  });

  test("[TLS-4, MCP-1] a child has the tools that its lists name, by server, by pattern or one by one", async () => {
    const cases: readonly [fields: object, expected: readonly string[]][] = [
      [{}, ["mcp__a__one", "mcp__a__two", "mcp__b__one"]],
      [{ tools: ["Read"] }, []],
      [{ tools: ["Read", "mcp__a"] }, ["mcp__a__one", "mcp__a__two"]],
      [{ tools: ["mcp__a__*"] }, ["mcp__a__one", "mcp__a__two"]],
      [{ tools: ["mcp__a__two", "mcp__b"] }, ["mcp__a__two", "mcp__b__one"]],
      [{ disallowedTools: ["mcp__a"] }, ["mcp__b__one"]],
      [{ disallowedTools: ["mcp__*"] }, []],
      [{ mcpServers: [{ serverName: "a", tools: ["two"] }] }, ["mcp__a__two", "mcp__b__one"]],
      [{ tools: ["Read"], mcpServers: ["a"] }, ["mcp__a__one", "mcp__a__two"]],
      [{ tools: ["Read", "mcp__a__one"], mcpServers: ["a"] }, ["mcp__a__one"]],
    ];
    const agents = cases.map(([fields], index) => ({ ...worker, name: `worker-${index}`, ...fields }));
    await using sample = await createSampleRuntime(
      cases.map(() => "Worked."),
      { agents, mcpServers: { a: sdk("one", "two"), b: sdk("one") } },
    );
    await using session = await sample.runtime.open();
    for (const { name } of agents) await session.spawn(name, "Work.").result;
    expect(sample.requests.map(served)).toEqual(cases.map(([, expected]) => expected));
  });

  test("[MCP-1] a server that is named and not there is a note in the result", async () => {
    await using sample = await createSampleRuntime([spawning, "Worked.", "Done."], {
      agents: [{ ...worker, mcpServers: ["a", "nobody", { serverName: "a", tools: ["one", "nine"] }] }],
      mcpServers: { a: sdk("one", "two") },
    });
    await sample.runtime.run("Go.").result;
    expect(served(sample.requests[1])).toEqual(["mcp__a__one"]);
    expect(reported(sample.requests[2])).toMatch(
      /nobody.{0,4} is not used: no server of this name is configured/,
    );
    expect(reported(sample.requests[2])).toMatch(/has no tool .{0,4}nine/);
  });

  test("[BGR-3] a child that is moved to the background has no tools of servers from the next turn on", async () => {
    let detach = (): Promise<void> => Promise.resolve();
    await using sample = await createSampleRuntime(
      [
        async () => {
          await detach();
          return { calls: [{ name: "mcp__a__one", input: {} }] };
        },
        "Worked.",
      ],
      { ...allowAll, agents: [worker], mcpServers: { a: sdk("one") } },
    );
    await using session = await sample.runtime.open({ allowedTools: ["mcp__a"] });
    const child = session.spawn("worker", "Work.");
    detach = () => child.detach();
    expect(await child.result).toMatchObject({ status: "completed", text: "Worked." });
    expect(sample.requests.map(served)).toEqual([["mcp__a__one"], []]);
    expect(reported(sample.requests[1])).toContain("There is no tool");
  });

  test("[MCP-1] a child reads resources of the servers it has, its own among them, and of no others", async () => {
    await using sample = await createSampleRuntime([]);
    const [shared, own] = [countedServer(sample.workspace.root), countedServer(sample.workspace.root)];
    const listing: ScriptedCall = { name: "ListMcpResourcesTool", input: {} };
    const reading = (server: string): ScriptedCall => ({
      name: "ReadMcpResourceTool",
      input: { server, uri: "demo://resource/static/document/features.md" },
    });
    const { runtime, requests } = sample.restart(
      [
        calling(listing, reading("own"), reading("shared")),
        "Worked.",
        calling(listing, reading("shared")),
        "Worked.",
      ],
      {
        ...allowAll,
        mcpServers: { shared: shared.config },
        agents: [
          { ...worker, mcpServers: [{ own: own.config }] },
          { ...worker, name: "narrow", mcpServers: [{ serverName: "shared", tools: ["echo"] }] },
        ],
      },
    );
    await using session = await runtime.open();
    await session.spawn("worker", "Work.").result;
    expect(names(requests[0]).filter((name) => name === "ListMcpResourcesTool")).toHaveLength(1);
    expect(reported(requests[1])).toMatch(/server\W+shared\W+uri/);
    expect(reported(requests[1])).toMatch(/server\W+own\W+uri/);
    expect(reported(requests[1])).not.toContain("is_error");
    await session.spawn("narrow", "Work.").result;
    expect(served(requests[2])).toEqual(["mcp__shared__echo"]);
    expect(reported(requests[3])).toContain("There is no tool");
  });

  test("[BLT-6] the guide is reported which servers the person has", async () => {
    await using sample = await createSampleRuntime(["Reported."], {
      mcpServers: { tracker: sdk("one") },
      env: { PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0" },
    });
    await sample.runtime.spawn("claude-code-guide", "What do I have?").result;
    expect(sample.requests[0]?.system.join("\n")).toMatch(/MCP servers:\n- tracker \(program, sdk\)/);
  });
});
