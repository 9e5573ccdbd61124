/** `npm run cluster`: 20 sessions on two workers over PostgreSQL; one worker is killed, and the other continues its agents. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { agentLog, toAgentRecord } from "@retinue/cluster/agent-records.ts";
import { openStore, setUpStore } from "@retinue/cluster/open-store.ts";
import { readAgent, waitForEnd } from "@retinue/cluster/start-agent.ts";
import { startSession } from "@retinue/cluster/start-session.ts";
import type { Store } from "@retinue/cluster/store.ts";
import { toolCallsOf } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { startTestPostgres, whyNoPostgres } from "../test/cluster/test-postgres.ts";

const program = fileURLToPath(new URL("../bin/retinue.js", import.meta.url));
const [agentCount, turnCount] = [20, 8];

const reason = await whyNoPostgres();
if (reason !== undefined) {
  console.error(`The demo needs PostgreSQL: ${reason}`);
  process.exit(1);
}
if (!existsSync(fileURLToPath(new URL("../dist/cli/main.js", import.meta.url)))) {
  console.error("The program is not built yet. Run `npm run build`, and then `npm run cluster` again.");
  process.exit(1);
}
const folder = mkdtempSync(join(tmpdir(), "retinue-cluster-"));
try {
  await show();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function show(): Promise<void> {
  console.log("Starting PostgreSQL in a temporary folder, and a provider that plays the model …");
  await using server = await startTestPostgres();
  await setUpStore({ url: server.url });
  await using provider = await startFakeProvider({ respond: nextStep, latencyMs: 150 });
  await using store = await openStore(server.url);
  const environment = {
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "demo",
    RETINUE_STORE: server.url,
  };
  const workers = await Promise.all([startWorker(environment), startWorker(environment)]);
  console.log(
    `Two workers with 5 places each. ${agentCount} sessions are given to the store, each with ${turnCount} turns.`,
  );
  const began = performance.now();
  const ids = await startSessions(store);
  await pause(2_500);
  const [victim] = workers;
  console.log(`Killing worker ${victim.pid} with SIGKILL in the middle of its work.`);
  victim.kill("SIGKILL");
  for (const id of ids) await waitForEnd(store, id, { timeoutMs: 120_000 });
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  const moved = await Promise.all(ids.map((id) => workersOf(store, id)));
  const ended = await Promise.all(ids.map((id) => readAgent(store, id)));
  const completed = ended.filter(({ ending }) => ending?.status === "completed").length;
  const handedOver = moved.filter((names) => names.size > 1).length;
  const files = ids.map(
    (id) => readdirSync(join(folder, id)).filter((name) => /^file-\d+\.txt$/.test(name)).length,
  );
  console.log(`\n${completed} of ${agentCount} sessions completed in ${seconds} s.`);
  console.log(`${handedOver} of them began on the killed worker and were continued by the other one.`);
  console.log(`Files written: ${files.reduce((sum, count) => sum + count, 0)} of ${agentCount * turnCount}.`);
  // They hand over and leave while there is still a database.
  await Promise.all(
    workers.map(async (worker) => {
      if (worker.exitCode !== null || worker.signalCode !== null) return;
      const gone = once(worker, "exit");
      worker.kill("SIGTERM");
      await gone;
    }),
  );
}

async function startSessions(store: Store): Promise<readonly string[]> {
  return Promise.all(
    Array.from({ length: agentCount }, async () => {
      const sessionId = crypto.randomUUID();
      const directory = join(folder, sessionId);
      mkdirSync(directory);
      return startSession(store, {
        prompt: `Write ${turnCount} files.`,
        workspace: { type: "shared", directory, root: folder },
        options: { sessionId, permissionMode: "acceptEdits" },
      });
    }),
  );
}

async function workersOf(store: Store, id: string): Promise<ReadonlySet<string>> {
  const entries = await store.log.read(agentLog(id));
  return new Set(
    entries.flatMap(({ record }) => {
      const read = toAgentRecord(record);
      return read?.type === "claimed" ? [read.worker] : [];
    }),
  );
}

async function startWorker(
  environment: Readonly<Record<string, string>>,
): Promise<ChildProcess & { pid: number }> {
  const home = join(folder, "home");
  mkdirSync(home, { recursive: true });
  const child = spawn(
    process.execPath,
    [program, "serve", "--concurrency", "5", "--folder", folder, "--workspaces", home],
    {
      cwd: folder,
      env: { HOME: home, PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", ...environment },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  await new Promise<void>((resolve, reject) => {
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (text.includes("serves")) resolve();
    });
    child.once("exit", (code) => reject(new Error(`A worker ended with ${code}.`)));
  });
  return child as ChildProcess & { pid: number };
}

/** Plays the model: asks for one file after another. */
function nextStep({ messages }: ModelRequest): StepAnswer {
  const calls = messages.flatMap((message) => (message.role === "assistant" ? toolCallsOf(message) : []));
  const results = messages.flatMap(({ role, content }) =>
    role === "user" && typeof content !== "string" ? content : [],
  );
  const done = new Set(
    results.flatMap((block) =>
      block.type === "tool_result" && block.is_error !== true ? [block.tool_use_id] : [],
    ),
  );
  const written = new Set(
    calls
      .filter(({ id, name }) => name === "Write" && done.has(id))
      .map(({ input }) => JSON.stringify(input)),
  );
  if (written.size >= turnCount) return { text: "All files are written." };
  const input = { file_path: `file-${written.size + 1}.txt`, content: `text ${written.size + 1}` };
  const last = calls.at(-1);
  // A call that was interrupted may have written its file, which then has to be read before it is replaced.
  if (last !== undefined && last.name === "Write" && !done.has(last.id))
    return { calls: [{ name: "Read", input: { file_path: input.file_path } }] };
  return { calls: [{ name: "Write", input }] };
}
