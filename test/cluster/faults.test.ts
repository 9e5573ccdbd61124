import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { agentLog, toAgentRecord } from "@retinue/cluster/agent-records.ts";
import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import { inspectAgent, reviveAgent, startAgent, waitForEnd } from "@retinue/cluster/start-agent.ts";
import { startSession } from "@retinue/cluster/start-session.ts";
import type { JsonValue, Store } from "@retinue/cluster/store.ts";
import { toolCallsOf } from "@retinue/core/conversation/message.ts";
import { becomes } from "@retinue/testing/becomes.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { runInProcess } from "../scenarios/run-command.ts";
import { type FailingDatabase, makeFailing } from "./failing-database.ts";
import { createTestDatabase } from "./test-database.ts";
import { setUpMs } from "./test-postgres.ts";
import { readEffects } from "./test-program.ts";
import { createFleet } from "./worker-fleet.ts";

const postgres = inject("postgres");
const patient = { timeoutMs: 60_000 };

describe.skipIf(postgres.missing !== "")(`workers among faults${postgres.missing}`, async () => {
  if (postgres.missing !== "") return;
  const { url } = await createTestDatabase(postgres, "faults");
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-faults-")));
  const effects = join(root, "effects");
  const fleet = createFleet({ url, effects, slots: 4 });
  let store: Store;
  let failing: FailingDatabase;
  let provider: FakeProvider;
  const processes: ChildProcess[] = [];
  beforeAll(async () => {
    failing = await makeFailing(url);
    store = await openPostgresStore({ url });
    provider = await startFakeProvider({
      respond: ({ messages }) => {
        const calls = messages.flatMap((message) =>
          message.role === "assistant" ? toolCallsOf(message) : [],
        );
        if (calls.length > 1) return { text: "Both files are written." };
        const input = { file_path: `file-${calls.length}.txt`, content: "text" };
        return { calls: [{ name: "Write", input }] };
      },
    });
  }, setUpMs);
  afterAll(async () => {
    for (const child of processes) child.kill("SIGKILL");
    await fleet[Symbol.asyncDispose]();
    await store?.close();
    await provider?.[Symbol.asyncDispose]();
    rmSync(root, { recursive: true, force: true, maxRetries: 3 });
  });

  test("a database that refuses all writes for a while, as with a full disk, loses no agent and fails none [CLU-7]", async () => {
    const workers = [await fleet.start(), await fleet.start()];
    const agents = Array.from({ length: 24 }, (_, at) => `full-${at}`);
    const plan = { steps: 6, stepMs: 15 } as JsonValue;
    for (const agent of agents) await startAgent(store, { agent, plan });
    const done = () => readEffects(effects).length;
    for (const state of ["53100", "53200", "58030", "XX000", "57P03", "25006", "40001", "55P03"]) {
      const before = done();
      if (before >= 24 * 5) break;
      await becomes(() => done() > before + 3);
      await failing.refuse(state);
      // Some are in the middle of a step, some are given back, and some are about to be claimed or to end.
      const late = startAgent(store, { agent: `late-${state}`, plan: { steps: 1 } });
      const refused = await failing.refused();
      await becomes(async () => (await failing.refused()) > refused + 5);
      await failing.refuse("none");
      await late;
      agents.push(`late-${state}`);
    }
    for (const agent of agents) expect((await waitForEnd(store, agent, patient))?.status).toBe("completed");
    const late = agents.filter((agent) => agent.startsWith("late")).length;
    expect(done()).toBe(24 * 6 + late);
    for (const agent of agents) {
      const types = (await store.log.read(agentLog(agent))).map(({ record }) => toAgentRecord(record)?.type);
      expect(types.filter((type) => type === "returned")).toHaveLength(agent.startsWith("late") ? 1 : 6);
    }
    for (const worker of workers) expect(await worker.drain()).toBe(0);
  }, 120_000);

  /** The built command as a worker. */
  async function serve(home: string, more: readonly string[] = [], environment: NodeJS.ProcessEnv = {}) {
    const command = [join(projectRoot, "bin/retinue.js"), "serve", "--concurrency", "4"];
    command.push("--accept-rights", "mode", ...more);
    const child = spawn(process.execPath, command, {
      cwd: root,
      env: {
        HOME: home,
        PATH: process.env["PATH"],
        RETINUE_LOCAL_MODELS: "0",
        RETINUE_STORE: url,
        ANTHROPIC_BASE_URL: provider.url,
        ANTHROPIC_API_KEY: "test-key",
        ...environment,
      },
      stdio: ["ignore", "ignore", "pipe"],
    });
    processes.push(child);
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      said += chunk;
    });
    await becomes(() => said.includes("serves"));
    return { child, said: () => said };
  }

  function start(prompt: string) {
    const directory = mkdtempSync(join(root, "project-"));
    const workspace = { type: "pinned", directory, machine: hostname() } as const;
    return startSession(store, { prompt, workspace, options: { permissionMode: "acceptEdits" } });
  }

  const run = (...words: readonly string[]) =>
    runInProcess({ cwd: root, home: root }, words, { environment: { RETINUE_STORE: url, COLUMNS: "400" } });

  test("a worker that cannot write its copies fails no session, takes none and says so; one without a home runs them [CLU-7]", async () => {
    const spaces = join(root, "spaces");
    mkdirSync(spaces);
    const sick = await serve(root, ["--workspaces", spaces]);
    // A file in place of its folder: nothing can be written there, by root neither.
    const [folder = ""] = readdirSync(spaces);
    rmSync(join(spaces, folder), { recursive: true });
    writeFileSync(join(spaces, folder), "");
    const ids = await Promise.all(Array.from({ length: 6 }, () => start("Write two files.")));
    await becomes(() => sick.said().includes("this worker takes no agents for now: Could not write in"));
    await becomes(async () =>
      (await run("store", "workers")).out.includes("takes no agents: Could not write in"),
    );
    await becomes(async () => !(await run("tasks")).out.includes(" working "));
    writeFileSync(join(root, "no-home"), "");
    const homeless = await serve(join(root, "no-home"));
    for (const id of ids)
      expect(await waitForEnd(store, id, patient)).toMatchObject({
        status: "completed",
        result: { text: "Both files are written." },
      });
    rmSync(join(spaces, folder));
    await becomes(() => sick.said().includes("this worker takes agents again"));
    homeless.child.kill("SIGKILL");
    sick.child.kill("SIGKILL");
  }, 120_000);

  test("sessions of a worker that cannot reach the provider continue on one that can, within seconds [CLU-7]", async () => {
    // Nothing listens on the port of discard.
    const cut = await serve(root, [], { ANTHROPIC_BASE_URL: "http://127.0.0.1:9" });
    const ids = await Promise.all(Array.from({ length: 3 }, () => start("Write two files.")));
    await becomes(async () => (await run("tasks")).out.split(" working ").length === 4);
    const well = await serve(root);
    // A request alone would try for minutes.
    for (const id of ids) expect((await waitForEnd(store, id, patient))?.status).toBe("completed");
    well.child.kill("SIGKILL");
    cut.child.kill("SIGKILL");
  }, 120_000);

  test("an agent that kills its worker each time is a dead letter, its neighbours end, and it can be tried again [CLU-7]", async () => {
    const deadly = "deadly";
    await startAgent(store, { agent: deadly, plan: { isDeadly: true } });
    const neighbours = ["neighbour-1", "neighbour-2"];
    for (const agent of neighbours) await startAgent(store, { agent, plan: { steps: 3 } });
    let deaths = 0;
    let isOver = false;
    const keepServing = (): void => {
      const worker = fleet.start({ pauseMs: 50 });
      // A worker that dies before it is ready has taken the agent as well.
      void worker
        .then(
          ({ exited }) => exited,
          () => undefined,
        )
        .then(() => {
          deaths += 1;
          if (!isOver) keepServing();
        });
    };
    keepServing();
    const ending = await waitForEnd(store, deadly, patient);
    expect(String(ending?.result)).toMatch(
      /^No worker could run this agent: 5 claims failed, the last with: The worker .* died/,
    );
    for (const agent of neighbours)
      expect((await waitForEnd(store, agent, patient))?.status).toBe("completed");
    expect(deaths).toBe(5);
    isOver = true;
    expect((await run("tasks")).out).toMatch(new RegExp(`${deadly} {2}dead-letter .*5 claims failed`));
    expect((await run("doctor")).out).toContain(`agent ${deadly}: dead letter.`);
    expect((await run("tasks", "retry", deadly.slice(0, 4))).out).toContain("given to the workers again");
    expect((await run("stop", deadly)).code).toBe(0);
    expect((await run("tasks", "retry", deadly)).err).toContain("is not a dead letter: it is stopped");
    expect(await reviveAgent(store, deadly)).toBe("stopped");
    expect((await inspectAgent(store, deadly)).status).toBe("stopped");
  }, 180_000);
});
