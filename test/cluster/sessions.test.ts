import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { waitForEnd } from "../../src/cluster/agent-client.ts";
import { agentLog } from "../../src/cluster/agent-records.ts";
import { createSharedBudget } from "../../src/cluster/limits/shared-budget.ts";
import { openPostgresStore } from "../../src/cluster/postgres/open-postgres-store.ts";
import { setUpPostgres } from "../../src/cluster/postgres/set-up-postgres.ts";
import { startSession } from "../../src/cluster/start-session.ts";
import { type ToolUseBlock, toolCallsOf } from "../../src/conversation/message.ts";
import type { ModelRequest } from "../../src/model/model.ts";
import { becomes } from "../../src/testing/engine-contract.ts";
import { startFakeProvider } from "../../src/testing/fake-provider.ts";
import type { StepAnswer, StepFunction } from "../../src/testing/script.ts";
import { projectRoot } from "../project-files.ts";
import { createPlace, type Finished, type Place, runCommand } from "../scenarios/run-command.ts";
import { emptyStore } from "./empty-store.ts";
import { setUpMs, startTestPostgres, type TestPostgres, whyNoPostgres } from "./test-postgres.ts";

const reason = await whyNoPostgres();

describe.runIf(reason === undefined)(`sessions on workers${reason ? ` (skipped: ${reason})` : ""}`, () => {
  let server: TestPostgres;
  /** What each worker has written to stderr. */
  const outputs = new WeakMap<ChildProcess, string>();
  beforeAll(async () => {
    server = await startTestPostgres();
    await setUpPostgres({ url: server.url });
  }, setUpMs);
  afterAll(() => server?.stop());

  /** A project, a provider that writes files one after another, and the command with both. */
  async function stage(respond: StepFunction) {
    await emptyStore(server.url);
    const place = createPlace();
    const provider = await startFakeProvider({ respond });
    onTestFinished(() => provider[Symbol.asyncDispose]());
    const environment = {
      ANTHROPIC_BASE_URL: provider.url,
      ANTHROPIC_API_KEY: "test-key",
      RETINUE_STORE: server.url,
    };
    const run = (...words: readonly string[]): Promise<Finished> => runCommand(place, words, { environment });
    return { place, provider, environment, run };
  }

  test("a prompt given to the store is carried out by a worker, with its tools, and the result comes back [CLU-2]", async () => {
    const { place, environment, run } = await stage(writeFiles(2));
    await startWorker(place, environment);
    const { code, out, err } = await run("-p", "Write two files.", "--permission-mode", "acceptEdits");
    expect({ code, out }, err).toEqual({ code: 0, out: "All files are written.\n" });
    expect(readFileSync(join(place.cwd, "file-2.txt"), "utf8")).toBe("text 2");
    const tasks = await run("tasks");
    expect(tasks.out).toMatch(/^[0-9a-f-]{36} {2}completed +Write two files\.\n$/);
    const id = tasks.out.slice(0, 36);
    const logs = (await run("logs", id.slice(0, 8))).out;
    expect(logs).toContain("user: Write two files.");
    expect(logs).toContain("assistant: All files are written.");
    // The conversation is in the store; the worker keeps nothing, and no key went anywhere.
    expect(execFileSync("find", [place.home, "-name", `${id}*`], { encoding: "utf8" })).toBe("");
    expect(await dump(server)).not.toContain("test-key");
    expect((await run("resume", id, "Again, please.")).code).toBe(0);
    await becomes(async () => (await run("logs", id)).out.includes("user: Again, please."));
  });

  test("a session whose worker is killed goes on with another one [CLU-2, CLU-3]", async () => {
    const { place, provider, environment, run } = await stage(writeFiles(12, 25));
    const first = await startWorker(place, environment);
    const answer = run(
      "-p",
      "Write twelve files.",
      "--permission-mode",
      "acceptEdits",
      "--output-format",
      "json",
    );
    await becomes(() => existsSync(join(place.cwd, "file-4.txt")));
    first.kill("SIGKILL");
    await startWorker(place, environment);
    const { code, out, err } = await answer;
    expect(code, err).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ result: "All files are written.", status: "completed" });
    const last = provider.requests.at(-1)?.request.messages ?? [];
    // One conversation: each file was asked for once, and the second worker knew what the first had done.
    expect(callsOf(last, "file-3.txt")).toHaveLength(1);
    expect(JSON.stringify(last)).toContain("another one has taken over");
    const [id = ""] = (await run("tasks")).out.split(" ");
    expect(JSON.parse((await run("inspect", id, "--json")).out).workers).toHaveLength(2);
  });

  test("a session whose worker died before the first line of its transcript begins again [CLU-3]", async () => {
    const { place, environment } = await stage(writeFiles(1));
    await using store = await openPostgresStore({ url: server.url });
    const id = await startSession(store, {
      prompt: "Write a file.",
      workspace: { type: "shared", directory: place.cwd, root: place.cwd },
      options: { permissionMode: "acceptEdits" },
    });
    const begun = [
      { type: "claimed", worker: "dead", version: "0" },
      { type: "entry", entry: { type: "prompted" } },
    ];
    await store.log.append(agentLog(id), begun, 1);
    await startWorker(place, environment, "--folder", place.cwd);
    const ending = await waitForEnd(store, id, { timeoutMs: 20_000 });
    expect(ending).toMatchObject({ status: "completed", result: { text: "All files are written." } });
    expect(readFileSync(join(place.cwd, "file-1.txt"), "utf8")).toBe("text 1");
  });

  test("a call that needs a person parks the session, and the answer wakes it on another worker [CLU-4]", async () => {
    const { place, environment, run } = await stage(writeFiles(1));
    const first = await startWorker(place, environment);
    const id = (await run("-p", "Write a file.", "--detach")).out.trim();
    await becomes(async () => (await run("inspect", id)).out.includes("waits for a person: Write"));
    expect((await run("tasks")).out).toMatch(/ waiting +Write a file/);
    first.kill("SIGKILL");
    await startWorker(place, environment);
    expect((await run("answer", id, "allow")).out).toContain("allow Write");
    await becomes(async () => (await run("tasks")).out.includes("completed"));
    expect(readFileSync(join(place.cwd, "file-1.txt"), "utf8")).toBe("text 1");
    expect((await run("answer", id, "allow")).err).toContain("waits for no answer");
  });

  test("a git workspace follows the session to a worker that never saw it [CLU-6]", async () => {
    const { place, environment, run } = await stage(writeFiles(6, 40));
    const origin = createOrigin(place);
    const first = await startWorker(place, environment);
    const answer = run("-p", "Write six files.", "--permission-mode", "acceptEdits", "--workspace", "git");
    await becomes(() => branchFiles(origin).includes("file-2.txt"));
    first.kill("SIGKILL");
    const elsewhere = createPlace();
    await startWorker(elsewhere, environment);
    const { code, err } = await answer;
    expect(code, err).toBe(0);
    const expected = ["README.md", ...Array.from({ length: 6 }, (_, at) => `file-${at + 1}.txt`)];
    expect(branchFiles(origin)).toEqual(expected);
    expect(existsSync(join(place.cwd, "file-1.txt"))).toBe(false);
  });

  test("a worker that is told to end hands its sessions over between two turns, with nothing interrupted [CLU-3]", async () => {
    const gate = Promise.withResolvers<void>();
    const next = writeFiles(10);
    const { place, provider, environment, run } = await stage(async (request) => {
      const answer = next(request);
      if (JSON.stringify(answer).includes("file-3.txt")) await gate.promise;
      return answer;
    });
    const first = await startWorker(place, environment);
    const answer = run("-p", "Write ten files.", "--permission-mode", "acceptEdits");
    await becomes(() => existsSync(join(place.cwd, "file-2.txt")));
    await startWorker(place, environment);
    const gone = once(first, "exit");
    first.kill("SIGTERM");
    await becomes(() => said(first).includes("shutting down"));
    gate.resolve();
    expect((await gone)[0]).toBe(0);
    const { code, err } = await answer;
    expect(code, err).toBe(0);
    const last = provider.requests.at(-1)?.request.messages ?? [];
    expect(callsOf(last)).toHaveLength(10);
    const [id = ""] = (await run("tasks")).out.split(" ");
    expect(JSON.parse((await run("inspect", id, "--json")).out).workers).toHaveLength(2);
  });

  test("the ceiling of money holds over a hand-over: what the first worker spent is gone [CLU-5]", async () => {
    const usage = { inputTokens: 2_000, outputTokens: 1_000 };
    const next = writeFiles(40, 10);
    const { place, provider, environment, run } = await stage((request) => ({ ...next(request), usage }));
    const first = await startWorker(place, environment);
    const limits = ["--max-budget-usd", "2", "--model", "claude-opus-4-1"];
    const answer = run("-p", "Write many files.", "--permission-mode", "acceptEdits", ...limits);
    await becomes(() => existsSync(join(place.cwd, "file-3.txt")));
    first.kill("SIGKILL");
    await startWorker(place, environment);
    const { code, err } = await answer;
    expect(code).toBe(1);
    expect(err).toContain("of the whole tree left, over all workers");
    const [id = ""] = (await run("tasks")).out.split(" ");
    await using store = await openPostgresStore({ url: server.url });
    const { spent, held } = await createSharedBudget(store, id, 2).state();
    expect(held).toBe(0);
    expect(spent).toBeLessThanOrEqual(2);
    // Dollars for a million tokens of this model: 15 for the prompt, 75 for the answer.
    const answered = provider.requests.filter(({ status }) => status === "answered").length;
    expect(answered * 0.105).toBeLessThanOrEqual(spent);
    expect(answered).toBeGreaterThan(4);
  });

  test("what cannot be honoured is refused before anything is started [CLU-2]", async () => {
    const { run } = await stage(writeFiles(1));
    expect(await run("-p", "x", "--mcp-config", "{}")).toMatchObject({ code: 2, out: "" });
    expect((await run("-p", "x", "--workspace", "git")).err).toContain("is in no git repository");
    expect((await run("tasks")).out).toBe("There are no agents in this store.\n");
    expect((await run("tasks", "--store", "mysql://x")).err).toContain("begins with postgres://");
  });

  async function startWorker(
    place: Place,
    environment: Readonly<Record<string, string>>,
    ...more: readonly string[]
  ): Promise<ChildProcess> {
    const child = spawn(
      process.execPath,
      [
        join(projectRoot, "bin/retinue.js"),
        "serve",
        "--concurrency",
        "2",
        "--workspaces",
        join(place.home, "workspaces"),
        ...more,
      ],
      {
        cwd: place.cwd,
        env: { HOME: place.home, PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", ...environment },
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
    onTestFinished(() => void child.kill("SIGKILL"));
    outputs.set(child, "");
    child.stderr
      ?.setEncoding("utf8")
      .on("data", (text: string) => outputs.set(child, `${said(child)}${text}`));
    await becomes(() => said(child).includes("serves"));
    return child;
  }

  function said(child: ChildProcess): string {
    return outputs.get(child) ?? "";
  }
});

/** Asks for the next file that the conversation does not know of as written. */
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
    if (callsOf(messages).at(-1)?.name === "Write" && callsOf(messages, path).length > 0)
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

function createOrigin({ cwd }: Place): string {
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

async function dump({ url }: TestPostgres): Promise<string> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query("SELECT record FROM retinue.log");
  await client.end();
  return JSON.stringify(rows);
}
