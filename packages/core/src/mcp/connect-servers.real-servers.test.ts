import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { Server as McpServerObject } from "@modelcontextprotocol/server";
import type { McpServer, McpTransport } from "@retinue/config/mcp/mcp-transport.ts";
import { createWorkspace, type Workspace } from "@retinue/testing/sample-runtime.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Tool } from "../tools/tool.ts";
import { connectServers } from "./connect-servers.ts";
import type { McpConnectionOptions, McpConnections } from "./mcp-connections.ts";

const require = createRequire(import.meta.url);
const programOf = (name: string) =>
  join(require.resolve(`@modelcontextprotocol/${name}/package.json`), "../dist/index.js");

let workspace: Workspace;
let opened: McpConnections[] | undefined;
let processes: ChildProcess[];

beforeEach(async () => {
  workspace = await createWorkspace();
  opened = [];
  processes = [];
});
afterEach(async () => {
  await Promise.all((opened ?? []).map((connections) => connections[Symbol.asyncDispose]()));
  opened = undefined;
  await Promise.all(processes.map(stop));
  await workspace[Symbol.asyncDispose]();
});

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

async function connect(
  transport: McpTransport,
  changes: Partial<McpConnectionOptions> & { readonly name?: string } = {},
): Promise<McpConnections> {
  const server: McpServer = { name: changes.name ?? "real", scope: "user", transport };
  const connections = connectServers([server], {
    environment: { PATH: process.env["PATH"] },
    directory: changes.directory ?? workspace.project,
    startLimitMs: 30_000,
    callLimitMs: 30_000,
    maxResultCharacters: 10_000,
    graceMs: 500,
    ...changes,
  });
  opened?.push(connections);
  await connections.ready;
  expect(connections.states().map(({ status }) => status)).toEqual([
    expect.objectContaining({ type: "connected" }),
  ]);
  return connections;
}

const stdio = (name: string, args: string[] = [], env: Record<string, string> = {}): McpTransport => ({
  type: "stdio",
  command: process.execPath,
  args: [programOf(name), ...args],
  env,
});

function toolNamed(connections: McpConnections, name: string): Tool {
  const tool = connections.tools().find(({ mcp }) => mcp?.tool === name);
  if (tool === undefined)
    throw new Error(`no ${name} among ${connections.tools().map((known) => known.name)}`);
  return tool;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function startEverything(mode: "sse" | "streamableHttp", port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [programOf("server-everything"), mode], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  processes.push(child);
  await new Promise<void>((resolve) => {
    child.stderr.on("data", (chunk) => (String(chunk).includes("on port") ? resolve() : undefined));
  });
  return child;
}

/** What a tool server must do over every transport. */
async function useEverything(connections: McpConnections): Promise<void> {
  const echo = await workspace.call(toolNamed(connections, "echo"), { message: "hello" });
  expect(echo).toMatchObject({ isError: false, text: expect.stringContaining("hello") });
  const reported: string[] = [];
  const stop = new AbortController();
  const progress = (text: string) => {
    reported.push(text);
    if (reported.length === 2) stop.abort(new Error("stopped by the test"));
  };
  const slow = toolNamed(connections, "trigger-long-running-operation");
  const call = slow.call(
    { duration: 86_400, steps: 8_640_000 },
    workspace.context("main", { signal: stop.signal, progress }),
  );
  await expect(call).rejects.toThrow("stopped by the test");
  expect(reported).toEqual(["1/8640000", "2/8640000"]);
  const sum = await workspace.call(toolNamed(connections, "get-sum"), { a: 2, b: 3 });
  expect(sum.text).toContain("5");
}

describe("the server that shows everything, over stdio", () => {
  let place: Workspace;
  let connections: McpConnections;

  // One process for all of them: it keeps nothing of a call.
  beforeAll(async () => {
    place = await createWorkspace();
    connections = await connect(stdio("server-everything", ["stdio"]), { directory: place.project });
  });
  afterAll(async () => {
    await connections[Symbol.asyncDispose]();
    await place[Symbol.asyncDispose]();
  });

  test("[MCP-1] answers calls, shows their progress, and is stopped in the middle", async () => {
    await useEverything(connections);
  });

  test("[MCP-1] gives images, links and structures as a model can take them", async () => {
    const image = await workspace.call(toolNamed(connections, "get-tiny-image"), {});
    expect(image.outcome.content).toContainEqual(
      expect.objectContaining({
        type: "image",
        source: expect.objectContaining({ media_type: "image/png" }),
      }),
    );
    const links = await workspace.call(toolNamed(connections, "get-resource-links"), { count: 2 });
    expect(links.text).toContain("[link to the resource");
    const structured = await workspace.call(toolNamed(connections, "get-structured-content"), {
      location: "New York",
    });
    expect(structured.outcome.data).toMatchObject({
      structuredContent: expect.objectContaining({ temperature: expect.anything() }),
    });
    const roots = await workspace.call(toolNamed(connections, "get-roots-list"), {});
    expect(roots.text).toContain(place.project);
  });

  test("[MCP-1] its resources can be listed and read, and only where its server is given", async () => {
    expect(connections.resourceTools(new Set(["other"]))).toEqual([]);
    const [list, read] = connections.resourceTools();
    if (list === undefined || read === undefined) throw new Error("no resource tools");
    expect(connections.resourceTools()).toBe(connections.resourceTools(new Set(["real"])));
    const lines = (await workspace.call(list, {})).text.split("\n");
    const { uri } = JSON.parse(lines[0] ?? "") as { uri: string };
    const text = await workspace.call(read, { server: "real", uri });
    expect(text.isError).toBe(false);
    expect(text.text).toContain(uri);
    expect(await workspace.call(read, { server: "else", uri })).toMatchObject({ isError: true });
    expect(await workspace.call(read, { server: "real", uri: "demo://nothing" })).toMatchObject({
      isError: true,
    });
  });
});

describe("the server that shows everything, over HTTP", () => {
  test("[MCP-1] works over streamable HTTP, and after it was started anew its session is opened again", async () => {
    const port = await freePort();
    const first = await startEverything("streamableHttp", port);
    const connections = await connect({ type: "http", url: `http://127.0.0.1:${port}/mcp`, headers: {} });
    await useEverything(connections);
    await stop(first);
    const echo = toolNamed(connections, "echo");
    const away = await workspace.call(echo, { message: "anybody?" });
    expect(away).toMatchObject({ isError: true, text: expect.stringContaining("could not be reached") });
    await startEverything("streamableHttp", port);
    expect(await workspace.call(echo, { message: "back" })).toMatchObject({
      isError: false,
      text: expect.stringContaining("back"),
    });
  });

  test("[MCP-1] works over SSE, and a stream that breaks is an error for its calls and opened anew by the next", async () => {
    const port = await freePort();
    const first = await startEverything("sse", port);
    const connections = await connect({ type: "sse", url: `http://127.0.0.1:${port}/sse`, headers: {} });
    await useEverything(connections);
    const slow = toolNamed(connections, "trigger-long-running-operation");
    const progress = () => void first.kill("SIGKILL");
    const call = slow.call({ duration: 86_400, steps: 8_640_000 }, workspace.context("main", { progress }));
    expect(await call).toMatchObject({
      isError: true,
      content: expect.stringContaining("ended before it answered"),
    });
    await startEverything("sse", port);
    const echo = await workspace.call(toolNamed(connections, "echo"), { message: "back" });
    expect(echo).toMatchObject({ isError: false, text: expect.stringContaining("back") });
  });
});

describe("other servers", () => {
  test("[MCP-1] the file server lists, reads and refuses what is outside its folder", async () => {
    await workspace.write("a.txt", "what is in a");
    const connections = await connect(stdio("server-filesystem", [workspace.project]));
    const read = toolNamed(connections, "read_text_file");
    expect(read.effect).toBe("read");
    expect(toolNamed(connections, "write_file")).toMatchObject({
      effect: "execute",
      mcp: { hints: { readOnly: false } },
    });
    expect(await workspace.call(read, { path: workspace.path("a.txt") })).toMatchObject({
      text: "what is in a",
    });
    expect(await workspace.call(read, { path: "/etc/hostname" })).toMatchObject({ isError: true });
  });

  test("[MCP-1] the memory server keeps what it is shown in the file that its configuration names", async () => {
    const file = workspace.path("memory.jsonl");
    const connections = await connect(stdio("server-memory", [], { MEMORY_FILE_PATH: file }));
    const entities = [{ name: "Ada", entityType: "person", observations: ["writes programs"] }];
    await workspace.call(toolNamed(connections, "create_entities"), { entities });
    expect(await readFile(file, "utf8")).toContain("Ada");
    const found = await workspace.call(toolNamed(connections, "search_nodes"), { query: "Ada" });
    expect(found.text).toContain("writes programs");
  });

  test("[MCP-1] a server object of the program is connected in memory", async () => {
    const server = new McpServerObject({ name: "inside", version: "1.0.0" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({
      tools: [{ name: "greet", inputSchema: { type: "object" as const } }],
    }));
    server.setRequestHandler("tools/call", ({ params }) => ({
      content: [{ type: "text" as const, text: `hello from ${params.name}` }],
    }));
    const program = {
      connect: (transport: unknown) => server.connect(transport as never),
      close: () => server.close(),
    };
    const connections = await connect(
      { type: "sdk" },
      { name: "inside", programServers: new Map([["inside", program]]) },
    );
    expect(await workspace.call(toolNamed(connections, "greet"), {})).toMatchObject({
      text: "hello from greet",
    });
  });
});
