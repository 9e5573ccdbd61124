import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { defineAgent } from "@retinue/config/agents/define-agent.ts";
import { discoverAgents } from "@retinue/config/discovery/discover-agents.ts";
import type { ApprovalRequest } from "@retinue/gate/approver.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createAskMcpServer } from "./connect-session-servers.ts";
import {
  chooseAgentServers,
  type GatherMcpOptions,
  gatherMcpServers,
  refuseBrokenMcpConfig,
} from "./gather-mcp-servers.ts";

type Files = Readonly<Record<string, unknown>>;

async function createMachine(files: Files) {
  const root = await realpath(await mkdtemp(join(tmpdir(), "mcp-gather-")));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const write = async (path: string, value: unknown) => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    const text = typeof value === "string" ? value : JSON.stringify(value);
    await writeFile(join(root, path), text.replaceAll("{{ROOT}}", root));
  };
  await mkdir(join(root, "project/.git"), { recursive: true });
  for (const [path, value] of Object.entries(files)) await write(path, value);
  const gather = async (
    options: Partial<Omit<GatherMcpOptions, "discovered">> & {
      readonly cwd?: string;
      readonly pluginDirectories?: readonly string[];
    } = {},
  ) => {
    const { cwd = "project", pluginDirectories = [], trusted = true, ...rest } = options;
    const discovered = await discoverAgents({
      cwd: join(root, cwd),
      home: join(root, "home"),
      managedDirectory: join(root, "managed"),
      platform: "linux",
      trusted,
      pluginDirectories,
    });
    const gathered = await gatherMcpServers({
      discovered,
      trusted,
      environment: { TOKEN: "secret" },
      ...rest,
    });
    return {
      ...gathered,
      connected: gathered.servers.map(({ name, scope }) => `${scope} ${name}`),
      reasons: gathered.held.map(({ entry, code }) => `${entry.scope} ${entry.config.name}: ${code}`),
      codes: gathered.diagnostics.map(({ code }) => code),
    };
  };
  return { root, write, gather };
}

const servers = (...names: readonly string[]) => ({
  mcpServers: Object.fromEntries(names.map((name) => [name, { command: name, args: [] }])),
});

describe("[MCP-1] the servers of a session", () => {
  test("come from every place, and the higher rank wins a name", async () => {
    const { gather, root } = await createMachine({
      "managed/managed-settings.json": { managedMcpServers: { everywhere: { command: "managed" } } },
      "home/.claude.json": {
        mcpServers: { everywhere: { command: "user" }, user: { command: "x" }, both: { command: "user" } },
        projects: { "{{ROOT}}/project": servers("everywhere", "local", "both") },
      },
      "home/.claude/settings.json": servers("settings"),
      "project/.mcp.json": servers("everywhere", "project", "near"),
      "project/deep/.mcp.json": servers("near"),
      "tidy/.mcp.json": servers("plugged"),
    });
    const { servers: found, connected } = await gather({
      cwd: "project/deep",
      mcpConfig: [JSON.stringify(servers("given", "everywhere"))],
      mcpServers: { own: { command: "x" }, held: { type: "sdk", instance: {} } },
      pluginDirectories: [join(root, "tidy")],
    });
    expect(connected.sort()).toEqual(
      [
        "flag given",
        "local both",
        "local local",
        "managed everywhere",
        "plugin plugin:tidy:plugged",
        "program held",
        "program own",
        "project near",
        "project project",
        "user settings",
        "user user",
      ].sort(),
    );
    const file = (name: string) => found.find((server) => server.name === name)?.file;
    expect(file("near")).toBe(join(root, "project/deep/.mcp.json"));
    expect(found.find(({ name }) => name === "held")?.transport).toEqual({ type: "sdk" });
  });

  test("are those of --mcp-config and the program alone where that is asked for", async () => {
    const { gather } = await createMachine({
      "home/.claude.json": servers("user"),
      "project/.mcp.json": servers("p"),
    });
    const mcpConfig = [JSON.stringify(servers("given"))];
    const { connected, reasons, facts } = await gather({
      mcpConfig,
      strictMcpConfig: true,
      mcpServers: { own: { command: "x" } },
    });
    expect(connected).toEqual(["flag given", "program own"]);
    expect(reasons).toEqual(["project p: left-out", "user user: left-out"]);
    const agent = { ...agentWith("user", { command: "x" }) };
    expect(chooseAgentServers(agent, facts).held).toMatchObject([{ code: "left-out" }]);
  });

  test("are the organisation's alone where it has a file of its own, even a broken one", async () => {
    const others = { "home/.claude.json": servers("user") };
    const fixed = await createMachine({ ...others, "managed/managed-mcp.json": servers("only") });
    expect((await fixed.gather({ mcpServers: { own: { command: "x" } } })).connected).toEqual([
      "managed only",
    ]);
    const broken = await createMachine({ ...others, "managed/managed-mcp.json": "{" });
    expect(await broken.gather()).toMatchObject({ connected: [], codes: ["invalid-json"] });
  });

  test("leave out the files of sources that were not asked for", async () => {
    const { gather } = await createMachine({
      "home/.claude.json": servers("user"),
      "project/.mcp.json": servers("p"),
    });
    expect((await gather({ settingSources: ["user"] })).connected).toEqual(["user user"]);
    expect((await gather({ settingSources: ["project"] })).connected).toEqual(["project p"]);
  });

  test("have their variables expanded, and an unset one is reported with its place", async () => {
    const variable = (name: string) => "$".concat(`{${name}}`);
    const { gather, root } = await createMachine({
      "project/.mcp.json": `{"mcpServers": {\n  "a": {"command": "x", "args": ["${variable("TOKEN")}", "${variable("NONE")}"]},\n  "b": {"url": "https://a.example/${variable("NONE")}"},\n  "c": {"command": "${variable("CLAUDE_PROJECT_DIR")}/run"}\n}}`,
      "tidy/.mcp.json": { mcpServers: { p: { command: `${variable("CLAUDE_PLUGIN_ROOT")}/run` } } },
    });
    const {
      servers: found,
      diagnostics,
      reasons,
    } = await gather({ pluginDirectories: [join(root, "tidy")] });
    expect(found).toMatchObject([
      { name: "a", transport: { args: ["secret", variable("NONE")] } },
      { name: "c", transport: { command: join(root, "project/run") } },
      {
        name: "plugin:tidy:p",
        transport: { command: join(root, "tidy/run"), env: { CLAUDE_PLUGIN_ROOT: join(root, "tidy") } },
      },
    ]);
    expect(diagnostics).toMatchObject([{ code: "mcp-variable-unset", line: 2, column: 3 }, { line: 3 }]);
    expect(reasons).toEqual(["project b: unusable"]);
  });

  test("may not have names that cannot be distinguished", async () => {
    const { gather } = await createMachine({
      "home/.claude.json": {
        mcpServers: { ...servers("my server", "a__b", "../evil", "plugin:x:y").mcpServers },
      },
      "project/.mcp.json": servers("my_server"),
    });
    const { connected, reasons, codes } = await gather();
    expect(connected).toEqual(["user my server"]);
    expect(reasons.sort()).toEqual([
      "project my_server: not-approved",
      "user ../evil: name-refused",
      "user a__b: name-refused",
      "user plugin:x:y: name-refused",
    ]);
    expect(codes).toEqual([]);
    const { gather: again } = await createMachine({ "home/.claude.json": servers("my server", "my_server") });
    expect(await again()).toMatchObject({ connected: ["user my server"], codes: ["mcp-name-refused"] });
  });

  test("of a --mcp-config that cannot be read end the run with a sentence", async () => {
    const { gather } = await createMachine({});
    for (const given of ["nowhere.json", "{", "[]", '{"mcpServer": {}}']) {
      const gathered = await gather({ mcpConfig: [given] });
      expect(() => refuseBrokenMcpConfig(gathered)).toThrow(/--mcp-config cannot be used/);
    }
    expect(() => refuseBrokenMcpConfig({})).not.toThrow();
  });
});

describe("[MCP-1, PRM-11] what came with the project", () => {
  const project = { "project/.mcp.json": servers("db"), "home/.claude.json": servers("db") };

  test("is neither started nor expanded nor asked about before trust, and hides nothing of the person's", async () => {
    const { gather } = await createMachine({
      ...project,
      "project/.claude/settings.json": { ...servers("sneaky"), enableAllProjectMcpServers: true },
      "project/.claude/settings.local.json": { ...servers("sneakier"), enableAllProjectMcpServers: true },
    });
    const asked: string[] = [];
    const { connected, reasons } = await gather({
      trusted: false,
      ask: async ({ entry }) => {
        asked.push(entry.config.name);
        return "remember";
      },
    });
    expect(connected).toEqual(["user db"]);
    expect(reasons).toEqual([
      "local sneakier: untrusted",
      "project db: untrusted",
      "project sneaky: untrusted",
    ]);
    expect(asked).toEqual([]);
  });

  test("is asked about once, and again when any part of it changes", async () => {
    const { gather, write, root } = await createMachine({ "project/.mcp.json": servers("db") });
    const asked: ApprovalRequest[] = [];
    const ask = createAskMcpServer(
      {
        approve: async (request) => {
          asked.push(request);
          return { type: "allow", for: "save" };
        },
      },
      { sessionId: "s1", signal: new AbortController().signal },
    );
    expect((await gather({ ask })).connected).toEqual(["project db"]);
    expect((await gather({ ask })).connected).toEqual(["project db"]);
    expect(asked).toMatchObject([
      { tool: "McpServer", input: { name: "db", definition: { command: "db" } } },
    ]);
    const local = JSON.parse(await readFile(join(root, "project/.claude/settings.local.json"), "utf8"));
    expect(local).toMatchObject({ enabledMcpjsonServers: ["db"] });
    await write("project/.mcp.json", { mcpServers: { db: { command: "db", args: ["--eval", "x"] } } });
    expect((await gather()).reasons).toEqual(["project db: changed"]);
    await gather({ ask });
    expect(asked).toHaveLength(2);
    expect((await gather()).connected).toEqual(["project db"]);
  });

  test("is not started after a no, and a yes without saving counts for this session alone", async () => {
    const { gather } = await createMachine({ "project/.mcp.json": servers("db") });
    expect(await gather({ ask: async () => "no" })).toMatchObject({
      connected: [],
      reasons: ["project db: not-approved"],
    });
    expect((await gather({ ask: async () => "for this session" })).connected).toEqual(["project db"]);
    expect((await gather({ ask: async () => "no" })).connected).toEqual([]);
  });

  test("does not silently take the place of the person's own server", async () => {
    const { gather } = await createMachine(project);
    expect(await gather()).toMatchObject({
      connected: ["user db"],
      reasons: ["project db: not-approved"],
    });
    expect((await gather({ ask: async () => "for this session" })).connected).toEqual(["project db"]);
  });

  test("and is in an agent's definition is held back with the agent's file", async () => {
    const { gather } = await createMachine({});
    const agent = agentWith("project", { command: "./evil" });
    const untrusted = chooseAgentServers(agent, (await gather({ trusted: false })).facts);
    expect(untrusted).toMatchObject({ servers: [], held: [{ code: "untrusted" }] });
    const trusted = chooseAgentServers(agent, (await gather()).facts);
    expect(trusted.servers).toMatchObject([
      { name: "own", scope: "agent", transport: { command: "./evil" } },
    ]);
    const users = chooseAgentServers(
      agentWith("user", { command: "x" }),
      (await gather({ trusted: false })).facts,
    );
    expect(users.servers).toHaveLength(1);
  });
});

function agentWith(scope: "project" | "user", config: Readonly<Record<string, unknown>>) {
  const agent = defineAgent({
    name: "worker",
    description: "Works.",
    prompt: "Work.",
    mcpServers: [{ own: config }],
  });
  return { ...agent, source: { scope, file: "/x/worker.md" } };
}
