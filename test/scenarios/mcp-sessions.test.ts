import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createFakeMcpServer } from "@retinue/testing/fake-mcp-server.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedCall, Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { countedServer, processesWith } from "./counted-server.ts";
import { createPlace } from "./run-command.ts";

const calling = (...calls: ScriptedCall[]): Step => ({ calls });
const echo = (server: string): ScriptedCall => ({
  name: `mcp__${server}__echo`,
  input: { message: "hello" },
});
const names = (request: ModelRequest | undefined) => request?.tools.map(({ name }) => name) ?? [];
const served = (request: ModelRequest | undefined) => names(request).filter((name) => /^mcp__/.test(name));
const reported = (request: ModelRequest | undefined) => JSON.stringify(request?.messages.at(-1));
const allowAll: RuntimeOptions = { canUseTool: async () => ({ behavior: "allow" }) };

/** A runtime whose options need to know its folders. */
async function createRuntimeAt(
  steps: readonly Step[],
  optionsAt: (sample: SampleRuntime) => RuntimeOptions,
): Promise<
  AsyncDisposable & Pick<SampleRuntime, "runtime" | "requests"> & { readonly place: SampleRuntime }
> {
  const place = await createSampleRuntime([]);
  const { runtime, requests } = place.restart(steps, optionsAt(place));
  return { runtime, requests, place, [Symbol.asyncDispose]: () => place[Symbol.asyncDispose]() };
}

/** A tool of each kind, in memory: quick where the process of a server does not matter. */
const fake = () =>
  createFakeMcpServer([
    { name: "look", annotations: { readOnlyHint: true }, call: () => "seen" },
    { name: "change", call: () => "changed" },
  ]);
const sdk = (instance: ReturnType<typeof fake>) => ({ type: "sdk", instance }) as const;

/** Prints which packages of the protocol are loaded after a run without servers, and after one with a server. */
const loading = `
import { registerHooks } from "node:module";
const loaded = new Set();
registerHooks({
  load(url, context, next) {
    const name = /node_modules\\/(@modelcontextprotocol\\/[^/]+)/.exec(url)?.[1];
    if (name !== undefined) loaded.add(name);
    return next(url, context);
  },
});
const { createRuntime } = await import(process.argv[1]);
const { createScriptedModel } = await import(process.argv[2]);
const [, , , cwd] = process.argv;
const found = [];
for (const mcpServers of [{}, { one: { command: "/nowhere" } }]) {
  const options = { cwd, home: cwd, env: {}, onWarning: () => {}, mcpServers };
  await using runtime = createRuntime({ ...options, model: createScriptedModel(["Done."]) });
  await runtime.run("Go.").result;
  found.push([...loaded]);
}
console.log(JSON.stringify(found));
`;

describe("servers of a session", () => {
  test("[MCP-1] without servers nothing of the protocol is loaded", async () => {
    const place = createPlace();
    const entries = ["src/index.ts", "packages/testing/src/index.ts"].map(
      (file) => pathToFileURL(join(projectRoot, file)).href,
    );
    const given = ["--input-type=module", "-e", loading, ...entries, place.cwd];
    const loaded = JSON.parse(execFileSync(process.execPath, given, { encoding: "utf8" }));
    expect(loaded).toEqual([[], expect.arrayContaining(["@modelcontextprotocol/client"])]);
  });

  test("[MCP-1] real servers from npm answer the calls of the main agent", async () => {
    await using sample = await createRuntimeAt(
      [
        calling(
          echo("all"),
          {
            name: "mcp__notes__create_entities",
            input: { entities: [{ name: "Ada", entityType: "person", observations: ["counts"] }] },
          },
          { name: "mcp__files__read_text_file", input: { path: "letter.txt" } },
        ),
        calling({ name: "mcp__notes__read_graph", input: {} }),
        "Done.",
      ],
      ({ workspace }) => {
        writeFileSync(workspace.path("letter.txt"), "Dear reader");
        const { root, project } = workspace;
        const memory = countedServer(root, "server-memory").config;
        return {
          ...allowAll,
          mcpServers: {
            all: countedServer(root, "server-everything").config,
            notes: { ...memory, env: { MEMORY_FILE_PATH: join(root, "graph.json") } },
            files: countedServer(root, "server-filesystem", project).config,
          },
        };
      },
    );
    await using session = await sample.runtime.open();
    const states = session.mcpServers().map(({ name, status }) => [name, status.type]);
    expect(states).toEqual([
      ["all", "connected"],
      ["notes", "connected"],
      ["files", "connected"],
    ]);
    expect(await session.prompt("Go.").result).toMatchObject({ status: "completed", text: "Done." });
    expect(reported(sample.requests[1])).toContain("Echo: hello");
    expect(reported(sample.requests[1])).toContain("Dear reader");
    expect(reported(sample.requests[2])).toContain("counts");
    expect(session.plan.mcpServers).toEqual(["all", "notes", "files"].map((name) => ({ name, own: false })));
  });

  test("[MCP-1] the tools are in the same order at every turn, so that the prompt cache stays valid", async () => {
    await using sample = await createRuntimeAt(
      [calling(echo("all")), calling(echo("all")), "Done."],
      ({ workspace }) => ({
        ...allowAll,
        mcpServers: { all: countedServer(workspace.root).config, more: sdk(fake()) },
      }),
    );
    await sample.runtime.run("Go.").result;
    const lists = sample.requests.map(({ tools }) => JSON.stringify(tools));
    expect(new Set(lists).size).toBe(1);
    expect(served(sample.requests[0]).slice(-2)).toEqual(["mcp__more__look", "mcp__more__change"]);
  });

  test("[MCP-2] a server that dies in a call is an error for that call, and serves the next one", async () => {
    const long: ScriptedCall = {
      name: "mcp__all__trigger-long-running-operation",
      input: { duration: 86_400, steps: 8_640_000 },
    };
    await using sample = await createSampleRuntime([]);
    const server = countedServer(sample.workspace.root);
    const { runtime, requests } = sample.restart([calling(long), calling(echo("all")), "Done."], {
      ...allowAll,
      mcpServers: { all: server.config },
    });
    const run = runtime.run("Go.");
    for await (const event of run.events) {
      const [first = 0] = server.starts();
      if (event.type === "call-progressed" && server.left().includes(first)) process.kill(first, "SIGKILL");
    }
    expect(await run.result).toMatchObject({ status: "completed", text: "Done." });
    expect(reported(requests[1])).toContain("ended before it answered");
    expect(reported(requests[2])).toContain("Echo: hello");
    expect(server.starts()).toHaveLength(2);
    await server.gone();
  });

  test("[MCP-2] a server that fails to start is reported to the person, and the session continues without it", async () => {
    const notices: string[] = [];
    await using sample = await createSampleRuntime(["Done."], {
      onWarning: (text) => void notices.push(text),
      mcpServers: { gone: { command: "/nowhere/at-all" }, here: sdk(fake()) },
    });
    await using session = await sample.runtime.open();
    expect(notices).toEqual([expect.stringMatching(/"gone" failed: its command was not found/)]);
    expect(session.plan.notes).toEqual([expect.stringContaining('"gone" failed')]);
    expect(session.mcpServers().map(({ name, status }) => [name, status.type])).toEqual([
      ["gone", "failed"],
      ["here", "connected"],
    ]);
    expect(await session.prompt("Go.").result).toMatchObject({ status: "completed" });
    expect(served(sample.requests[0])).toEqual(["mcp__here__look", "mcp__here__change"]);
  });

  test("[SPN-6] a run that is stopped while a server still starts ends, and the server with it", async () => {
    const mark = "never-answers-7782";
    const silent = { command: process.execPath, args: ["-e", "setInterval(() => {}, 1000)", mark] };
    const environment = { PATH: process.env["PATH"], MCP_TIMEOUT: "3600000", RETINUE_LOCAL_MODELS: "0" };
    const worker = { name: "worker", description: "Works.", prompt: "You work.", mcpServers: [{ silent }] };
    const spawning = calling({
      name: "Agent",
      input: { description: "work", prompt: "Work.", subagent_type: "worker" },
    });
    const cases: readonly RuntimeOptions[] = [{ mcpServers: { silent } }, { agents: [worker] }];
    for (const options of cases) {
      await using sample = await createSampleRuntime([spawning], { env: environment, ...options });
      const stop = new AbortController();
      const run = sample.runtime.run("Go.", { signal: stop.signal });
      await expect.poll(() => processesWith(mark).length, { timeout: 20_000 }).toBe(1);
      stop.abort();
      expect(await run.result).toMatchObject({ status: "stopped" });
      await sample.runtime[Symbol.asyncDispose]();
      expect(processesWith(mark)).toEqual([]);
    }
  });

  test("[PRM-11] a server of the project waits for trust, and the person is notified", async () => {
    const notices: string[] = [];
    await using sample = await createSampleRuntime([]);
    const server = countedServer(sample.workspace.root);
    await sample.workspace.write(".mcp.json", JSON.stringify({ mcpServers: { ours: server.config } }));
    const open = (options: RuntimeOptions) =>
      sample.restart([], { onWarning: (text) => void notices.push(text), ...options }).runtime.open();
    await using untrusted = await open({ trusted: false });
    expect(server.starts()).toEqual([]);
    expect(untrusted.mcpServers()).toMatchObject([{ name: "ours", status: { type: "held" } }]);
    expect(notices).toEqual([expect.stringMatching(/"ours" is not connected: the folder is not trusted/)]);
    await using trusted = await open({ trusted: true });
    expect(server.starts()).toHaveLength(1);
    await trusted[Symbol.asyncDispose]();
    await server.gone();
  });

  test("[MCP-1] what a deny rule takes away, the model does not see, and resources are taken with it", async () => {
    await using sample = await createRuntimeAt(
      [
        calling({
          name: "ReadMcpResourceTool",
          input: { server: "all", uri: "demo://resource/static/document/x" },
        }),
        "Done.",
        calling({ name: "ListMcpResourcesTool", input: {} }),
        "Done.",
      ],
      ({ workspace }) => ({
        ...allowAll,
        mcpServers: { all: countedServer(workspace.root).config, more: sdk(fake()) },
      }),
    );
    await using denying = await sample.runtime.open({ disallowedTools: ["mcp__all", "mcp__more__change"] });
    await denying.prompt("Go.").result;
    expect(served(sample.requests[0])).toEqual(["mcp__more__look"]);
    expect(denying.plan.mcpServers).toEqual([{ name: "more", own: false }]);
    expect(reported(sample.requests[1])).toContain("There is no tool");
    await using open = await sample.runtime.open();
    await open.prompt("Go.").result;
    expect(reported(sample.requests[3])).toContain("demo://resource");
  });

  test("[PRM-2] plan mode lets through what its server says only reads, and nothing else", async () => {
    const server = fake();
    await using sample = await createSampleRuntime(
      [calling({ name: "mcp__more__look" }, { name: "mcp__more__change" }), "Done."],
      { ...allowAll, mcpServers: { more: sdk(server) } },
    );
    const { denials } = await sample.runtime.run("Go.", { permissionMode: "plan" }).result;
    expect(server.calls.map(({ tool }) => tool)).toEqual(["look"]);
    expect(denials.map(({ call }) => call.name)).toEqual(["mcp__more__change"]);
  });

  test("[PRM-8] without a rule a call is refused where no person can be asked; a rule may name the server as it is called", async () => {
    const server = fake();
    const named: RuntimeOptions = { mcpServers: { "my.tools": sdk(server) } };
    await using sample = await createSampleRuntime(
      [
        calling({ name: "mcp__my_tools__change" }),
        "Done.",
        calling({ name: "mcp__my_tools__change" }),
        "Done.",
      ],
      named,
    );
    expect((await sample.runtime.run("Go.").result).denials).toHaveLength(1);
    await sample.runtime.run("Go.", { allowedTools: ["mcp__my.tools"] }).result;
    expect(server.calls).toHaveLength(1);
  });

  test("[MCP-1] the servers' own descriptions are once in the prompt of the agent that has them, the same at every turn", async () => {
    const says = (instructions: string) =>
      ({
        type: "sdk",
        instance: createFakeMcpServer([{ name: "look", call: () => "seen" }], { instructions }),
      }) as const;
    const { runtime, requests, place } = await createRuntimeAt(
      [
        calling({ name: "Agent", input: { description: "a", prompt: "A.", subagent_type: "worker" } }),
        "Worked.",
        calling({ name: "mcp__docs__look", input: {} }),
        "Done.",
      ],
      () => ({
        ...allowAll,
        mcpServers: { docs: says("Search first."), hidden: says("Unseen.") },
        settings: JSON.stringify({ permissions: { deny: ["mcp__hidden"] } }),
        agents: [{ name: "worker", description: "Works.", prompt: "You work.", tools: ["Read"] }],
      }),
    );
    await using _place = place;
    await runtime.run("Go.").result;
    const systems = requests.map(({ system }) => JSON.stringify(system));
    expect(systems[0]?.match(/Search first\./g)).toHaveLength(1);
    expect(systems[1]).not.toContain("Search first.");
    expect(systems.join("")).not.toContain("Unseen.");
    expect([systems[2], systems[3]]).toEqual([systems[0], systems[0]]);
  });

  test("[HKS-7] a hook receives which server the tool of a call belongs to", async () => {
    const received: unknown[] = [];
    const { runtime, place } = await createRuntimeAt(
      [calling({ name: "mcp__docs__look", input: {} }), "Done."],
      () => ({
        ...allowAll,
        mcpServers: { docs: sdk(fake()) },
        hooks: (["PreToolUse", "PostToolUse"] as const).map((event) => ({
          event,
          run: (input) => void received.push(input),
        })),
      }),
    );
    await using _place = place;
    await runtime.run("Go.").result;
    const mcp_server = { name: "docs", source: "program" };
    expect(received).toMatchObject([{ mcp_server }, { mcp_server }]);
  });

  test("[HKS-7] a hook may ask a tool of a connected server", async () => {
    const guard = createFakeMcpServer([
      {
        name: "judge",
        call: ({ path }) => JSON.stringify({ decision: "block", reason: `not ${String(path)}` }),
      },
    ]);
    const hook = {
      type: "mcp_tool",
      server: "guard",
      tool: "judge",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: hooks fill it in
      input: { path: "${tool_input.file_path}" },
    };
    await using sample = await createSampleRuntime(
      [calling({ name: "Read", input: { file_path: "/secret" } }), "Done."],
      {
        mcpServers: { guard: sdk(guard) },
        settings: JSON.stringify({ hooks: { PreToolUse: [{ hooks: [hook] }] } }),
      },
    );
    const { denials } = await sample.runtime.run("Go.").result;
    expect(denials[0]?.reason).toContain("not /secret");
  });

  test("[PRM-12] a tool of a server answers in a person's place, and agents do not have it", async () => {
    const asked = createFakeMcpServer([
      {
        name: "approve",
        call: ({ tool_name, input }) =>
          tool_name === "mcp__more__change"
            ? JSON.stringify({ behavior: "allow", updatedInput: input })
            : JSON.stringify({ behavior: "deny", message: "not that" }),
      },
    ]);
    const server = fake();
    await using sample = await createSampleRuntime(
      [calling({ name: "mcp__more__change" }, { name: "mcp__more__look" }), "Done."],
      { mcpServers: { desk: sdk(asked), more: sdk(server) } },
    );
    const { denials } = await sample.runtime.run("Go.", { permissionPromptTool: "mcp__desk__approve" })
      .result;
    expect(asked.calls[0]?.input).toMatchObject({
      tool_name: "mcp__more__change",
      input: {},
      tool_use_id: expect.any(String),
    });
    expect(server.calls.map(({ tool }) => tool)).toEqual(["change"]);
    expect(denials[0]?.reason).toContain("not that");
    expect(served(sample.requests[0])).toEqual(["mcp__more__look", "mcp__more__change"]);
    const missing = sample.runtime.run("Go.", { permissionPromptTool: "mcp__desk__other" });
    await expect(missing.result).rejects.toThrow("There is no MCP tool");
  });
});
