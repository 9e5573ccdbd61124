import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { agentLog, readAgentState, toAgentRecord } from "@retinue/cluster/agent-records.ts";
import { createSharedBudget } from "@retinue/cluster/limits/shared-budget.ts";
import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import { postgres as connect } from "@retinue/cluster/postgres.ts";
import { serveSessions } from "@retinue/cluster/serve-sessions.ts";
import { createTranscriptFiles } from "@retinue/cluster/session/session-work.ts";
import { withinWorker } from "@retinue/cluster/session/within-worker.ts";
import { startAgent, waitForEnd } from "@retinue/cluster/start-agent.ts";
import { startPlan, startSession } from "@retinue/cluster/start-session.ts";
import type { Store } from "@retinue/cluster/store.ts";
import { type ToolUseBlock, toolCallsOf } from "@retinue/core/conversation/message.ts";
import { sessionFiles } from "@retinue/core/journal/session-files.ts";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { AgentPlan } from "@retinue/core/planning/agent-plan.ts";
import { defineTool } from "@retinue/core/tools/tool.ts";
import type { Approver } from "@retinue/gate/approver.ts";
import { becomes } from "@retinue/testing/becomes.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepAnswer, StepFunction } from "@retinue/testing/script.ts";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { runInProcess } from "../scenarios/run-command.ts";
import { createTestDatabase, query } from "./test-database.ts";
import { setUpMs } from "./test-postgres.ts";

const postgres = inject("postgres");

// Each test leaves a worker to the next: starting one is what costs most here. The commands run in this process.
describe.skipIf(postgres.missing !== "")(`sessions on workers${postgres.missing}`, async () => {
  if (postgres.missing !== "") return;
  const { url } = await createTestDatabase(postgres, "sessions");
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-sessions-")));
  let respond: StepFunction = () => ({ text: "Nothing was expected." });
  let provider: FakeProvider;
  let store: Store;
  let worker: ServeProcess;
  beforeAll(async () => {
    provider = await startFakeProvider({ respond: (request, ...more) => respond(request, ...more) });
    store = await openPostgresStore({ url });
    worker = await startWorker("one");
  }, setUpMs);
  afterAll(async () => {
    worker?.process.kill("SIGKILL");
    await store?.close();
    await provider?.[Symbol.asyncDispose]();
    rmSync(root, { recursive: true, force: true, maxRetries: 3 });
  });

  function createProject(name: string): string {
    return mkdtempSync(join(root, `${name}-`));
  }

  /** The command, in this process, with the store in its environment. */
  const run = (cwd: string, ...words: readonly string[]) =>
    runInProcess({ cwd, home: root }, words, { environment: { RETINUE_STORE: url, COLUMNS: "200" } });

  interface ServeProcess {
    readonly process: ChildProcess;
    readonly home: string;
    said(): string;
  }

  /** The built command as a worker, with a home of its own. */
  async function startWorker(name: string, ...more: readonly string[]): Promise<ServeProcess> {
    const home = createProject(`home-${name}`);
    const accepted = more.length > 0 ? more : ["--accept-rights", "mode"];
    const command = [join(projectRoot, "bin/retinue.js"), "serve", "--concurrency", "2", ...accepted];
    const child = spawn(process.execPath, [...command, "--workspaces", join(home, "workspaces")], {
      cwd: home,
      env: {
        HOME: home,
        PATH: process.env["PATH"],
        RETINUE_LOCAL_MODELS: "0",
        RETINUE_STORE: url,
        ANTHROPIC_BASE_URL: provider.url,
        ANTHROPIC_API_KEY: "test-key",
      },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let text = "";
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    const started = { process: child, home, said: () => text };
    await becomes(() => text.includes("serves"));
    return started;
  }

  async function workersOf(id: string): Promise<readonly unknown[]> {
    return JSON.parse((await run(root, "inspect", id, "--json")).out).workers;
  }

  test("a prompt given to the store is carried out by a worker, with its tools, and the result comes back [CLU-2]", async () => {
    respond = writeFiles(2);
    const cwd = createProject("two-files");
    const { code, out, err } = await run(cwd, "-p", "Write two files.", "--permission-mode", "acceptEdits");
    expect({ code, out }, err).toEqual({ code: 0, out: "All files are written.\n" });
    expect(readFileSync(join(cwd, "file-2.txt"), "utf8")).toBe("text 2");
    const tasks = await run(cwd, "tasks");
    expect(tasks.out).toMatch(/^[0-9a-f-]{36} {2}completed +Write two files\.\n$/);
    const id = tasks.out.slice(0, 36);
    const logs = (await run(cwd, "logs", id.slice(0, 8))).out;
    expect(logs).toContain("user: Write two files.");
    expect(logs).toContain("assistant: All files are written.");
    // The conversation is in the store; the worker keeps nothing, and no key went anywhere.
    expect(execFileSync("find", [worker.home, "-name", `${id}*`], { encoding: "utf8" })).toBe("");
    expect(JSON.stringify(await query(url, "SELECT record FROM retinue.log"))).not.toContain("test-key");
    expect((await run(cwd, "resume", id, "Again, please.")).code).toBe(0);
    await becomes(async () => (await run(cwd, "logs", id)).out.includes("user: Again, please."));
  });

  test("a session of a store starts no workflow, and says why [CLU-2, WFL-5]", async () => {
    const script = "export const meta = { name: 'w', description: 'd' }\nreturn await agent('STEP')";
    const asked: string[] = [];
    respond = ({ messages }) => {
      asked.push(JSON.stringify(messages));
      return messages.length === 1
        ? { calls: [{ name: "Workflow", input: { script } }] }
        : { text: "So be it." };
    };
    const cwd = createProject("no-workflow");
    const { code, out, err } = await run(cwd, "-p", "Run a workflow.", "--allowedTools", "Workflow");
    expect({ code, out }, err).toEqual({ code: 0, out: "So be it.\n" });
    // A worker that is slow under load may be replaced, and its successor asks again: what was answered is the same.
    expect(asked.at(-1)).toContain("Sessions of a store run no workflows.");
  });

  test("a session whose worker died before the first line of its transcript begins again [CLU-3]", async () => {
    respond = writeFiles(1);
    const directory = createProject("first-line");
    const plan = {
      prompt: "Write a file.",
      workspace: { type: "pinned", directory, machine: hostname() },
      options: { permissionMode: "acceptEdits" },
    } as const;
    // Started where no worker sees it, with what a worker writes that dies at the wrong moment.
    const id = await startSession(store, { ...plan, queue: "none" });
    const [planned] = await store.log.read(agentLog(id));
    const begun = [
      { ...(planned?.record as object), needs: [] },
      { type: "claimed", worker: "dead", version: "0" },
      { type: "entry", entry: { type: "prompted" } },
    ];
    const copy = crypto.randomUUID();
    await store.log.append(agentLog(copy), JSON.parse(JSON.stringify(begun).replaceAll(id, copy)), 0);
    expect(await startAgent(store, { agent: copy, plan: {} })).toBe("exists");
    const ending = await waitForEnd(store, copy, { timeoutMs: 50_000 });
    expect(ending).toMatchObject({ status: "completed", result: { text: "All files are written." } });
    expect(readFileSync(join(directory, "file-1.txt"), "utf8")).toBe("text 1");
  });

  test("two workers of one home that run the same session have files of their own [CLU-3]", () => {
    const folder = createProject("transcripts");
    const session = crypto.randomUUID();
    const [frozen, successor] = [
      createTranscriptFiles(folder, session),
      createTranscriptFiles(folder, session),
    ];
    const entries = [{ type: "file", path: `${session}.jsonl`, from: 0, text: "{}\n" }];
    const fileOf = (files: { readonly folder: string }) => sessionFiles(files.folder, session).transcript;
    frozen.restore(entries);
    successor.restore(entries);
    appendFileSync(fileOf(frozen), '{"late":1}\n');
    expect(frozen.takePendingMessages()).toMatchObject([{ from: 3, text: '{"late":1}\n' }]);
    expect(successor.takePendingMessages()).toEqual([]);
    frozen.remove();
    expect(readFileSync(fileOf(successor), "utf8")).toBe("{}\n");
    successor.remove();
    expect(readdirSync(folder)).toEqual([]);
  });

  /** The plan of a child for a folder, made here as JSON. */
  async function planIn(cwd: string, task: string): Promise<string> {
    const mode = ["--permission-mode", "acceptEdits", "--model", "claude-opus-4-1"];
    const { code, out, err } = await run(cwd, "plan", "general-purpose", "--task", task, "--json", ...mode);
    expect(code, err).toBe(0);
    return out;
  }

  let parked = { id: "", cwd: "", origin: "" };
  const asks = async ({ id, cwd } = parked): Promise<boolean> =>
    (await run(cwd, "inspect", id)).out.includes("waits for a person: Write");

  test("a call that needs a person parks the session, and the answer wakes it with its files [CLU-4, CLU-6]", async () => {
    respond = writeFiles(3);
    const cwd = createProject("asking");
    const origin = createOrigin(cwd);
    const id = (await run(cwd, "-p", "Write three files.", "--workspace", "git", "--detach")).out.trim();
    parked = { id, cwd, origin };
    await becomes(asks);
    expect((await run(cwd, "tasks")).out).toMatch(/ waiting +Write three files/);
    const approvals = JSON.parse((await run(cwd, "approvals", "--json")).out).approvals;
    expect(approvals).toMatchObject([{ agent: id, state: "waiting", question: { tool: "Write" } }]);
    expect((await run(cwd, "approve", approvals[0].id.slice(0, 6))).out).toContain("is allowed: Write of");
    await becomes(async () => branchFiles(origin).includes("file-1.txt") && (await asks()));
    // The agent waits with another question by now; the person who answers the old one is informed of that and of how it was answered.
    expect((await run(cwd, "deny", approvals[0].id)).err).toMatch(/has been answered: it was allowed by /);
  });

  test("sessions and a plan whose worker is killed continue with another one; what waited for a person is answered while there is none [CLU-2, CLU-3, CLU-4]", async () => {
    // The session that waits has three files to write; the others know it by their prompts.
    const [three, eight] = [writeFiles(3), writeFiles(8, 25)];
    respond = (request) =>
      JSON.stringify(request.messages[0]).includes("three files") ? three(request) : eight(request);
    const [cwd, other] = [createProject("killed"), createProject("killed-plan")];
    writeFileSync(join(other, "plan.json"), await planIn(other, "Write eight planned files."));
    const id = crypto.randomUUID();
    const mode = ["--permission-mode", "acceptEdits", "--output-format", "json", "--session-id", id];
    const answers = [
      run(cwd, "-p", "Write eight files.", ...mode),
      run(other, "run-plan", "plan.json", "--output-format", "json"),
    ];
    await becomes(() => [cwd, other].every((folder) => existsSync(join(folder, "file-3.txt"))));
    worker.process.kill("SIGKILL");
    const { id: waiting, cwd: asked, origin } = parked;
    expect((await run(asked, "approve", waiting, "--for", "session")).out).toContain("is allowed: Write of");
    // Only the first answer counts.
    expect((await run(asked, "deny", waiting, "No.")).err).toContain("has been answered");
    worker = await startWorker("two");
    for (const { code, out, err } of await Promise.all(answers)) {
      expect(code, err).toBe(0);
      expect(JSON.parse(out)).toMatchObject({ type: "result", result: "All files are written." });
    }
    for (const prompt of ["Write eight files.", "Write eight planned files."]) {
      const last = provider.requests
        .map(({ request }) => request.messages)
        .findLast((messages) => JSON.stringify(messages).includes(prompt));
      // One conversation: each file was asked for once, and the second worker knew what the first had done.
      expect(callsOf(last ?? [], "file-2.txt")).toHaveLength(1);
      expect(JSON.stringify(last)).toContain("another one has taken over");
    }
    expect(await workersOf(id)).toHaveLength(2);
    expect((await waitForEnd(store, waiting, { timeoutMs: 50_000 }))?.status).toBe("completed");
    expect(branchFiles(origin)).toEqual(["README.md", "file-1.txt", "file-2.txt", "file-3.txt"]);
    expect(existsSync(join(asked, "file-1.txt"))).toBe(false);
    expect((await run(asked, "approve", waiting)).err).toContain("No question that is waiting for an answer");
    expect((await run(asked, "approvals")).err).toBe("Nothing waits for an answer in this store.\n");
    expect((await run(asked, "logs", waiting)).out).toMatch(/-- answered by .*: allow\n/);
  });

  test("a plan waits, with what is missing, until a worker has the tools and the key it needs [CLU-2]", async () => {
    respond = ({ messages }) =>
      callsOf(messages).length === 0
        ? { calls: [{ name: "deploy", input: { target: "staging" } }] }
        : { text: "Deployed." };
    const cwd = createProject("needs");
    const deployed: unknown[] = [];
    const deploy = defineTool({
      name: "deploy",
      description: "Deploys.",
      inputSchema: { type: "object", properties: { target: { type: "string" } } },
      async call(input, { idempotencyKey }) {
        deployed.push({ input, idempotencyKey });
        return { content: "done" };
      },
    });
    const env = {
      PATH: process.env["PATH"],
      ANTHROPIC_BASE_URL: provider.url,
      ANTHROPIC_API_KEY: "test-key",
    };
    const home = createProject("home-tools");
    await using runtime = createRuntime({ cwd, home, env, tools: ["default", deploy] });
    await using session = await runtime.open({ planOnly: true, allowedTools: ["deploy"] });
    const request = {
      agentType: "general-purpose",
      prompt: "Deploy it.",
      description: "deploy",
      origin: "program",
    } as const;
    const planned = await session.planAgent(request);
    if (planned.type !== "planned") throw new Error(planned.reason);
    const { plan } = planned;
    const workspace = { type: "pinned", directory: cwd, machine: hostname() } as const;
    const id = await startPlan(store, { plan, workspace });
    const elsewhere = { ...plan, chosenModel: { id: "gpt", provider: "openai" } };
    const keyless = await startPlan(store, { plan: elsewhere, workspace });
    await becomes(async () => (await run(cwd, "tasks")).out.includes("no worker has tool:deploy"));
    const shown = await run(cwd, "plan", "general-purpose", "--model", "openai/gpt-5");
    expect(shown.out, shown.err).toMatch(/\nworkspace: .*: only workers on that machine can continue it\.\n/);
    expect(shown.out).toContain("would wait: no worker has model:openai\n");
    const checked = await run(cwd, "doctor");
    expect(checked.out, checked.err).toMatch(/\nstore: .* can be reached.*\nworker .*model:anthropic/);
    expect(checked.out).toContain("workspace git: not possible. This folder cannot be a git workspace");
    expect((await run(cwd, "inspect", keyless)).out).toContain("queued, no worker has model:openai");
    await run(cwd, "stop", keyless);
    await using _ = await serveSessions(store, {
      slots: 1,
      runtime: { home, env, tools: ["default", deploy] },
      accepts: ["rules"],
    });
    const ending = await waitForEnd(store, id, { timeoutMs: 50_000 });
    expect(ending).toMatchObject({ status: "completed", result: { text: "Deployed." } });
    // The key of a call is its place in the log of its agent.
    const calls = (await store.log.read(agentLog(id))).filter(({ record }) =>
      JSON.stringify(record).startsWith('{"type":"entry","entry":{"type":"call"'),
    );
    const input = { target: "staging" };
    expect(deployed).toEqual(calls.map(({ seq }) => ({ input, idempotencyKey: `${id}/${seq}` })));
    expect(calls).toHaveLength(1);
    await expect(startPlan(store, { plan: { ...plan, spawn: "any" as never }, workspace })).rejects.toThrow(
      /`spawn` must be "none"/,
    );
  });

  test("a worker that gets SIGTERM hands over between two turns, and what it spent is gone [CLU-3, CLU-5]", async () => {
    const gate = Promise.withResolvers<void>();
    const next = writeFiles(40);
    const usage = { inputTokens: 2_000, outputTokens: 1_000 };
    respond = async (request) => {
      const answer = next(request);
      if (JSON.stringify(answer).includes("file-3.txt")) await gate.promise;
      return { ...answer, usage };
    };
    const before = provider.requests.length;
    const cwd = createProject("money");
    const id = crypto.randomUUID();
    const limits = ["--max-budget-usd", "3", "--model", "claude-opus-4-1", "--session-id", id];
    const answer = run(cwd, "-p", "Write many files.", "--permission-mode", "acceptEdits", ...limits);
    await becomes(() => existsSync(join(cwd, "file-2.txt")));
    const [old, gone] = [worker, once(worker.process, "exit")];
    worker = await startWorker("three");
    old.process.kill("SIGTERM");
    await becomes(() => old.said().includes("shutting down"));
    gate.resolve();
    expect((await gone)[0]).toBe(0);
    const { code, err } = await answer;
    expect(code).toBe(1);
    expect(err).toContain("of the whole tree left, over all workers");
    expect(await workersOf(id)).toHaveLength(2);
    const requests = provider.requests.slice(before);
    const answered = requests.filter(({ status }) => status === "answered").length;
    // Nothing was interrupted: each answer asked for the next file.
    expect(callsOf(requests.at(-1)?.request.messages ?? [])).toHaveLength(answered - 1);
    // Dollars for a million tokens of this model: 15 for the prompt, 75 for the answer.
    const { spent, held } = await createSharedBudget(store, id, 3).state();
    expect(held).toBe(0);
    expect(spent).toBeGreaterThanOrEqual(answered * 0.105);
    expect(spent).toBeLessThanOrEqual(3);
  });

  test("children of a session are agents of the store: the parent parks, any worker runs them, each result arrives once [CLU-2, CLU-4]", async () => {
    const cwd = createProject("children");
    const names = ["one", "two", "three"];
    respond = ({ messages }) => {
      const text = JSON.stringify(messages);
      const own = /Report on (one|two|three)\./.exec(JSON.stringify(messages[0]))?.[1];
      if (own !== undefined && !text.includes("Ask for reports")) return { text: `Report ${own}.` };
      if (text.includes("has ended"))
        return { text: `Got ${names.filter((name) => text.includes(`Report ${name}.`)).join(", ")}.` };
      if (callsOf(messages).length > 0) return { text: "Waiting." };
      const calls = names.map((name) => ({
        name: "Agent",
        input: { description: name, subagent_type: "general-purpose", prompt: `Report on ${name}.` },
      }));
      return { calls };
    };
    const id = crypto.randomUUID();
    const answer = run(cwd, "-p", "Ask for reports.", "--remote-children", "--session-id", id);
    const { code, out, err } = await answer;
    expect({ code, out }, err).toEqual({ code: 0, out: "Got one, two, three.\n" });
    const logs = await store.log.read(agentLog(id));
    const records = logs.map(({ record }) => toAgentRecord(record));
    const children = records.flatMap((record) => (record?.type === "spawned" ? [record.agent] : []));
    expect(children).toHaveLength(3);
    const froms = records.flatMap((record) => (record?.type === "received" ? [record.message.from] : []));
    expect([...froms].sort()).toEqual([...children].sort());
    expect(records.some((record) => record?.type === "parked")).toBe(true);
    for (const child of children) {
      const state = readAgentState(await store.log.read(agentLog(child)));
      expect(state).toMatchObject({ parent: id, tree: id, ending: { status: "completed" } });
    }
  });

  test("the runs of a runtime with a store are carried out by its workers, and its approver is asked [CLU-2, CLU-4]", async () => {
    respond = writeFiles(1);
    const cwd = createProject("runtime");
    const asked: string[] = [];
    const approver: Approver = {
      async approve({ tool }) {
        asked.push(tool);
        return { type: "allow", for: "call" };
      },
    };
    await using runtime = createRuntime({ cwd, store: connect({ url }), approver });
    const run = runtime.run("Write a file.");
    const { status, text, sessionId } = await run.result;
    expect({ status, text, asked }).toEqual({
      status: "completed",
      text: "All files are written.",
      asked: ["Write"],
    });
    expect(readFileSync(join(cwd, "file-1.txt"), "utf8")).toBe("text 1");
    const types: string[] = [];
    for await (const { type } of run.events) types.push(type);
    expect(types.filter((type) => type === "run-ended")).toHaveLength(1);
    expect(types).toContain("assistant-answered");
    const again = await runtime.run("Again, please.", { resume: sessionId }).result;
    expect(again).toMatchObject({ status: "completed", sessionId });
    // Stopping a run stops it on its worker.
    const gate = Promise.withResolvers<void>();
    respond = async () => {
      await gate.promise;
      return { text: "Too late." };
    };
    const long = runtime.run("Wait.", { signal: AbortSignal.timeout(20_000) });
    await becomes(async () => (await stateOf(long.sessionId)) === "running");
    expect((await long.stop("enough")).status).toBe("stopped");
    expect((await waitForEnd(store, long.sessionId, { timeoutMs: 50_000 }))?.status).toBe("stopped");
    gate.resolve();
    const own = { store: connect({ url }), tools: ["Read"] };
    expect(() => createRuntime(own)).toThrow("The option tools has no effect on agents that workers run.");
    await expect(runtime.open()).rejects.toMatchObject({ code: "not-portable" });
  });

  async function stateOf(id: string): Promise<string> {
    return (await store.engine.status(id)).state;
  }

  test("a session is printed as if it ran here: messages, text while it is written, and a typed result [CLU-2]", async () => {
    const long = "word ".repeat(3_000);
    respond = ({ messages, tools }) =>
      tools.some(({ name }) => name === "StructuredOutput") && callsOf(messages).length === 0
        ? { text: long, calls: [{ name: "StructuredOutput", input: { answer: 42 } }] }
        : { text: "Done." };
    const cwd = createProject("printed");
    writeFileSync(join(cwd, "CLAUDE.md"), "Say a lot.");
    const schema = JSON.stringify({ type: "object", properties: { answer: { type: "number" } } });
    const format = ["--output-format", "stream-json", "--verbose", "--include-partial-messages"];
    const { code, out, err } = await run(cwd, "-p", "Answer.", "--json-schema", schema, ...format);
    expect(code, err).toBe(0);
    const lines = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    // The model is the worker's; this process has no key for one.
    expect(lines[0]).toMatchObject({ type: "system", subtype: "init", cwd, model_provider: "anthropic" });
    const pieces = lines.flatMap(({ type, event }) =>
      type === "stream_event" && event.type === "content_block_delta" ? [event.delta.text ?? ""] : [],
    );
    expect(pieces.join("")).toBe(long);
    // Far longer than one notification of the server can be.
    const said = lines.find(({ type }) => type === "assistant");
    expect(said.message.content[0]).toEqual({ type: "text", text: long });
    expect(lines.at(-1)).toMatchObject({ type: "result", structured_output: { answer: 42 } });
  });

  test("the plan of a session travels: what the caller's own files say holds on the worker, and so does what the worker forbids [CLU-2]", async () => {
    const seen: ModelRequest[] = [];
    respond = (request) => {
      seen.push(request);
      return { text: "Done." };
    };
    const cwd = createProject("travels");
    mkdirSync(join(root, ".claude"), { recursive: true });
    writeFileSync(join(root, ".claude/CLAUDE.md"), "The caller likes short words.");
    const id = crypto.randomUUID();
    const limits = ["--session-id", id, "--disallowedTools", "Bash", "--max-turns", "7"];
    const { code, err } = await run(cwd, "-p", "Speak.", ...limits).finally(() =>
      rmSync(join(root, ".claude"), { recursive: true }),
    );
    expect(code, err).toBe(0);
    expect(JSON.stringify(seen[0])).toContain("The caller likes short words.");
    expect(seen[0]?.tools.map(({ name }) => name)).not.toContain("Bash");
    const [planned] = await store.log.read(agentLog(id), 0, 1);
    expect(planned?.record).toMatchObject({
      plan: { plan: { maxTurns: { value: 7 }, policy: { mode: "default" }, directory: cwd } },
    });
    const { plan } = (planned?.record as unknown as { plan: { plan: AgentPlan } }).plan;
    const own = { ...plan, tools: plan.tools.filter(({ name }) => name !== "Read") };
    const merged = withinWorker(
      plan,
      { ...own, maxTurns: { value: 3, from: "settings" }, spawn: "none" },
      [],
    );
    expect(merged.tools.map(({ name }) => name)).not.toContain("Read");
    expect([merged.maxTurns?.value, merged.spawn]).toEqual([3, "none"]);
  });

  test("a worker decides what it accepts: rules, modes and programs of a plan count only where its operator said so [CLU-2, PRM-1]", async () => {
    const cwd = createProject("widening");
    const seen: ModelRequest[] = [];
    const commands = ["touch by-rule.txt", "touch by-mode.txt"];
    respond = (request) => {
      seen.push(request);
      const done = callsOf(request.messages).length;
      const command = commands[done];
      return command === undefined ? { text: "Done." } : { calls: [{ name: "Bash", input: { command } }] };
    };
    const strict = await startWorker("strict", "--queue", "strict", "--folder", cwd);
    const refuse = ["--approvals", "refuse", "--queue", "strict"];
    const wide = ["--allowedTools", "Bash(touch by-rule.txt)", "--dangerously-skip-permissions"];
    const agents = JSON.stringify({
      helper: {
        description: "Helps.",
        prompt: "Help.",
        hooks: { SubagentStart: [{ hooks: [{ type: "command", command: `touch ${cwd}/by-hook.txt` }] }] },
        mcpServers: [{ evil: { command: "touch", args: [`${cwd}/by-server.txt`] } }],
        permissionMode: "acceptEdits",
      },
    });
    const given = await run(cwd, "-p", "Do it.", ...wide, ...refuse, "--agents", agents);
    expect({ code: given.code, out: given.out }, given.err).toEqual({ code: 0, out: "Done.\n" });
    expect(readdirSync(cwd)).toEqual([]);
    const cut = [
      "The mode bypassPermissions of the plan is not applied here; the mode is default.",
      "Allow rules of the plan are not applied here: Bash(touch by-rule.txt).",
      "Hooks of the agent helper in the plan do not run here.",
      "MCP servers of the agent helper in the plan are not started here.",
      "The mode acceptEdits of the agent helper in the plan is not applied here.",
    ];
    for (const sentence of cut) {
      expect(given.err).toContain(sentence);
      expect(strict.said()).toContain(sentence);
    }
    // The same in a row that only names options, as another program writes it.
    const workspace = { type: "pinned", directory: cwd, machine: hostname() } as const;
    const options = { permissionMode: "bypassPermissions", allowedTools: ["Bash"] } as const;
    const row = { prompt: "Do it.", workspace, options, approvals: "refuse", queue: "strict" } as const;
    const id = await startSession(store, row);
    expect(await waitForEnd(store, id, { timeoutMs: 50_000 })).toMatchObject({ status: "completed" });
    expect(readdirSync(cwd)).toEqual([]);
    strict.process.kill("SIGTERM");
    const open = await startWorker("open", "--queue", "strict", "--accept-rights", "rules,bypass");
    const accepted = await run(cwd, "-p", "Do it.", ...wide, ...refuse);
    expect({ code: accepted.code, out: accepted.out }, accepted.err).toEqual({ code: 0, out: "Done.\n" });
    expect(readdirSync(cwd).toSorted()).toEqual(["by-mode.txt", "by-rule.txt"]);
    open.process.kill("SIGTERM");
  });

  test("--approvals refuse refuses what rules leave open instead of waiting [CLU-4]", async () => {
    respond = writeFiles(1);
    const cwd = createProject("refusing");
    const next = respond;
    respond = (request, ...more) =>
      callsOf(request.messages).length > 0 ? { text: "It was refused." } : next(request, ...more);
    const { code, out, err } = await run(cwd, "-p", "Write a file.", "--approvals", "refuse");
    expect({ code, out }, err).toEqual({ code: 0, out: "It was refused.\n" });
    expect(existsSync(join(cwd, "file-1.txt"))).toBe(false);
  });

  test("what cannot be honoured is refused before anything is started [CLU-2]", async () => {
    const cwd = createProject("refused");
    const count = async () => (await run(cwd, "tasks")).out.split("\n").length;
    const before = await count();
    expect(await run(cwd, "-p", "x", "--mcp-config", "{}")).toMatchObject({ code: 2, out: "" });
    expect((await run(cwd, "-p", "x", "--workspace", "git")).err).toContain("is not in a git repository");
    const taken = (await run(cwd, "tasks")).out.slice(0, 36);
    const again = await run(cwd, "-p", "Once more.", "--session-id", taken);
    expect({ code: again.code, out: again.out }).toEqual({ code: 1, out: "" });
    expect(again.err).toContain(`There is already an agent ${taken} in this store.`);
    expect(await count()).toBe(before);
    expect((await run(cwd, "tasks", "--store", "mysql://x")).err).toContain("begins with postgres://");
  });
});

/** Asks for the next file that has not been written according to the conversation. */
function writeFiles(count: number, delayMs = 0): (request: ModelRequest) => StepAnswer {
  return ({ messages }) => {
    const text = JSON.stringify(messages);
    const next = Array.from({ length: count }, (_, at) => at + 1).find(
      (number) => !hasWritten(messages, `file-${number}.txt`),
    );
    if (next === undefined || text.endsWith("Again, please."))
      return { text: "All files are written.", delayMs };
    const path = `file-${next}.txt`;
    // A call that was interrupted may have written the file, and a file that exists is read before it is replaced.
    if (
      callsOf(messages).at(-1)?.name === "Write" &&
      callsOf(messages, path).length > 0 &&
      text.includes("taken over")
    )
      return { calls: [{ name: "Read", input: { file_path: path } }], delayMs };
    return { calls: [{ name: "Write", input: { file_path: path, content: `text ${next}` } }], delayMs };
  };
}

type Messages = ModelRequest["messages"];

function callsOf(messages: Messages, file = ""): readonly ToolUseBlock[] {
  return messages
    .flatMap((message) => (message.role === "assistant" ? toolCallsOf(message) : []))
    .filter(({ input }) => JSON.stringify(input).includes(file));
}

function hasWritten(messages: Messages, file: string): boolean {
  const ids = callsOf(messages, file).flatMap(({ id, name }) => (name === "Write" ? [id] : []));
  const results = messages.flatMap(({ role, content }) =>
    role === "user" && typeof content !== "string" ? content : [],
  );
  return results.some(
    (block) => block.type === "tool_result" && ids.includes(block.tool_use_id) && block.is_error !== true,
  );
}

function createOrigin(cwd: string): string {
  const origin = `${cwd}-origin.git`;
  const git = (...words: readonly string[]) =>
    execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@localhost", ...words], {
      cwd,
      stdio: "pipe",
    });
  git("init", "--quiet", "--bare", origin);
  git("init", "--quiet", "--initial-branch=main");
  execFileSync("sh", ["-c", "echo hello > README.md"], { cwd });
  git("add", "--all");
  git("commit", "--quiet", "-m", "first");
  git("remote", "add", "origin", origin);
  git("push", "--quiet", "-u", "origin", "main");
  return origin;
}

function branchFiles(origin: string): readonly string[] {
  const git = (...words: readonly string[]): string =>
    execFileSync("git", words, { cwd: origin, encoding: "utf8" });
  const branch = git("for-each-ref", "--format=%(refname)", "refs/heads/retinue").trim();
  return branch === "" ? [] : git("ls-tree", "-r", "--name-only", branch).trim().split("\n");
}
