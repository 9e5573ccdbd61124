import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { countedServer } from "./counted-server.ts";
import {
  type CommandOptions,
  createPlace,
  type Finished,
  type Place,
  readJsonLines,
  runCommand,
  runInProcess,
} from "./run-command.ts";

interface Stage extends Place {
  readonly provider: FakeProvider;
  run(arguments_: readonly string[]): Promise<Finished>;
  /** The built command, in a process of its own. */
  start(arguments_: readonly string[], options?: CommandOptions): Promise<Finished>;
}

async function createStage(steps: readonly Step[]): Promise<Stage> {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  return {
    ...place,
    provider,
    run: (arguments_) => runInProcess(place, arguments_, { environment }),
    start: (arguments_, options = {}) => runCommand(place, arguments_, { ...options, environment }),
  };
}

const echo: Step = { calls: [{ name: "mcp__all__echo", input: { message: "hello" } }] };
const long: Step = {
  calls: [
    {
      name: "mcp__all__trigger-long-running-operation",
      input: { duration: 86_400, steps: 8_640_000 },
    },
  ],
};
const config = (servers: object) => JSON.stringify({ mcpServers: servers });

describe("[MCP-1, CLI-1] retinue -p with MCP servers", () => {
  test("a server of .mcp.json serves a run in a trusted folder, and init shows how each is doing", async () => {
    const stage = await createStage([echo, "Done."]);
    const server = countedServer(stage.home, "server-everything");
    stage.write(".mcp.json", config({ all: server.config, broken: { command: "/nowhere" } }));
    const { code, out, err } = await stage.start([
      "-p",
      "Go.",
      "--trust",
      "--output-format",
      "stream-json",
      "--allowedTools",
      "mcp__all__echo",
    ]);
    expect(code).toBe(0);
    const init = readJsonLines(out).find(({ subtype }) => subtype === "init");
    expect(init?.["mcp_servers"]).toEqual([
      { name: "all", status: "connected", source: "project" },
      { name: "broken", status: "failed", source: "project", error: expect.stringContaining("not found") },
    ]);
    expect(init?.["tools"]).toContain("mcp__all__echo");
    expect(JSON.stringify(stage.provider.requests[1]?.request.messages)).toContain("Echo: hello");
    const [first, second] = stage.provider.requests;
    expect(JSON.stringify(second?.body["tools"])).toBe(JSON.stringify(first?.body["tools"]));
    expect(second?.usage?.cacheReadTokens).toBeGreaterThan(0);
    expect(err).toMatch(/"broken" failed: its command was not found/);
    expect(server.starts()).toHaveLength(1);
    expect(server.left()).toEqual([]);
  });

  test("--mcp-config and --strict-mcp-config leave only what was given; one that cannot be read is a misuse", async () => {
    const stage = await createStage(["Done."]);
    const [ours, given] = [countedServer(stage.home), countedServer(stage.home)];
    stage.write(".mcp.json", config({ ours: ours.config }));
    const more = ["--mcp-config", config({ all: given.config }), "--strict-mcp-config"];
    const { code } = await stage.run(["-p", "Go.", "--trust", ...more]);
    expect(code).toBe(0);
    expect([ours.starts().length, given.starts().length]).toEqual([0, 1]);
    const broken = await stage.run(["-p", "Go.", "--mcp-config", "{"]);
    expect(broken).toMatchObject({ code: 1, err: expect.stringContaining("--mcp-config cannot be used") });
  });

  test("--permission-prompt-tool asks a server, and refuses a tool that is not there", async () => {
    const stage = await createStage([echo, "Done."]);
    const server = countedServer(stage.home);
    const given = ["--mcp-config", config({ all: server.config })];
    const asked = await stage.run(["-p", "Go.", ...given, "--permission-prompt-tool", "mcp__all__echo"]);
    expect(asked.code).toBe(0);
    const answer = JSON.stringify(stage.provider.requests[1]?.request.messages.at(-1));
    // The server's echo is no answer of the form that is asked for, and agents do not have the tool.
    expect(answer).toContain("There is no tool");
    const missing = await stage.run(["-p", "Go.", ...given, "--permission-prompt-tool", "mcp__all__nothing"]);
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining("There is no MCP tool") });
  });

  test("[MCP-2] no server outlives the command, its own or a child's, when it is killed in the middle of a call", async () => {
    const spawning: Step = {
      calls: [
        {
          name: "Agent",
          input: { description: "w", prompt: "Work.", subagent_type: "worker", run_in_background: false },
        },
      ],
    };
    const stage = await createStage([spawning, long]);
    const [shared, own] = [countedServer(stage.home), countedServer(stage.home)];
    const worker = { description: "Works.", prompt: "Work.", mcpServers: [{ all: own.config }] };
    let killed = false;
    const { code } = await stage.start(
      [
        "-p",
        "Go.",
        "--agents",
        JSON.stringify({ worker }),
        "--mcp-config",
        config({ shared: shared.config }),
        "--allowedTools",
        "mcp__all",
        "--output-format",
        "stream-json",
      ],
      {
        watch(out, child) {
          // A server is connected before its agent is asked for anything, so by now it runs.
          if (killed || !out.includes('trigger-long-running-operation","input')) return;
          killed = child.kill("SIGKILL");
        },
      },
    );
    expect({ killed, code }).toEqual({ killed: true, code: null });
    expect([shared.starts().length, own.starts().length]).toEqual([1, 1]);
    await Promise.all([shared.gone(), own.gone()]);
  });
});

describe("[CLI-2, MCP-1] commands that look at servers", () => {
  test("`mcp list` connects, counts tools and shows failures, which only `--check` counts as one; `mcp` starts nothing", async () => {
    const stage = await createStage([]);
    const server = countedServer(stage.home);
    writeFileSync(
      `${stage.home}/.claude.json`,
      config({ all: server.config, broken: { command: "/nowhere" } }),
    );
    for (const words of [["mcp"], ["mcp", "list", "--no-check"]])
      expect((await stage.run(words)).out).toMatch(/all\s+user\s+stdio\s+connects/);
    expect(server.starts()).toEqual([]);
    const { code, out } = await stage.run(["mcp", "list"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^all: .+ - ✔ Connected, \d+ tools$/m);
    expect(out).toMatch(/^broken: \/nowhere - ✘ Failed to connect: its command was not found/m);
    expect((await stage.run(["mcp", "list", "--check"])).code).toBe(1);
    expect((await stage.run(["mcp", "get", "all"])).out).toMatch(/status\s+✔ Connected, \d+ tools/);
    const json = JSON.parse((await stage.run(["mcp", "list", "--check", "--json"])).out);
    expect(json.servers).toMatchObject([
      { name: "all", check: { type: "connected", tools: expect.any(Number) } },
      { name: "broken", check: { type: "failed" } },
    ]);
    const doctor = await stage.run(["doctor"]);
    expect(doctor.out).toMatch(
      /error\s+MCP servers\s+connected: all \(\d+ tools\); broken fails: its command/,
    );
    await server.gone();
  });

  test("a server of the project that nobody has approved is not started to see how it does", async () => {
    const stage = await createStage([]);
    const server = countedServer(stage.home);
    stage.write(".mcp.json", config({ theirs: server.config }));
    const { code, out } = await stage.run(["mcp", "list", "--trust"]);
    expect([code, server.starts()]).toEqual([0, []]);
    expect(out).toMatch(/^theirs: .+ - ⏸ Pending approval/m);
  });

  test("a server that answers 401 needs authentication, for people and programs", async () => {
    const http = createServer((_, response) => response.writeHead(401).end());
    await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void http.close());
    const { port } = http.address() as AddressInfo;
    const stage = await createStage(["Fine.", "Fine."]);
    for (const type of ["http", "sse"]) {
      const servers = config({ locked: { type, url: `http://127.0.0.1:${port}/mcp` } });
      writeFileSync(`${stage.home}/.claude.json`, servers);
      expect((await stage.run(["mcp", "list"])).out).toMatch(/^locked: .+ - ! Needs authentication/m);
      const run = await stage.run(["-p", "hi", "--output-format", "stream-json", "--verbose"]);
      const [init] = readJsonLines(run.out);
      expect(init).toMatchObject({ mcp_servers: [{ name: "locked", status: "needs-auth" }] });
    }
  });

  test("a configured server that never answers does not hold the start for its whole limit", async () => {
    const stage = await createStage(["Fine."]);
    const silent = { command: process.execPath, args: ["-e", "setInterval(() => {}, 1000)"] };
    writeFileSync(`${stage.home}/.claude.json`, config({ silent }));
    const run = await stage.run(["-p", "hi", "--output-format", "stream-json", "--verbose"]);
    expect(run.code).toBe(0);
    // Held for its whole limit, it would have failed by now.
    const [init] = readJsonLines(run.out);
    expect(init).toMatchObject({ mcp_servers: [{ name: "silent", status: "pending" }] });
    expect(run.err).toContain("has not answered within 5 s");
  });

  test("[CLI-3] `plan` names the servers of a child and starts none", async () => {
    const stage = await createStage([]);
    const [shared, own] = [countedServer(stage.home), countedServer(stage.home)];
    writeFileSync(`${stage.home}/.claude.json`, config({ shared: shared.config }));
    const worker = { description: "Works.", prompt: "Work.", mcpServers: [{ mine: own.config }] };
    const { code, out } = await stage.run(["plan", "worker", "--agents", JSON.stringify({ worker })]);
    expect(code).toBe(0);
    expect(out).toMatch(/mcp__shared__\*, mcp__mine__\*/);
    expect(out).toMatch(/server\s+mine/);
    expect(out).toMatch(/server\s+shared \(/);
    expect([...shared.starts(), ...own.starts()]).toEqual([]);
  });
});

test("[TLS-7] Retinue is no server of its own agents, through which a child could start others", async () => {
  const stage = await createStage(["Done."]);
  const own = { command: process.execPath, args: [join(projectRoot, "bin/retinue.js"), "mcp", "serve"] };
  const { code, out } = await stage.run([
    ...["-p", "Go.", "--output-format", "stream-json", "--strict-mcp-config"],
    ...["--mcp-config", config({ agents: { ...own, env: { RETINUE_MCP_CLIENT: "" } } })],
  ]);
  expect(code).toBe(0);
  expect(readJsonLines(out)[0]?.["mcp_servers"]).toMatchObject([{ name: "agents", status: "failed" }]);
  expect(stage.provider.requests[0]?.request.tools.map(({ name }) => name)).not.toContain(
    "mcp__agents__spawn_agent",
  );
});
