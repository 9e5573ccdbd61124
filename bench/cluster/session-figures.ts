import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { agentLog, toAgentRecord } from "@retinue/cluster/agent-records.ts";
import { openFileStore } from "@retinue/cluster/files/open-file-store.ts";
import { openStore } from "@retinue/cluster/open-store.ts";
import { serveSessions } from "@retinue/cluster/serve-sessions.ts";
import { storeApprovals } from "@retinue/cluster/session/store-approvals.ts";
import { waitForEnd } from "@retinue/cluster/start-agent.ts";
import { startSession } from "@retinue/cluster/start-session.ts";
import type { LogEntry, Store } from "@retinue/cluster/store.ts";
import { toolCallsOf } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { defineTool } from "@retinue/core/tools/tool.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepAnswer, StepFunction } from "@retinue/testing/script.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { emptyStore } from "../../test/cluster/test-database.ts";
import type { TestPostgres } from "../../test/cluster/test-postgres.ts";
import { type Figure, median, milliseconds, quantile } from "./fleet-scene.ts";

const program = fileURLToPath(new URL("../../bin/retinue.js", import.meta.url));

/** From handing a session to the store until its worker, an idle `retinue serve`, asks the model. */
export async function measureFirstRequest({ url }: TestPostgres): Promise<Figure> {
  let askedAt = 0;
  const respond: StepFunction = () => {
    askedAt = performance.now();
    return { text: "Done." };
  };
  await using scene = await openSessionScene(url, { respond, workers: 1 });
  const [starts, ends]: [number[], number[]] = [[], []];
  for (let round = 0; round < 45; round += 1) {
    const began = performance.now();
    const id = await startSession(scene.store, { prompt: "Hello.", workspace: scene.workspace });
    await waitForEnd(scene.store, id, { timeoutMs: 20_000 });
    // The first ones load the modules and warm the compiler.
    if (round < 15) continue;
    starts.push(askedAt - began);
    ends.push(performance.now() - began);
  }
  return {
    what: "session to its first request at the model, idle `retinue serve`",
    limit: "≤ 60 ms median",
    value: `median ${milliseconds(median(starts))}, p95 ${milliseconds(quantile(starts, 0.95))}; result after ${milliseconds(median(ends))}`,
    isReached: median(starts) <= 60,
  };
}

/** Sessions that wait for a person: what they take of a worker's memory, and from the answer to the next request. */
export async function measureParkedSessions({ url }: TestPostgres): Promise<Figure> {
  const count = Number(process.env["PARKED"] ?? 1_000);
  const received = new Map<string, () => void>();
  const respond: StepFunction = ({ messages }) => {
    const text = JSON.stringify(messages);
    if (!text.includes("It was allowed"))
      return { calls: [{ name: "Write", input: { file_path: "x.txt", content: "x" } }] };
    received.get(/Session (\d+)\./.exec(text)?.[1] ?? "")?.();
    return { text: "Done." };
  };
  await using scene = await openSessionScene(url, { respond, workers: 2 });
  const { store, workspace } = scene;
  const approvals = storeApprovals(store);
  const parked = async (wanted: number): Promise<void> => {
    while ((await approvals.list()).length < wanted) await pause(200);
  };
  const start = (at: number) => startSession(store, { prompt: `Session ${at}.`, workspace });
  const warm = 60;
  for (let at = 0; at < warm; at += 1) await start(at);
  await parked(warm);
  await pause(3_000);
  const before = scene.memory();
  const ids = new Map<string, number>();
  for (let at = warm; at < count + warm; at += 1) ids.set(await start(at), at);
  await parked(count + warm);
  await pause(3_000);
  const growth = scene.memory().map((bytes, at) => bytes - (before[at] ?? 0));
  const delays: number[] = [];
  for (const [id, at] of [...ids].slice(0, 40)) {
    const woken = new Promise<void>((resolve) => received.set(String(at), resolve));
    const { id: approval } = await approvals.find(id);
    const began = performance.now();
    await approvals.answer(approval, { type: "allow", for: "call" }, { by: "bench" });
    await woken;
    delays.push(performance.now() - began);
    await waitForEnd(store, id, { timeoutMs: 20_000 });
  }
  const most = Math.max(...growth) / 2 ** 20;
  return {
    what: "1,000 sessions parked for approval: memory of a `retinue serve`, answer to the next request",
    limit: "≤ 40 MiB per worker, wake ≤ 100 ms",
    value: `${most.toFixed(0)} MiB more, median ${milliseconds(median(delays))}, p95 ${milliseconds(quantile(delays, 0.95))}`,
    isReached: most <= 40 && median(delays) <= 100,
  };
}

/** One turn of a session, a model call and a tool call, in both stores in turn. */
export async function measureSessionTurn({ url }: TestPostgres): Promise<Figure> {
  await emptyStore(url);
  const folder = await mkdtemp(join(tmpdir(), "figures-turn-"));
  const database = await openStore(url);
  const files = await openFileStore(join(folder, "store"));
  const turns = { database: [] as number[], files: [] as number[] };
  try {
    // The first round warms the compiler up.
    for (let round = 0; round < 5; round += 1) {
      const inFiles = await turnsOf(files, folder);
      const inDatabase = await turnsOf(database, folder);
      if (round === 0) continue;
      turns.files.push(...inFiles);
      turns.database.push(...inDatabase);
    }
  } finally {
    await database.close();
    await files.close();
    await rm(folder, { recursive: true, force: true });
  }
  const difference = median(turns.database) - median(turns.files);
  return {
    what: "cost of a session's turn (model call and tool call) over the file store",
    limit: "≤ 3 ms median",
    value: `${milliseconds(difference)} (${milliseconds(median(turns.database))} against ${milliseconds(median(turns.files))})`,
    isReached: difference <= 3,
  };
}

const turnCount = 60;

/** The times between the model calls of one session. */
async function turnsOf(store: Store, folder: string): Promise<readonly number[]> {
  const times: number[] = [];
  const respond: StepFunction = ({ messages }) => {
    times.push(performance.now());
    return messages.length > turnCount * 2 ? { text: "Done." } : { calls: [{ name: "echo", input: {} }] };
  };
  const model = createScriptedModel([{ times: "any", respond }]);
  const echo = defineTool({
    name: "echo",
    description: "Answers.",
    inputSchema: { type: "object", properties: {} },
    effect: "read",
    call: async () => ({ content: String(times.length) }),
  });
  const runtime = { home: folder, env: {}, tools: ["default", echo], model };
  await using worker = await serveSessions(store, {
    slots: 1,
    folders: [folder],
    accepts: ["mode"],
    runtime,
  });
  const workspace = { type: "shared", directory: folder, root: folder } as const;
  const id = await startSession(store, {
    prompt: "Work.",
    workspace,
    options: { allowedTools: ["echo"] },
    needs: [],
  });
  await waitForEnd(store, id, { timeoutMs: 60_000 });
  await worker.drain();
  return times.slice(1).map((at, index) => at - (times[index] ?? 0));
}

/** Sessions that write files while their workers are killed one after another. */
export async function measureSessionStorm({ url }: TestPostgres): Promise<Figure> {
  const [sessions, files, kills] = [12, 8, Number(process.env["SESSION_KILLS"] ?? 20)];
  const respond: StepFunction = async (request) => {
    await pause(150 + Math.random() * 300);
    return nextFile(request, files);
  };
  await using scene = await openSessionScene(url, { respond, workers: 3 });
  const { store, workspace } = scene;
  const folders = await Promise.all(
    Array.from({ length: sessions }, () => mkdtemp(join(workspace.directory, "project-"))),
  );
  const ids = await Promise.all(
    folders.map((directory) =>
      startSession(store, {
        prompt: "Write the files.",
        workspace: { ...workspace, directory },
        options: { permissionMode: "acceptEdits" },
      }),
    ),
  );
  for (let kill = 0; kill < kills; kill += 1) {
    const next = performance.now() + 1_000;
    await scene.replace(kill % 3);
    await pause(Math.max(0, next - performance.now()));
  }
  const endings = await Promise.all(ids.map((id) => waitForEnd(store, id, { timeoutMs: 90_000 })));
  const completed = endings.filter((ending) => ending?.status === "completed").length;
  const written = folders.flatMap((folder) =>
    Array.from({ length: files }, (_, at) => existsSync(join(folder, `file-${at + 1}.txt`))),
  );
  const lost = written.filter((isThere) => !isThere).length;
  const histories = await Promise.all(ids.map((id) => store.log.read(agentLog(id))));
  const repeated = histories.map(repeatedCalls).reduce((sum, count) => sum + count, 0);
  const claims = histories.flat().filter(({ record }) => toAgentRecord(record)?.type === "claimed").length;
  return {
    what: `sessions in a storm: 3 \`retinue serve\`, ${sessions} sessions × ${files} files, a kill every second`,
    limit: "all finish, 0 files lost, 0 calls recorded twice",
    value: `${kills} kills, ${claims} claims: ${completed} completed, ${lost} files lost, ${repeated} calls twice`,
    isReached: completed === sessions && lost === 0 && repeated === 0,
  };
}

/** Calls whose id is in the log of an agent more than once: then a call would have had two keys. */
function repeatedCalls(history: readonly LogEntry[]): number {
  const ids = history.flatMap(({ record: value }) => {
    const record = toAgentRecord(value);
    const entry = record?.type === "entry" && isRecord(record.entry) ? record.entry : {};
    return entry["type"] === "call" ? [String(entry["id"])] : [];
  });
  return ids.length - new Set(ids).size;
}

/** Asks for the first file that has not been written according to the conversation; one that may exist is read before. */
function nextFile({ messages }: ModelRequest, count: number): StepAnswer {
  const calls = messages.flatMap((message) => (message.role === "assistant" ? toolCallsOf(message) : []));
  const results = messages.flatMap(({ role, content }) =>
    role === "user" && typeof content !== "string" ? content : [],
  );
  const isDone = (id: string): boolean =>
    results.some(
      (block) => block.type === "tool_result" && block.tool_use_id === id && block.is_error !== true,
    );
  const callsFor = (path: string) => calls.filter(({ input }) => JSON.stringify(input).includes(`"${path}"`));
  const paths = Array.from({ length: count }, (_, at) => `file-${at + 1}.txt`);
  const path = paths.find(
    (name) => !callsFor(name).some(({ id, name: tool }) => tool === "Write" && isDone(id)),
  );
  if (path === undefined) return { text: "All files are written." };
  const last = callsFor(path).at(-1);
  if (last !== undefined && !(last.name === "Read" && isDone(last.id)) && last.name === "Write")
    return { calls: [{ name: "Read", input: { file_path: path } }] };
  return { calls: [{ name: "Write", input: { file_path: path, content: path } }] };
}

interface SessionScene extends AsyncDisposable {
  readonly store: Store;
  readonly workspace: { readonly type: "shared"; readonly directory: string; readonly root: string };
  /** Bytes of memory that each worker holds. */
  memory(): readonly number[];
  /** Kills a worker and starts another in its place. */
  replace(at: number): Promise<void>;
}

async function openSessionScene(
  url: string,
  { respond, workers }: { readonly respond: StepFunction; readonly workers: number },
): Promise<SessionScene> {
  await emptyStore(url);
  const provider: FakeProvider = await startFakeProvider({ respond, keepsRequests: false });
  const folder = mkdtempSync(join(tmpdir(), "figures-session-"));
  const fleet = await Promise.all(Array.from({ length: workers }, () => serve(folder, url, provider)));
  const store = await openStore(url);
  return {
    store,
    workspace: { type: "shared", directory: folder, root: folder },
    memory: () => fleet.map(({ pid }) => residentBytes(pid ?? 0)),
    async replace(at) {
      fleet[at]?.kill("SIGKILL");
      fleet[at] = await serve(folder, url, provider);
    },
    async [Symbol.asyncDispose]() {
      for (const child of fleet) child.kill("SIGKILL");
      await store.close();
      await provider.close();
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

async function serve(folder: string, url: string, provider: FakeProvider): Promise<ChildProcess> {
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x", RETINUE_STORE: url };
  const words = ["serve", "--folder", folder, "--accept-rights", "mode", "--workspaces", folder];
  const worker = spawn(process.execPath, [program, ...words], {
    cwd: folder,
    env: { HOME: folder, PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", ...environment },
    stdio: ["ignore", "ignore", "pipe"],
  });
  await new Promise<void>((resolve, reject) => {
    worker.stderr?.on("data", (text) => String(text).includes("serves") && resolve());
    worker.once("exit", (code) => reject(new Error(`The worker ended with ${code}.`)));
  });
  return worker;
}

function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) * 1024;
}
