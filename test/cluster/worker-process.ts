/** A worker of its own process for the tests: serves a store until SIGTERM. Settings come as one JSON argument. */
import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import { serveAgents } from "@retinue/cluster/serve-agents.ts";
import { createTestProgram } from "./test-program.ts";

export interface WorkerSettings {
  readonly url: string;
  readonly effects: string;
  readonly slots: number;
  readonly name?: string;
  readonly has?: readonly string[];
  readonly codeVersion?: string;
  readonly frozenMs?: number;
  readonly pauseMs?: number;
}

const settings = JSON.parse(process.argv[2] ?? "{}") as WorkerSettings;
const { url, effects, slots, name, has, codeVersion, frozenMs, pauseMs } = settings;
const store = await openPostgresStore({
  url,
  workerName: name,
  frozenMs,
});
const worker = await serveAgents(store, createTestProgram(effects), {
  slots,
  has,
  codeVersion,
  pauseMs,
  onError: (error, agent) => process.stderr.write(`${agent ?? "worker"}: ${String(error)}\n`),
});
process.once("SIGTERM", async () => {
  await worker.drain(5_000);
  await store.close();
  process.disconnect();
});
process.on("message", (message) => {
  if (message === "memory") process.send?.({ rss: process.memoryUsage().rss });
});
process.send?.({ ready: worker.id });
