import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentLog, toAgentRecord } from "@retinue/cluster/agent-records.ts";
import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import { setUpPostgres } from "@retinue/cluster/postgres/set-up-postgres.ts";
import { startAgent, waitForEnd } from "@retinue/cluster/start-agent.ts";
import type { JsonValue, Store } from "@retinue/cluster/store.ts";
import { emptyStore } from "../../test/cluster/test-database.ts";
import { startTestPostgres, type TestPostgres } from "../../test/cluster/test-postgres.ts";
import type { TestPlan } from "../../test/cluster/test-program.ts";
import { createFleet } from "../../test/cluster/worker-fleet.ts";

/** A database, a folder for effects and workers, for one measurement. */
export interface Scene extends AsyncDisposable {
  readonly server: TestPostgres;
  readonly store: Store;
  readonly effects: string;
  readonly fleet: ReturnType<typeof createFleet>;
  start(agent: string, plan: TestPlan, parent?: string): Promise<void>;
  /** How many agents ended, did a step more or less often than planned, or did one twice. */
  check(agents: readonly string[], steps: number): Promise<Verdict>;
}

export interface Verdict {
  readonly ended: number;
  readonly lost: number;
  readonly repeated: number;
}

export async function openServer(): Promise<TestPostgres> {
  const server = await startTestPostgres({ durable: true });
  await setUpPostgres({ url: server.url });
  return server;
}

export async function openScene(server: TestPostgres, slots: number): Promise<Scene> {
  await emptyStore(server.url);
  const effects = await mkdtemp(join(tmpdir(), "figures-"));
  const store = await openPostgresStore({ url: server.url });
  const fleet = createFleet({ url: server.url, effects, slots });
  return {
    server,
    store,
    effects,
    fleet,
    async start(agent, plan) {
      await startAgent(store, { agent, plan: plan as JsonValue });
    },
    check: (agents, steps) => check(store, agents, steps),
    async [Symbol.asyncDispose]() {
      await fleet[Symbol.asyncDispose]();
      await store.close();
      await rm(effects, { recursive: true, force: true });
    },
  };
}

async function check(store: Store, agents: readonly string[], steps: number): Promise<Verdict> {
  let [ended, lost, repeated] = [0, 0, 0];
  for (const agent of agents) {
    if ((await waitForEnd(store, agent, { timeoutMs: 120_000 })) !== undefined) ended += 1;
    const counts = new Map<string, number>();
    const called = new Map<number, string>();
    for (const { seq, record: value } of await store.log.read(agentLog(agent))) {
      const record = toAgentRecord(value);
      if (record?.type === "called") called.set(seq, JSON.stringify(record.input));
      const step = record?.type === "returned" ? called.get(record.call) : undefined;
      if (step !== undefined) counts.set(step, (counts.get(step) ?? 0) + 1);
    }
    lost += steps - counts.size;
    repeated += [...counts.values()].filter((count) => count > 1).length;
  }
  return { ended, lost, repeated };
}

/** One row of the table: what was measured, what it must reach, and what it did. */
export interface Figure {
  readonly what: string;
  readonly limit: string;
  readonly value: string;
  readonly isReached: boolean;
}

/** The rows as a table that can be pasted into documentation. */
export function renderFigures(figures: readonly Figure[]): string {
  const rows = figures.map(({ what, limit, value, isReached }) => [
    what,
    limit,
    value,
    isReached ? "yes" : "NO",
  ]);
  const table = [["measured", "must reach", "reached", ""], ["---", "---", "---", "---"], ...rows];
  return table.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export function milliseconds(value: number): string {
  return `${value < 10 ? value.toFixed(2) : Math.round(value)} ms`;
}
