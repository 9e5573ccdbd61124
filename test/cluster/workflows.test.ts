import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentLog, readAgentState, toAgentRecord } from "@retinue/cluster/agent-records.ts";
import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import { waitForEnd } from "@retinue/cluster/start-agent.ts";
import type { Store } from "@retinue/cluster/store.ts";
import { becomes } from "@retinue/testing/becomes.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { runInProcess } from "../scenarios/run-command.ts";
import { createTestDatabase } from "./test-database.ts";
import { setUpMs } from "./test-postgres.ts";

const postgres = inject("postgres");
const wide = 10;
const script = `export const meta = { name: 'many', description: 'Many agents' }
const wide = await parallel(Array.from({ length: ${wide} }, (_, i) => () => agent('conv:w' + i + ' x')))
return { wide, last: await agent('conv:last ' + wide.join()) }
`;

describe.skipIf(postgres.missing !== "")(`workflows on workers${postgres.missing}`, async () => {
  if (postgres.missing !== "") return;
  const { url } = await createTestDatabase(postgres, "workflows");
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-workflows-")));
  const counts = new Map<string, number>();
  const gate = Promise.withResolvers<void>();
  const children = new Set<ChildProcess>();
  let provider: FakeProvider;
  let store: Store;

  beforeAll(async () => {
    provider = await startFakeProvider({
      keepsRequests: false,
      async respond({ messages }) {
        const label = /conv:(\w+)/.exec(JSON.stringify(messages[0]))?.[1] ?? "?";
        counts.set(label, (counts.get(label) ?? 0) + 1);
        // The first worker finishes one step and no other.
        if (counts.size > 1) await gate.promise;
        return `R-${label}`;
      },
    });
    store = await openPostgresStore({ url });
  }, setUpMs);
  afterAll(async () => {
    for (const child of children) child.kill("SIGKILL");
    await store?.close();
    await provider?.[Symbol.asyncDispose]();
    rmSync(root, { recursive: true, force: true });
  });

  async function startWorker(name: string): Promise<ChildProcess> {
    const home = join(root, `home-${name}`);
    mkdirSync(home);
    const words = [join(projectRoot, "bin/retinue.js"), "serve", "--concurrency", "2"];
    const child = spawn(process.execPath, [...words, "--workspaces", join(home, "workspaces")], {
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
    children.add(child);
    let text = "";
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    await becomes(() => text.includes("serves"));
    return child;
  }

  test("any worker takes the steps of a run, and one that is killed with -9 costs nothing that was finished [WFL-5, WFL-3]", {
    timeout: 240_000,
  }, async () => {
    const cwd = join(root, "project");
    mkdirSync(join(cwd, ".claude/workflows"), { recursive: true });
    writeFileSync(join(cwd, ".claude/workflows/many.js"), script);
    const first = await startWorker("one");
    const words = ["workflow", "run", "many", "--detach"];
    const given = await runInProcess({ cwd, home: root }, words, { environment: { RETINUE_STORE: url } });
    const id = given.out.trim();
    expect(given.code, given.err).toBe(0);
    await becomes(() => counts.size > 2);
    const [finished = ""] = counts.keys();
    await startWorker("two");
    first.kill("SIGKILL");
    gate.resolve();
    const ended = await waitForEnd(store, id, { timeoutMs: 200_000 });
    expect(ended).toMatchObject({
      status: "completed",
      result: { output: { wide: Array.from({ length: wide }, (_, i) => `R-w${i}`), last: "R-last" } },
    });
    const steps = readAgentState(await store.log.read(agentLog(id))).children;
    expect(steps).toHaveLength(wide + 1);
    const logs = await Promise.all(steps.map((step) => store.log.read(agentLog(step))));
    const records = logs.map((log) => log.flatMap(({ record }) => toAgentRecord(record) ?? []));
    // Each ended once, and no worker took it afterwards.
    for (const log of records) expect(log.filter(({ type }) => type === "ended")).toHaveLength(1);
    const claims = records.flat().flatMap((record) => (record.type === "claimed" ? [record.worker] : []));
    expect(new Set(claims).size).toBeGreaterThan(1);
    // Only what the killed worker had under way was asked for again.
    const asked = [...counts.values()].reduce((sum, count) => sum + count, 0);
    expect(asked).toBeLessThanOrEqual(claims.length);
    expect(counts.get(finished)).toBe(1);
  });
});
