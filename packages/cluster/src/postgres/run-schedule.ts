import type { PoolClient } from "pg";
import type { AgentTable, OwnedRun, ScheduledRun, WakeRequest } from "./agent-table.ts";
import type { Database } from "./database.ts";
import { type Job, type JobQueue, openJobQueue } from "./job-queue.ts";
import type { PostgresBus } from "./postgres-bus.ts";
import type { Place } from "./schema.ts";

/** Workers look for work when something is published here. */
export const wakeTopic = "engine/wake";
export const runJob = "run-agent";
export const timerJob = "wake-agent";
export const timerQueue = "timers";

export interface RunScheduleOptions {
  readonly database: Database;
  readonly place: Place;
  readonly bus: PostgresBus;
  readonly agents: AgentTable;
}

/** Changes the rows of agents and enqueues the runs that follow from it, always both or neither. */
export interface RunSchedule {
  wake(request: WakeRequest): Promise<void>;
  wakeLater(request: WakeRequest, delayMs: number): Promise<void>;
  /** Gives a run back so that another worker takes it, at once or after a while. */
  release(run: OwnedRun, delayMs?: number): Promise<void>;
  /** Schedules agents again that are active although nothing is scheduled for them. */
  rescue(): Promise<void>;
  prune(before: number): Promise<number>;
  close(): Promise<void>;
}

export function createRunSchedule({ database, place, bus, agents }: RunScheduleOptions): RunSchedule {
  let opened: Promise<JobQueue> | undefined;
  const jobs = (): Promise<JobQueue> => {
    opened ??= openJobQueue(database, place);
    return opened;
  };
  /** The notice goes out with the commit, so a worker that gets it sees the job. */
  const enqueue = async (client: PoolClient, queued: readonly Job[]): Promise<void> => {
    const queue = await jobs();
    for (const job of queued) await queue.enqueue(client, job);
    if (queued.length > 0) await client.query("SELECT pg_notify($1, 'null')", [bus.channelOf(wakeTopic)]);
  };
  return {
    async wake(request) {
      await jobs();
      await database.transaction(async (client) => {
        const run = await agents.wake(client, request);
        if (run !== undefined) await enqueue(client, [toJob(run)]);
      });
    },
    async wakeLater({ agent, activationId, needs, priority }, delayMs) {
      const input = [JSON.stringify({ agent, activationId, needs, priority })];
      const id = `${agent}~${activationId}`;
      await database.transaction((client) =>
        enqueue(client, [{ id, kind: timerJob, queue: timerQueue, input, delayMs }]),
      );
    },
    async release(run, delayMs = 0) {
      await database.transaction(async (client) => {
        const next = await agents.release(client, run);
        if (next !== undefined) await enqueue(client, [{ ...toJob(next), delayMs }]);
      });
    },
    async rescue() {
      await database.transaction(async (client) =>
        enqueue(client, (await agents.findStranded(client)).map(toJob)),
      );
    },
    prune: async (before) => (await jobs()).prune(before),
    async close() {
      await (await opened)?.close();
    },
  };
}

export function jobIdOf({ agent, run }: Pick<ScheduledRun, "agent" | "run">): string {
  return `${agent}@${run}`;
}

function toJob({ agent, run, queue, priority }: ScheduledRun): Job {
  return { id: jobIdOf({ agent, run }), kind: runJob, queue, input: [agent, run], priority };
}
