import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { agentLog, toAgentRecord } from "@retinue/cluster/agent-records.ts";
import { openFileStore } from "@retinue/cluster/files/open-file-store.ts";
import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import { serveAgents } from "@retinue/cluster/serve-agents.ts";
import {
  inspectAgent,
  sendMessage,
  startAgent,
  stopAgent,
  waitForEnd,
} from "@retinue/cluster/start-agent.ts";
import type { Store } from "@retinue/cluster/store.ts";
import type { TestPostgres } from "../../test/cluster/test-postgres.ts";
import { createTestProgram, readAborts, readEffects } from "../../test/cluster/test-program.ts";
import {
  type Figure,
  median,
  milliseconds,
  openScene,
  quantile,
  type Scene,
  type Verdict,
} from "./fleet-scene.ts";
import {
  measureFirstRequest,
  measureParkedSessions,
  measureSessionStorm,
  measureSessionTurn,
} from "./session-figures.ts";

type Measurement = (server: TestPostgres) => Promise<Figure>;

/** Each figure of the documentation, by name. */
export const measurements: ReadonlyMap<string, Measurement> = new Map([
  ["hand-over", measureHandOver],
  ["frozen", measureFrozen],
  ["storm", measureStorm],
  ["session-storm", measureSessionStorm],
  ["outage", measureOutage],
  ["turn", measureTurn],
  ["session-turn", measureSessionTurn],
  ["start", measureStart],
  ["first-request", measureFirstRequest],
  ["stop", measureStop],
  ["parked", measureParked],
  ["parked-sessions", measureParkedSessions],
  ["versions", measureVersions],
]);

/** From the kill to the first effect of an agent that the killed worker had run. */
async function measureHandOver(server: TestPostgres): Promise<Figure> {
  const gaps: number[] = [];
  for (let round = 0; round < 7; round += 1) {
    await using scene = await openScene(server, 8);
    const [first, second] = await Promise.all([scene.fleet.start(), scene.fleet.start()]);
    const agents = names("agent", 8);
    for (const agent of agents) await scene.start(agent, { steps: 60, stepMs: 50 });
    await until(() => readEffects(scene.effects).length >= 16 + round * 3);
    const ranBy = new Map(readEffects(scene.effects).map(({ agent, pid }) => [agent, pid]));
    const counts = [first, second].map(({ pid }) => [...ranBy.values()].filter((own) => own === pid).length);
    const victim = (counts[0] ?? 0) >= (counts[1] ?? 0) ? first : second;
    const orphans = new Set([...ranBy].flatMap(([agent, pid]) => (pid === victim.pid ? [agent] : [])));
    const killedAt = Date.now();
    victim.kill("SIGKILL");
    const isTaken = (): boolean => readEffects(scene.effects).some(isOrphanStep);
    const isOrphanStep = ({ agent, pid }: { agent: string; pid: number }): boolean =>
      orphans.has(agent) && pid !== victim.pid;
    await until(isTaken);
    gaps.push((readEffects(scene.effects).find(isOrphanStep)?.at ?? 0) - killedAt - 50);
  }
  return {
    what: "hand-over after kill -9 of a worker",
    limit: "median ≤ 1 s, at most 2 s",
    value: `median ${milliseconds(median(gaps))}, at most ${milliseconds(Math.max(...gaps))} (7 kills)`,
    isReached: median(gaps) <= 1_000 && Math.max(...gaps) <= 2_000,
  };
}

async function measureFrozen(server: TestPostgres): Promise<Figure> {
  const gaps: number[] = [];
  let late = 0;
  for (let round = 0; round < 3; round += 1) {
    await using scene = await openScene(server, 4);
    const first = await scene.fleet.start();
    await scene.start("agent", { steps: 200, stepMs: 30 });
    await until(() => readEffects(scene.effects).length >= 3);
    const second = await scene.fleet.start();
    first.kill("SIGSTOP");
    const at = Date.now();
    await until(() => readEffects(scene.effects).some(({ pid }) => pid === second.pid));
    gaps.push(Date.now() - at);
    first.kill("SIGCONT");
    const thawed = Date.now();
    await pause(1_500);
    late += readEffects(scene.effects).filter(
      ({ pid, at: when }) => pid === first.pid && when > thawed + 100,
    ).length;
  }
  return {
    what: "frozen worker (SIGSTOP) taken over, refused at its first write after the thaw",
    limit: "≤ 6 s, nothing done",
    value: `at most ${milliseconds(Math.max(...gaps))}, ${late} effects after the thaw (3 times)`,
    isReached: Math.max(...gaps) <= 6_000 && late === 0,
  };
}

async function measureStorm(server: TestPostgres): Promise<Figure> {
  const kills = Number(process.env["KILLS"] ?? 60);
  await using scene = await openScene(server, 5);
  const workers = await Promise.all([scene.fleet.start(), scene.fleet.start(), scene.fleet.start()]);
  const children = names("agent", 30);
  // Long enough to still run at the last kill.
  const plan = { steps: 20, stepMs: Math.ceil((kills * 1_000 * 1.1) / (20 * 2)) };
  await scene.start("parent", { children: children.map((agent) => ({ agent, plan })) });
  let killed = 0;
  while (killed < kills && (await inspectAgent(scene.store, "parent")).ending === undefined) {
    const next = Date.now() + 1_000;
    const at = killed % workers.length;
    workers[at]?.kill("SIGKILL");
    killed += 1;
    workers[at] = await scene.fleet.start();
    await pause(Math.max(0, next - Date.now()));
  }
  const ending = await waitForEnd(scene.store, "parent", { timeoutMs: 240_000 });
  const received = ((ending?.result ?? []) as unknown as readonly { agent: string }[]).map(
    ({ agent }) => agent,
  );
  const verdict = await scene.check(children, 20);
  const effects = readEffects(scene.effects).length;
  return {
    what: "storm: 3 workers, 30 agents × 20 turns, a kill every second",
    limit: "60 kills: 0 lost, 0 repeated, one result per child",
    value: `${killed} kills: ${describe(verdict)}, ${effects} effects, ${received.length} results of ${new Set(received).size} children`,
    isReached:
      isWhole(verdict, 30) && effects === 600 && received.length === 30 && new Set(received).size === 30,
  };
}

async function measureOutage(server: TestPostgres): Promise<Figure> {
  await using scene = await openScene(server, 5);
  await Promise.all([scene.fleet.start(), scene.fleet.start()]);
  const agents = names("agent", 10);
  for (const agent of agents) await scene.start(agent, { steps: 20, stepMs: 100 });
  await until(() => readEffects(scene.effects).length >= 30);
  await server.halt();
  await pause(5_000);
  await server.start();
  const back = Date.now();
  await until(() => readEffects(scene.effects).some(({ at }) => at > back));
  const gap = (readEffects(scene.effects).find(({ at }) => at > back)?.at ?? 0) - back;
  const verdict = await scene.check(agents, 20);
  const effects = readEffects(scene.effects).length;
  return {
    what: "PostgreSQL stopped for 5 s in the middle",
    limit: "all continue, 0 lost, 0 repeated",
    value: `${describe(verdict)}, ${effects} effects; first step ${milliseconds(gap)} after it was back`,
    isReached: isWhole(verdict, 10) && effects === 200,
  };
}

/** A turn is a record before, an effect, and a record after. */
async function measureTurn(server: TestPostgres): Promise<Figure> {
  await using scene = await openScene(server, 1);
  const inPostgres = await turnsOf(scene.store, scene.effects);
  const folder = await mkdtemp(join(tmpdir(), "figures-files-"));
  const files = await openFileStore(join(folder, "store"));
  const inFiles = await turnsOf(files, join(folder, "effects"));
  await files.close();
  await rm(folder, { recursive: true, force: true });
  const difference = median(inPostgres) - median(inFiles);
  return {
    what: "cost of a turn over the file store: one record before, one after",
    limit: "≤ 3 ms median",
    value: `${milliseconds(difference)} (${milliseconds(median(inPostgres))} against ${milliseconds(median(inFiles))})`,
    isReached: difference <= 3,
  };
}

async function turnsOf(store: Store, effects: string): Promise<readonly number[]> {
  const worker = await serveAgents(store, createTestProgram(effects), { slots: 1 });
  await startAgent(store, { agent: "a", plan: { steps: 300 } });
  await waitForEnd(store, "a", { timeoutMs: 60_000 });
  await worker.drain();
  const times = (await store.log.read(agentLog("a"))).flatMap(({ at, record }) =>
    toAgentRecord(record)?.type === "called" ? [at] : [],
  );
  // Neighbours are averaged, because the clock of the file store has whole milliseconds.
  return times.slice(20).map((at, index) => (at - (times[index] ?? 0)) / 20);
}

async function measureStart(server: TestPostgres): Promise<Figure> {
  await using scene = await openScene(server, 4);
  await Promise.all([scene.fleet.start(), scene.fleet.start()]);
  await pause(500);
  const delays: number[] = [];
  for (let round = 0; round < 40; round += 1) {
    const agent = `agent-${round}`;
    const began = Date.now();
    await scene.start(agent, { steps: 1 });
    await until(() => readEffects(scene.effects).some((effect) => effect.agent === agent));
    delays.push((readEffects(scene.effects).find((effect) => effect.agent === agent)?.at ?? 0) - began);
    await pause(20);
  }
  return {
    what: "spawn to first step of a small program, idle worker",
    limit: "≤ 60 ms median",
    value: `median ${milliseconds(median(delays))}, p95 ${milliseconds(quantile(delays, 0.95))}`,
    isReached: median(delays) <= 60,
  };
}

async function measureStop(server: TestPostgres): Promise<Figure> {
  await using scene = await openScene(server, 4);
  await scene.fleet.start();
  const delays: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    const agent = `agent-${round}`;
    await scene.start(agent, { steps: 1, stepMs: 60_000 });
    const hasStarted = async (): Promise<boolean> =>
      (await scene.store.log.read(agentLog(agent))).some(
        ({ record }) => toAgentRecord(record)?.type === "called",
      );
    await until(hasStarted);
    await pause(30);
    const began = Date.now();
    await stopAgent(scene.store, agent);
    await until(() => readAborts(scene.effects).length > round);
    delays.push(Math.max(...readAborts(scene.effects)) - began);
  }
  return {
    what: "cancel reaches a running agent on another worker",
    limit: "≤ 50 ms",
    value: `median ${milliseconds(median(delays))}, at most ${milliseconds(Math.max(...delays))}`,
    isReached: Math.max(...delays) <= 50,
  };
}

async function measureParked(server: TestPostgres): Promise<Figure> {
  await using scene = await openScene(server, 10);
  const workers = await Promise.all([scene.fleet.start(), scene.fleet.start()]);
  const before = await Promise.all(workers.map((worker) => worker.memory()));
  const agents = names("agent", 1_000);
  const client = await openPostgresStore({ url: server.url });
  await Promise.all(agents.map((agent) => startAgent(client, { agent, plan: { messages: 1 } })));
  await until(async () => (await isParked(scene, "agent-999")) && (await isParked(scene, "agent-0")));
  for (const agent of agents) await until(() => isParked(scene, agent));
  await pause(2_000);
  const after = await Promise.all(workers.map((worker) => worker.memory()));
  const growth = after.map((bytes, at) => (bytes - (before[at] ?? 0)) / 2 ** 20);
  const delays: number[] = [];
  for (const agent of agents.slice(0, 40)) {
    const began = performance.now();
    await sendMessage(client, agent, { body: "approved" });
    await waitForEnd(client, agent, { timeoutMs: 10_000 });
    delays.push(performance.now() - began);
  }
  await client.close();
  return {
    what: "1,000 parked agents of a small program: memory, message to result",
    limit: "≤ 40 MiB per worker, wake ≤ 100 ms",
    value: `${Math.round(Math.max(...growth))} MiB more, median ${milliseconds(median(delays))}, p95 ${milliseconds(quantile(delays, 0.95))}`,
    isReached: Math.max(...growth) <= 40 && median(delays) <= 100,
  };
}

async function isParked({ store }: Scene, agent: string): Promise<boolean> {
  const [last] = await store.log.read(agentLog(agent), -1);
  return last !== undefined && toAgentRecord(last.record)?.type === "parked";
}

async function measureVersions(server: TestPostgres): Promise<Figure> {
  await using scene = await openScene(server, 4);
  await Promise.all([scene.fleet.start({ codeVersion: "1" }), scene.fleet.start({ codeVersion: "2" })]);
  const agents = names("agent", 10);
  for (const agent of agents) await scene.start(agent, { steps: 20, stepMs: 10 });
  const verdict = await scene.check(agents, 20);
  return {
    what: "two versions of the code as workers at the same time",
    limit: "all agents finish",
    value: `${describe(verdict)} of 10 × 20`,
    isReached: isWhole(verdict, 10),
  };
}

function describe({ ended, lost, repeated }: Verdict): string {
  return `${ended} ended, ${lost} lost, ${repeated} repeated`;
}

function isWhole({ ended, lost, repeated }: Verdict, agents: number): boolean {
  return ended === agents && lost === 0 && repeated === 0;
}

function names(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}-${at}`);
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 120_000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`This did not come true in two minutes: ${holds}`);
    await pause(1);
  }
}
