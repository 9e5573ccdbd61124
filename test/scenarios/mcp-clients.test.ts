import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { installOnDemand } from "../on-demand/install-on-demand.ts";
import { projectRoot } from "../project-files.ts";
import { createMcpStage, type McpStage, program, read } from "./mcp-stage.ts";
import { createPlace, runInProcess } from "./run-command.ts";

const child = (task: string, step: ScriptedStep): Step => ({
  match: (request: ModelRequest) => JSON.stringify(request.messages[0]).includes(task),
  ...step,
});

/** The part of the first generation of the SDK that is used here; its package comes with the Agent SDK. */
interface FirstSdk {
  readonly Client: new (
    info: object,
    options: object,
  ) => {
    connect(transport: object): Promise<void>;
    callTool(call: object): Promise<unknown>;
    setRequestHandler(schema: unknown, handler: (request: { params: { message: string } }) => unknown): void;
    close(): Promise<void>;
  };
  readonly StdioClientTransport: new (options: object) => object;
  readonly ElicitRequestSchema: unknown;
}

async function loadFirstSdk(): Promise<FirstSdk> {
  const folder = join(projectRoot, "node_modules/@modelcontextprotocol/sdk/dist/esm");
  const files = ["client/index.js", "client/stdio.js", "types.js"].map((name) => join(folder, name));
  return Object.assign({}, ...(await Promise.all(files.map((file) => import(pathToFileURL(file).href)))));
}

test("[MCP-3] a client of the first generation of the SDK spawns an agent and is asked", async () => {
  const { Client, StdioClientTransport, ElicitRequestSchema } = await loadFirstSdk();
  const stage = await createMcpStage([
    child("make marks", { calls: [{ name: "Bash", input: { command: "touch mark", description: "x" } }] }),
    child("make marks", { text: "Made." }),
  ]);
  const client = new Client({ name: "first", version: "1" }, { capabilities: { elicitation: {} } });
  const asked: string[] = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { answer: "allow once" } };
  });
  const { cwd, environment: env } = stage;
  const args = [program, "mcp", "serve"];
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args, cwd, env, stderr: "ignore" }),
  );
  onTestFinished(() => client.close());
  const result = read(await client.callTool({ name: "spawn_agent", arguments: { prompt: "make marks" } }));
  expect(result.text).toContain("Made.");
  expect(asked).toEqual([expect.stringContaining("wants to use Bash")]);
  expect(existsSync(join(stage.cwd, "mark"))).toBe(true);
});

const { folder: inspectorFolder, missing } = await installOnDemand("inspector");
const skipped = missing === undefined ? "" : ` (skipped: ${missing})`;

describe.skipIf(missing !== undefined)(`[MCP-3] the inspector's command line${skipped}`, () => {
  const launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
  const inspector = join(inspectorFolder, launcher);

  async function inspect({ cwd, environment }: McpStage, words: readonly string[]): Promise<unknown> {
    const server = [process.execPath, program, "mcp", "serve"];
    // It hands only what it is informed of the environment to the server.
    const given = Object.entries(environment).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
    const run = spawn(process.execPath, [inspector, "--cli", ...given, ...server, ...words], {
      cwd,
      env: environment,
    });
    onTestFinished(() => void run.kill("SIGKILL"));
    let out = "";
    run.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    await new Promise((resolve) => run.on("close", resolve));
    return JSON.parse(out);
  }

  test("lists the tools", async () => {
    const listed = await inspect(await createMcpStage([]), ["--method", "tools/list"]);
    expect(listed).toMatchObject({
      tools: expect.arrayContaining([expect.objectContaining({ name: "spawn_agent" })]),
    });
  });

  test("calls them", async () => {
    const stage = await createMcpStage([child("say hello", { text: "Hello." })]);
    const call = ["--method", "tools/call", "--tool-name", "spawn_agent"];
    const words = [...call, "--tool-arg", "agent=Explore", "--tool-arg", "prompt=say hello"];
    expect(read(await inspect(stage, words))).toMatchObject({
      text: expect.stringContaining("Hello."),
      data: { status: "completed", agentType: "Explore" },
    });
  });
});

describe("[MCP-3] the process", () => {
  const initialize = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
  };

  test("what is no message does it no harm, nothing but messages is on stdout, and it ends with its input", async () => {
    const stage = await createMcpStage([]);
    const messages = [
      "this is no JSON",
      JSON.stringify([1, 2]),
      JSON.stringify({ jsonrpc: "2.0", id: 7 }),
      JSON.stringify(initialize),
      JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }),
      JSON.stringify({ jsonrpc: "2.0", id: 2, method: "no/such/method" }),
      JSON.stringify({ jsonrpc: "2.0", id: 3, method: "tools/call", params: { name: "no_such_tool" } }),
      JSON.stringify({
        jsonrpc: "2.0",
        id: 4,
        method: "tools/call",
        params: { name: "spawn_agent", arguments: { prompt: 5 } },
      }),
      JSON.stringify({ jsonrpc: "2.0", id: 5, method: "tools/list" }),
    ];
    const run = spawn(process.execPath, [program, "mcp", "serve"], {
      cwd: stage.cwd,
      env: stage.environment,
    });
    onTestFinished(() => void run.kill("SIGKILL"));
    let out = "";
    run.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
      if (out.includes('"id":5')) run.stdin.end();
    });
    run.stdin.write(`${messages.join("\n")}\n`);
    const code = await new Promise((resolve) => run.on("close", resolve));
    expect(code).toBe(0);
    const answers = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const byId = new Map(answers.map((answer) => [answer.id, answer]));
    expect(byId.get(1)?.result).toMatchObject({
      protocolVersion: "2025-06-18",
      serverInfo: { name: "retinue" },
    });
    expect(byId.get(2)?.error.code).toBe(-32601);
    expect(byId.get(3)).toMatchObject({ id: 3 });
    expect(byId.get(4)?.result).toMatchObject({ isError: true });
    expect(byId.get(5)?.result.tools).toHaveLength(5);
  });

  test.each([
    [["--output-format", "json"], "--output-format has no effect on a server."],
    [["--resume", "x"], "--resume has no effect on a server."],
    [["--http", "99999"], '--http needs a port from 0 to 65535, but got "99999".'],
    [["--token-file", "x"], "--token-file has no meaning without --http."],
    [["--http", "--token-file", "missing"], "--token-file names a file that cannot be read"],
    [["--permission-mode", "odd"], 'Invalid --permission-mode "odd".'],
  ])("refuses %j before it serves", async (words, message) => {
    const { code, out, err } = await runInProcess(createPlace(), ["mcp", "serve", ...words]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(message);
  });
});
