import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import type { Client } from "@modelcontextprotocol/client";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  type ConnectOptions,
  call,
  connectHttp,
  connectInProcess,
  connectProcess,
  createMcpStage,
  createSharedStage,
  type Era,
  type HttpServer,
  program,
  type SharedStage,
  startHttp,
  startHttpInProcess,
} from "./mcp-stage.ts";
import type { AtEnd } from "./run-command.ts";

const child = (task: string, step: ScriptedStep): Step => ({
  match: (request: ModelRequest) => JSON.stringify(request.messages[0]).includes(task),
  ...step,
});
const bash = (command: string) => ({ name: "Bash", input: { command, description: "a command" } });
const eras: readonly Era[] = ["legacy", "modern"];

describe.each(eras)("[MCP-3] retinue mcp serve and a client of the %s protocol", (era) => {
  const ends: (() => void | PromiseLike<void>)[] = [];
  const atEnd: AtEnd = (end) => void ends.unshift(end);
  let stage: SharedStage;
  /**
   * Three servers for the tests that need none of their own: no person can be asked, a person answers, Bash is allowed. The first
   * is a process, of the built command; the server for HTTP is one for one of the protocols.
   */
  let plain: Client;
  let asking: Client;
  let bold: Client;
  let ask: NonNullable<ConnectOptions["answer"]>;
  let server: Pick<HttpServer, "url" | "token">;

  beforeAll(async () => {
    stage = await createSharedStage(atEnd);
    stage.write(
      ".claude/agents/sql-reviewer.md",
      "---\nname: sql-reviewer\ndescription: Reviews SQL.\ntools: Read, Grep\nmodel: haiku\n---\nReview.\n",
    );
    stage.write("a.txt", "a");
    [plain, asking, bold, server] = await Promise.all([
      connectProcess(stage, { era, atEnd }),
      connectInProcess(stage, { era, atEnd, answer: (question) => ask(question) }),
      connectInProcess(stage, { era, atEnd, arguments_: ["--allowedTools", "Bash"] }),
      era === "modern" ? startHttp(stage, {}, atEnd) : startHttpInProcess(stage, atEnd),
    ]);
  });
  afterAll(async () => {
    for (const end of ends) await end();
  });

  test("lists the agents of the folder, with what each may do", async () => {
    const { tools } = await plain.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual(
      ["agent_output", "list_agents", "send_message", "spawn_agent", "stop_agent"].sort(),
    );
    const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint]));
    expect(hints).toMatchObject({ list_agents: true, agent_output: true, spawn_agent: false });
    const { data } = await call(plain, "list_agents", {});
    expect(data["agents"]).toContainEqual({
      name: "sql-reviewer",
      description: "Reviews SQL.",
      tools: ["Read", "Grep"],
      model: "haiku",
      scope: "project",
    });
  });

  test("a spawned agent gives its final text and its totals, and shows what it does meanwhile", async () => {
    stage.answer(
      "count the files",
      { calls: [{ name: "Glob", input: { pattern: "*.txt" } }] },
      { text: "There is one file." },
    );
    const reported: string[] = [];
    const onprogress = ({ message }: { message?: string | undefined }) => void reported.push(message ?? "");
    const { text, data, isError } = await call(
      plain,
      "spawn_agent",
      { agent: "Explore", prompt: "count the files" },
      { onprogress },
    );
    expect(isError).toBe(false);
    expect(text).toMatch(/^There is one file\.\n\n\[agent id a[0-9a-f]{16} /);
    expect(data).toMatchObject({
      status: "completed",
      agentType: "Explore",
      endStatus: "completed",
      content: [{ type: "text", text: "There is one file." }],
      totalToolUseCount: 1,
      denials: [],
    });
    expect(reported.some((line) => /^Explore: Glob \*\.txt \(turns 1, tokens \d+\)$/.test(line))).toBe(true);
    expect(stage.left("count the files")).toBe(0);
  });

  test("what rules leave open is put to the person, and a yes counts for the session", async () => {
    const again = { calls: [bash("touch mark-1")] };
    stage.answer("make mark 1", again, again, { text: "Made." });
    const asked: string[] = [];
    const client = await connectInProcess(stage, {
      era,
      answer({ message }) {
        asked.push(message);
        return { action: "accept", content: { answer: "allow for this session" } };
      },
    });
    const { text, data } = await call(client, "spawn_agent", {
      agent: "general-purpose",
      prompt: "make mark 1",
    });
    expect(text).toContain("Made.");
    expect(data["denials"]).toEqual([]);
    expect(existsSync(`${stage.cwd}/mark-1`)).toBe(true);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatch(/^The agent main → general-purpose \(a[0-9a-f]{16}\) wants to use Bash:\n/);
    expect(asked[0]).toContain('"command":"touch mark-1"');
    expect(asked[0]).toContain("For this session means");
  });

  test.each([
    ["deny", { action: "accept", content: { answer: "deny" } }],
    ["declining", { action: "decline" }],
    ["closing the question", { action: "cancel" }],
    ["an answer that is none", { action: "accept", content: { answer: "sure" } }],
  ] as const)("%s refuses the call, and the agent continues", async (_, answer) => {
    stage.answer("make mark 2", { calls: [bash("touch mark-2")] }, { text: "Could not." });
    ask = () => ({ ...answer }) as never;
    const { text, data, isError } = await call(asking, "spawn_agent", { prompt: "make mark 2" });
    expect(isError).toBe(false);
    expect(text).toContain("Could not.");
    expect(data["denials"]).toEqual([{ tool: "Bash", reason: expect.stringContaining("was not allowed") }]);
    expect(existsSync(`${stage.cwd}/mark-2`)).toBe(false);
  });

  test("with a client that cannot be asked, the call is refused and the result says why", async () => {
    stage.answer("make mark 3", { calls: [bash("touch mark-3")] }, { text: "Could not." });
    const { text, data } = await call(plain, "spawn_agent", { prompt: "make mark 3" });
    expect(text).toContain("Not allowed:\n- Bash was not allowed: ");
    expect(text).toContain("this MCP client cannot be asked");
    expect(data["denials"]).toHaveLength(1);
    expect(existsSync(`${stage.cwd}/mark-3`)).toBe(false);
  });

  test("an agent's question to the person reaches the client", async () => {
    const question = {
      question: "Which way?",
      header: "Way",
      options: [
        { label: "left", description: "the short one" },
        { label: "right", description: "the safe one" },
      ],
      multiSelect: false,
    };
    stage.answer(
      "choose a way",
      { calls: [{ name: "AskUserQuestion", input: { questions: [question] } }] },
      { text: "Went." },
    );
    ask = () => ({ action: "accept", content: { question1: "right" } });
    await call(asking, "spawn_agent", { prompt: "choose a way" });
    const [, last] = stage.requestsOf("choose a way");
    expect(JSON.stringify(last?.body["messages"])).toContain("Which way?\\n→ right");
  });

  test("a client that cancels its call stops the agent and the processes it started", async () => {
    stage.answer("wait for a cancel", { calls: [bash("echo $$ > pid-1; exec sleep 1000")] });
    const cancel = new AbortController();
    const started = Promise.withResolvers<void>();
    const cancelled = call(
      bold,
      "spawn_agent",
      { prompt: "wait for a cancel", name: "sleeper" },
      {
        signal: cancel.signal,
        onprogress: ({ message }) => message?.includes("Bash") === true && started.resolve(),
      },
    );
    cancelled.catch(() => undefined);
    await started.promise;
    const pid = await readSoon(`${stage.cwd}/pid-1`);
    cancel.abort();
    await expect(cancelled).rejects.toThrow();
    const { data } = await call(bold, "agent_output", { agent_id: "sleeper", timeout_ms: 20_000 });
    expect(data).toMatchObject({ state: "stopped" });
    expect(isAlive(Number(pid))).toBe(false);
  });

  test("a client that goes away leaves no process", async () => {
    stage.answer("wait for the end", { calls: [bash("echo $$ > pid-2; exec sleep 1000")] });
    const client = await connectProcess(stage, { era, arguments_: ["--allowedTools", "Bash"] });
    call(client, "spawn_agent", { prompt: "wait for the end" }).catch(() => undefined);
    const pid = Number(await readSoon(`${stage.cwd}/pid-2`));
    await client.close();
    await expect.poll(() => isAlive(pid), { timeout: 20_000 }).toBe(false);
  });

  test("in the background: it returns immediately, takes messages, shows its result, and continues when it gets another message", async () => {
    const gate = Promise.withResolvers<void>();
    const client = plain;
    stage.answer(
      "slow work",
      async () => {
        await gate.promise;
        return { calls: [{ name: "Glob", input: { pattern: "*" } }] };
      },
      { text: "First result." },
      { text: "Second result." },
    );
    const launched = await call(client, "spawn_agent", {
      agent: "Explore",
      prompt: "slow work",
      background: true,
    });
    expect(launched.data).toMatchObject({ status: "async_launched", prompt: "slow work" });
    const agent_id = String(launched.data["agentId"]);
    expect(launched.text).toContain(agent_id);
    const look = await call(client, "agent_output", { agent_id, block: false });
    expect(look.data).toMatchObject({ state: "running", agentId: agent_id });
    const queued = await call(client, "send_message", { agent_id, message: "also look at tests" });
    expect(queued.data).toEqual({ delivery: "queued", agentId: agent_id });
    gate.resolve();
    const first = await call(client, "agent_output", { agent_id, timeout_ms: 20_000 });
    expect(first.data).toMatchObject({ state: "completed", text: expect.stringContaining("First result.") });
    expect(JSON.stringify(stage.requestsOf("slow work")[1]?.body["messages"])).toContain(
      "also look at tests",
    );
    const resumed = await call(client, "send_message", { agent_id, message: "continue" });
    expect(resumed.data).toEqual({ delivery: "resumed", agentId: agent_id });
    const second = await call(client, "agent_output", { agent_id, timeout_ms: 20_000 });
    expect(second.text).toContain("Second result.");
    expect(JSON.stringify(stage.requestsOf("slow work")[2]?.body["messages"])).toContain("First result.");
    expect(stage.left("slow work")).toBe(0);
  });

  test("an agent that is still answering shows what it has said so far", async () => {
    stage.answer("tell it slowly", {
      text: "Half of an answer that never ends.",
      failure: "stall",
      after: 3,
    });
    const launched = await call(bold, "spawn_agent", { prompt: "tell it slowly", background: true });
    const agent_id = String(launched.data["agentId"]);
    const look = async () => (await call(bold, "agent_output", { agent_id, block: false })).data["text"];
    await expect.poll(look, { timeout: 20_000 }).toContain("Half");
    const { data } = await call(bold, "stop_agent", { agent_id });
    expect(data).toMatchObject({ state: "stopped" });
  });

  test.each([
    ["allow once", true],
    ["deny", false],
  ])("before an agent goes to the background the person is asked once for what it may need: %s", async (answer, made) => {
    const mark = `mark-${answer.replace(" ", "-")}`;
    stage.answer(mark, { calls: [bash(`touch ${mark}`)] }, { text: "Done." });
    const asked: string[] = [];
    ask = ({ message }) => {
      asked.push(message);
      return { action: "accept", content: { answer } };
    };
    const { data } = await call(asking, "spawn_agent", { prompt: `make ${mark}`, background: true });
    const agent_id = String(data["agentId"]);
    const { text } = await call(asking, "agent_output", { agent_id, timeout_ms: 20_000 });
    expect(text).toContain("Done.");
    expect(existsSync(`${stage.cwd}/${mark}`)).toBe(made);
    expect(asked).toEqual([expect.stringContaining("in the background it cannot ask for approval")]);
  });

  test("stopping ends an agent in the background, and stopping it again is no error", async () => {
    const client = bold;
    stage.answer("wait for a stop", { calls: [bash("echo $$ > pid-3; exec sleep 1000")] });
    const { data } = await call(client, "spawn_agent", { prompt: "wait for a stop", background: true });
    const agent_id = String(data["agentId"]);
    const pid = Number(await readSoon(`${stage.cwd}/pid-3`));
    expect((await call(client, "stop_agent", { agent_id })).data).toMatchObject({ state: "stopped" });
    expect(isAlive(pid)).toBe(false);
    const again = await call(client, "stop_agent", { agent_id });
    expect(again).toMatchObject({ isError: false, data: { state: "stopped" } });
  });

  test("several agents run at the same time", async () => {
    const both = Promise.withResolvers<void>();
    let arrived = 0;
    const meet = async () => {
      arrived += 1;
      if (arrived === 2) both.resolve();
      await both.promise;
      return "Met.";
    };
    stage.answer("meet the other", meet, meet);
    const results = await Promise.all(
      ["one", "two"].map((name) =>
        call(plain, "spawn_agent", { agent: "Explore", prompt: `${name}: meet the other` }),
      ),
    );
    expect(results.map(({ text }) => text.slice(0, 4))).toEqual(["Met.", "Met."]);
  });

  test("an agent of an earlier server can be read and resumed", async () => {
    stage.answer("remember blue", { text: "I remember blue." }, { text: "It was blue." });
    const first = await connectInProcess(stage, { era });
    const { data } = await call(first, "spawn_agent", { agent: "Explore", prompt: "remember blue" });
    await first.close();
    const second = await connectInProcess(stage, { era });
    const agent_id = String(data["agentId"]);
    const found = await call(second, "agent_output", { agent_id });
    expect(found.data).toMatchObject({
      state: "completed",
      text: expect.stringContaining("I remember blue."),
    });
    const resumed = await call(second, "spawn_agent", { prompt: "which colour?", resume: agent_id });
    expect(resumed.text).toContain("It was blue.");
    expect(resumed.data).toMatchObject({ agentId: agent_id, agentType: "Explore" });
    expect((await call(second, "agent_output", { agent_id })).text).toContain("It was blue.");
  });

  test("what is no id is refused, and an id that no one has lists the known ones", async () => {
    const client = plain;
    stage.answer("say hello", { text: "Hello." });
    const { data } = await call(client, "spawn_agent", { agent: "Explore", prompt: "say hello" });
    for (const tool of ["agent_output", "stop_agent", "send_message"]) {
      const bad = await call(client, tool, { agent_id: "../../etc/passwd", message: "x" });
      expect(bad).toMatchObject({
        isError: true,
        text: expect.stringContaining("is not the id of an agent"),
      });
      const unknown = await call(client, tool, { agent_id: "a0000000000000000", message: "x" });
      expect(unknown.isError).toBe(true);
      expect(unknown.text).toMatch(/Known: a[0-9a-f]{16} \(/);
      expect(unknown.text).toContain(`${String(data["agentId"])} (Explore, completed)`);
    }
  });

  test("what cannot be started says why", async () => {
    const unknown = await call(plain, "spawn_agent", { agent: "Explor", prompt: "x" });
    expect(unknown).toMatchObject({ isError: true, text: expect.stringContaining("Did you mean Explore?") });
    const empty = await call(plain, "spawn_agent", { agent: "Explore" });
    expect(empty).toMatchObject({ isError: true, text: expect.stringContaining("prompt") });
  });

  test("a mode given by the client narrows and never widens", async () => {
    stage.answer("make mark 4", { calls: [bash("touch mark-4")] }, { text: "Could not." });
    await call(plain, "spawn_agent", { prompt: "make mark 4", mode: "bypassPermissions" });
    expect(existsSync(`${stage.cwd}/mark-4`)).toBe(false);
  });

  test("over HTTP with the token, everything is the same: progress, questions, results", async () => {
    stage.answer("make mark 5", { calls: [bash("touch mark-5")] }, { text: "Made." });
    const client = await connectHttp(server, {
      era,
      answer: () => ({ action: "accept", content: { answer: "allow once" } }),
    });
    const reported: string[] = [];
    const { text } = await call(
      client,
      "spawn_agent",
      { prompt: "make mark 5" },
      { onprogress: ({ message }) => void reported.push(message ?? "") },
    );
    expect(text).toContain("Made.");
    expect(reported.some((line) => line.includes("Bash touch mark-5"))).toBe(true);
    expect(existsSync(`${stage.cwd}/mark-5`)).toBe(true);
  });

  test("over HTTP a cancelled call stops its agent, and the server continues", async () => {
    stage.answer("stall for ever", { failure: "stall" });
    stage.answer("say hello", { text: "Hello." });
    const client = await connectHttp(server, { era });
    const cancel = new AbortController();
    const started = Promise.withResolvers<void>();
    const cancelled = call(
      client,
      "spawn_agent",
      { agent: "Explore", prompt: "stall for ever", name: "staller" },
      { signal: cancel.signal, onprogress: () => started.resolve() },
    );
    cancelled.catch(() => undefined);
    await started.promise;
    cancel.abort();
    await expect(cancelled).rejects.toThrow();
    const { data } = await call(client, "agent_output", { agent_id: "staller", timeout_ms: 20_000 });
    expect(data).toMatchObject({ state: "stopped" });
    expect((await call(client, "spawn_agent", { agent: "Explore", prompt: "say hello" })).text).toContain(
      "Hello.",
    );
  });
});

test.each([
  "SIGINT",
  "end of input",
])("[MCP-3] a client that reads nothing does not keep the server: %s", async (wish) => {
  const stage = await createMcpStage([child("say hello", { failure: "stall" })]);
  const server = spawn(process.execPath, [program, "mcp", "serve"], {
    cwd: stage.cwd,
    env: stage.environment,
    stdio: ["pipe", "pipe", "ignore"],
  });
  onTestFinished(() => void server.kill("SIGKILL"));
  const exited = once(server, "exit");
  const send = (message: object) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const calling = (id: number, name: string, arguments_: object) =>
    send({ id, method: "tools/call", params: { name, arguments: arguments_ } });
  const clientInfo = { name: "test", version: "1.0.0" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  send({ id: 0, method: "initialize", params });
  send({ method: "notifications/initialized" });
  for (let id = 1; id <= 100; id += 1) calling(id, "list_agents", {});
  calling(101, "spawn_agent", { prompt: "say hello" });
  await expect.poll(() => stage.provider.requests.length, { timeout: 20_000 }).toBeGreaterThan(0);
  if (wish === "SIGINT") server.kill("SIGINT");
  else server.stdin.end();
  expect(await exited).toEqual([wish === "SIGINT" ? 130 : 0, null]);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** What a command of the agent writes as soon as it runs. */
async function readSoon(file: string): Promise<string> {
  await expect
    .poll(() => (existsSync(file) ? readFileSync(file, "utf8") : ""), { timeout: 20_000 })
    .toMatch(/\d+\n/);
  return readFileSync(file, "utf8").trim();
}
