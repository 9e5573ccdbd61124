import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { addMcpServer, removeMcpServer } from "./add-mcp-server.ts";
import {
  approvalsFile,
  approveMcpServers,
  editJson,
  loadMcpApprovals,
  rejectMcpServers,
} from "./approve-mcp-servers.ts";
import { createPaths } from "./paths.ts";

async function createProject() {
  const root = await realpath(await mkdtemp(join(tmpdir(), "mcp-files-")));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const cwd = join(root, "project");
  await mkdir(cwd);
  const paths = createPaths({ home: root, cwd, environment: {}, platform: "linux" });
  return {
    paths,
    root,
    write: async (path: string, text: string) => {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    },
    read: (path: string) => readFile(join(root, path), "utf8"),
  };
}

describe("[MCP-1] an approval", () => {
  test("is remembered by name in the local settings and by hash in a file of our own", async () => {
    const { paths, read, write } = await createProject();
    await write(
      "project/.claude/settings.local.json",
      '{\n  "model": "opus",\n  "disabledMcpjsonServers": ["db", "x"]\n}\n',
    );
    expect(await approveMcpServers(paths, [{ name: "db", hash: "A" }])).toMatchObject({ type: "saved" });
    expect(JSON.parse(await read("project/.claude/settings.local.json"))).toEqual({
      model: "opus",
      disabledMcpjsonServers: ["x"],
      enabledMcpjsonServers: ["db"],
    });
    expect(await loadMcpApprovals(paths)).toEqual(new Map([["db", "A"]]));
    const before = await read("project/.claude/settings.local.json");
    await approveMcpServers(paths, [{ name: "db", hash: "A" }]);
    expect(await read("project/.claude/settings.local.json")).toBe(before);
  });

  test("is taken back by a rejection, hash and all", async () => {
    const { paths, read } = await createProject();
    await approveMcpServers(paths, [{ name: "db", hash: "A" }]);
    expect(await rejectMcpServers(paths, ["db"])).toMatchObject({ type: "saved" });
    expect(JSON.parse(await read("project/.claude/settings.local.json"))).toEqual({
      $schema: "https://unpkg.com/retinue/schemas/settings.json",
      enabledMcpjsonServers: [],
      disabledMcpjsonServers: ["db"],
    });
    expect(await loadMcpApprovals(paths)).toEqual(new Map());
  });

  test("counts for nothing where the record of them is broken", async () => {
    const { paths, write, root } = await createProject();
    await write(approvalsFile(paths).slice(root.length + 1), "{ broken");
    expect(await loadMcpApprovals(paths)).toBe("unreadable");
    expect(await approveMcpServers(paths, [{ name: "db", hash: "A" }])).toMatchObject({ type: "refused" });
  });

  test("is not written through a link that leads out of the project", async () => {
    const { paths, root, write, read } = await createProject();
    await write("elsewhere.json", "{}\n");
    await mkdir(join(root, "project/.claude"));
    await symlink(join(root, "elsewhere.json"), join(root, "project/.claude/settings.local.json"));
    expect(await approveMcpServers(paths, [{ name: "db", hash: "A" }])).toMatchObject({ type: "refused" });
    expect(await read("elsewhere.json")).toBe("{}\n");
  });
});

describe("[MCP-1] adding and removing a server", () => {
  const config = { type: "stdio", command: "npx", args: [] };

  test.each([
    ["project", "project/.mcp.json", ["mcpServers", "db"]],
    ["user", ".claude.json", ["mcpServers", "db"]],
  ] as const)("for %s changes only that entry of %s", async (scope, file, path) => {
    const { paths, read, write } = await createProject();
    await write(file, '{\n    "other": {"kept": 1},\n    "mcpServers": {"a": {"command": "x"}}\n}\n');
    expect(await addMcpServer(paths, { scope, name: "db", config })).toMatchObject({ type: "saved" });
    expect(JSON.parse(await read(file))).toEqual({
      other: { kept: 1 },
      mcpServers: { a: { command: "x" }, [path[1]]: config },
    });
    expect(await read(file)).toContain('    "other": {"kept": 1},');
    expect(await addMcpServer(paths, { scope, name: "db", config })).toMatchObject({ type: "exists" });
    expect(await removeMcpServer(paths, { scope, name: "db" })).toMatchObject({ type: "saved" });
    expect(await removeMcpServer(paths, { scope, name: "db" })).toMatchObject({ type: "absent" });
    expect(JSON.parse(await read(file))).toEqual({ other: { kept: 1 }, mcpServers: { a: { command: "x" } } });
  });

  test("for one person in one project is under the project's path", async () => {
    const { paths, read } = await createProject();
    await addMcpServer(paths, { scope: "local", name: "db", config });
    expect(JSON.parse(await read(".claude.json"))).toEqual({
      projects: { [paths.projectRoot]: { mcpServers: { db: config } } },
    });
  });

  test("keeps a file without the outer key in its form, and leaves a broken one alone", async () => {
    const { paths, read, write } = await createProject();
    await write("project/.mcp.json", '{"a": {"command": "x"}}');
    await addMcpServer(paths, { scope: "project", name: "db", config });
    expect(JSON.parse(await read("project/.mcp.json"))).toEqual({ a: { command: "x" }, db: config });
    await write("project/.mcp.json", '{"a": ');
    expect(await addMcpServer(paths, { scope: "project", name: "db", config })).toMatchObject({
      type: "refused",
    });
    expect(await read("project/.mcp.json")).toBe('{"a": ');
  });
});

test("an edit that would land in a key that appears twice, or pass through a list, is refused", () => {
  const change = [{ path: ["a", "b"], value: 1 }];
  expect(editJson('{"a": {"b": 2}, "a": {"b": 3}}', change, "f")).toMatchObject({ type: "broken" });
  expect(editJson('{"a": []}', change, "f")).toMatchObject({ type: "broken" });
  expect(editJson(undefined, change, "f")).toMatchObject({
    type: "text",
    text: expect.stringContaining('"b": 1'),
  });
});
