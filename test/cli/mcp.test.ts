import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { takeMcpConfigs } from "@retinue/hosts/cli/program/run-program.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { runInProcess } from "../scenarios/run-command.ts";

function createFixture(files: Readonly<Record<string, unknown>> = {}) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-mcp-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [cwd, home] = [join(root, "project"), join(root, "home")];
  for (const folder of [cwd, home]) mkdirSync(folder);
  const write = (path: string, value: unknown) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), JSON.stringify(value, undefined, 2));
  };
  for (const [path, value] of Object.entries(files)) write(path, value);
  return {
    cwd,
    write,
    read: (path: string): unknown => JSON.parse(readFileSync(join(root, path), "utf8")),
    run: (...arguments_: readonly string[]) =>
      runInProcess({ cwd, home }, arguments_, { environment: { COLUMNS: "100" } }),
  };
}

const project = {
  "project/.mcp.json": { mcpServers: { db: { command: "npx", args: ["db"], env: { KEY: "word" } } } },
};

describe("[MCP-1, CLI-2] retinue mcp", () => {
  test("lists each server with where it is, whether it would be connected, and why not", async () => {
    const { run } = createFixture({
      ...project,
      "home/.claude.json": { mcpServers: { web: { url: "https://a.example", headers: { A: "hidden" } } } },
    });
    const { code, out } = await run("mcp");
    expect(code).toBe(0);
    expect(out).toMatch(/^db +project +stdio +untrusted +\.mcp\.json$/m);
    expect(out).toMatch(/^web +user +http +connects +~\/\.claude\.json$/m);
    expect(out).toContain("db: the folder is not trusted.");
    expect((await run("mcp", "list", "--no-check", "--trust")).out).toMatch(/^db +project +stdio +asks/m);
    const json = await run("mcp", "list", "--no-check", "--json");
    expect(JSON.parse(json.out)).toMatchObject({
      version: 1,
      servers: [
        { name: "web", scope: "user", transport: "http", connects: true, asks: false },
        { name: "db", connects: false, code: "untrusted" },
      ],
    });
    expect(json.out).not.toMatch(/hidden|word/);
  });

  test("shows one server: all of a project's, and no values of one's own", async () => {
    const { run } = createFixture({
      ...project,
      "home/.claude.json": { mcpServers: { mine: { command: "x", args: ["a b"], env: { KEY: "hidden" } } } },
    });
    expect((await run("mcp", "get", "db")).out).toMatch(/command +npx db\nenv +KEY=word/);
    const mine = await run("mcp", "get", "mine");
    expect(mine.out).toMatch(/command +x "a b"\nenv +KEY=…/);
    const unknown = await run("mcp", "get", "dbb");
    expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining("Did you mean `db`?")]);
  });

  test("adds servers to the place that is asked for, and removes them", async () => {
    const { run, read, cwd } = createFixture();
    await run("mcp", "add", "db", "-e", "A=b=c", "--", "npx", "-y", "db", "--flag");
    await run(
      "mcp",
      "add",
      "--transport",
      "http",
      "--scope",
      "project",
      "--header",
      "X-Key: a:b",
      "web",
      "https://a.example",
    );
    expect(read("home/.claude.json")).toEqual({
      projects: {
        [cwd]: {
          mcpServers: {
            db: { type: "stdio", command: "npx", args: ["-y", "db", "--flag"], env: { A: "b=c" } },
          },
        },
      },
    });
    expect(read("project/.mcp.json")).toEqual({
      $schema: "https://unpkg.com/retinue/schemas/mcp.json",
      mcpServers: { web: { type: "http", url: "https://a.example", headers: { "X-Key": "a:b" } } },
    });
    expect((await run("mcp", "add", "db", "--", "other")).err).toContain("already has a server");
    expect((await run("mcp", "add", "--force", "db", "--", "other")).code).toBe(0);
    expect((await run("mcp", "remove", "web")).out).toContain(".mcp.json (project)");
    expect((await run("mcp", "remove", "web")).code).toBe(1);
    expect(read("project/.mcp.json")).toMatchObject({ mcpServers: {} });
  });

  test.each([
    [["add", "a__b", "--", "x"], /cannot be the name/],
    [["add", "plugin:a:b", "--", "x"], /cannot be the name/],
    [["add", "db"], /is missing/],
    [["add", "--transport", "ws", "db", "wss://a.example"], /Invalid --transport "ws"/],
    [["add", "--transport", "http", "db", "file:///etc/passwd"], /cannot be used/],
    [["add", "-e", "novalue", "db", "--", "x"], /NAME=VALUE/],
    [["add", "--scope", "mine", "db", "--", "x"], /Invalid --scope/],
    [["add", "db", "npx", "-y", "x"], /Unknown option '-y'.*\n.*`--` before the server's command/],
    [["add"], /`retinue mcp add --help` shows/],
    [["approve"], /needs the name/],
    [["nonsense"], /no command `mcp nonsense`/],
  ])("refuses %j and writes nothing", async (words, why) => {
    const { run, read } = createFixture();
    const { code, err } = await run("mcp", ...words);
    expect([code, err]).toEqual([2, expect.stringMatching(why)]);
    expect(() => read("home/.claude.json")).toThrow(/ENOENT/);
  });

  test("approves a server as it is written, and rejects it", async () => {
    const { run, read, write } = createFixture(project);
    expect((await run("mcp", "approve", "db")).out).toMatch(/Approved.*db.*\n.*not trusted yet/);
    expect(read("project/.claude/settings.local.json")).toMatchObject({ enabledMcpjsonServers: ["db"] });
    expect((await run("--trust", "mcp")).out).toMatch(/^db +project +stdio +connects/m);
    write("project/.mcp.json", { mcpServers: { db: { command: "npx", args: ["evil"] } } });
    expect((await run("--trust", "mcp")).out).toMatch(/^db +project +stdio +changed/m);
    await run("mcp", "approve", "--all");
    expect((await run("--trust", "mcp")).out).toMatch(/^db +project +stdio +connects/m);
    expect((await run("mcp", "reject", "bd")).err).toContain("Did you mean `db`?");
    await run("mcp", "reject", "db");
    expect((await run("--trust", "mcp")).out).toMatch(/^db +project +stdio +rejected/m);
  });

  test("takes the servers of this run, from JSON or files, and no others when that is asked for", async () => {
    const { run } = createFixture({
      ...project,
      "project/more.json": { mcpServers: { more: { command: "x" } } },
    });
    const inline = '{"mcpServers": {"given": {"command": "x"}}}';
    const { out } = await run(
      "--mcp-config",
      inline,
      "--mcp-config",
      "more.json",
      "--strict-mcp-config",
      "mcp",
    );
    expect(out).toMatch(/^given +flag +stdio +connects/m);
    expect(out).toMatch(/^more +flag +stdio +connects/m);
    expect(out).toMatch(/^db +project +stdio +left-out/m);
    const broken = await run("--mcp-config", "nowhere.json", "mcp");
    expect([broken.code, broken.err]).toEqual([2, expect.stringContaining("no such file")]);
  });

  test("takes more configurations that follow the first, but never the prompt", () => {
    const { cwd } = createFixture({ "project/b.json": {} });
    expect(takeMcpConfigs(["b.json", "do it", "b.json"], ["a.json"], cwd)).toEqual({
      words: ["do it", "b.json"],
      configs: ["a.json", "b.json"],
    });
    expect(takeMcpConfigs(["b.json"], undefined, cwd)).toEqual({ words: ["b.json"] });
    expect(takeMcpConfigs(["gone.json"], ["a.json"], cwd).words).toEqual(["gone.json"]);
  });
});

test("[PRM-11] trust and doctor show which servers of the project wait", async () => {
  const { run } = createFixture(project);
  expect((await run("trust", "--show")).out).toContain(
    'MCP server db: npx db env={"KEY":"word"}  (.mcp.json)',
  );
  expect((await run("doctor")).out).toMatch(/MCP servers\s+none is connected; held back: db/);
});

test("[MCP-1] what is wrong with an MCP file is a problem of `retinue agents check`, with its place", async () => {
  const { run } = createFixture({ "project/.mcp.json": { mcpServers: { db: {} } } });
  const { out, code } = await run("agents", "check", "--json");
  expect(code).toBe(0);
  expect(out).toMatch(/"mcp-server-unusable"[^}]*"line": 3/s);
});
