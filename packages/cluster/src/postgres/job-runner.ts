// @io
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type Database, isTransient } from "./database.ts";
import { applicationName, applicationVersion, silentLogger, systemDatabaseUrl } from "./job-queue.ts";
import { type Dbos, loadDbos } from "./load-packages.ts";
import type { Place } from "./schema.ts";

/** Runs jobs in this process. */
export interface JobRunner {
  /** Starts at most `free` waiting jobs of a queue. */
  poll(queue: string, free: number): Promise<void>;
  /** Jobs of a dead runner wait again, before all others. */
  recover(runner: string): Promise<void>;
  /** Jobs that are marked as running but do not run wait again. */
  resume(jobs: readonly { readonly id: string; readonly queue: string }[]): Promise<void>;
  stop(): Promise<void>;
}

export interface JobRunnerOptions {
  readonly database: Database;
  readonly place: Place;
  /** Unique to this process, or it would take the jobs of another for its own. */
  readonly id: string;
  /** Never throws. */
  readonly jobs: ReadonlyMap<string, (...input: string[]) => Promise<void>>;
  readonly onError: (error: unknown) => void;
}

/** How long a worker that starts waits for the server. */
const launchMs = 60_000;
const launchPauseMs = 500;

/** The parts of DBOS that are not public, as they are in the version that is checked when it is loaded. */
interface QueueRunner {
  pollQueue(executor: unknown, queue: unknown): Promise<boolean>;
}

/** DBOS exists once per process, so a process can be one worker. */
export async function startJobRunner({
  database,
  place,
  id,
  jobs,
  onError,
}: JobRunnerOptions): Promise<JobRunner> {
  const dbos = await loadDbos();
  const { DBOS, DBOSExecutor, queues } = dbos;
  if (DBOS.isInitialized())
    throw new RetinueError(
      "already-serving",
      "This process already runs DBOS, and there can be only one worker per process.",
      {
        advice: "Start each worker as a process of its own.",
      },
    );
  const launch = async (): Promise<void> => {
    for (const [name, job] of jobs)
      DBOS.registerWorkflow(job, { name, maxRecoveryAttempts: Number.MAX_SAFE_INTEGER });
    DBOS.setConfig({
      name: applicationName,
      systemDatabaseUrl,
      systemDatabasePool: database.pool,
      systemDatabaseSchemaName: place.dbosSchema,
      executorID: id,
      applicationVersion,
      runMigrations: false,
      useListenNotify: false,
      // Our own loop polls, immediately when something was enqueued instead of at an interval; so DBOS must listen to no queue.
      listenQueues: ["none"],
      logger: { ...silentLogger, error: (entry) => onError(entry) },
    });
    await DBOS.launch();
  };
  // DBOS itself gives up at once when the server is away or cannot write.
  for (const end = performance.now() + launchMs; ; ) {
    try {
      await launch();
      break;
    } catch (error) {
      await DBOS.shutdown({ deregister: true }).catch(() => undefined);
      const mayPass = isTransient(error) || /initialize workflow executor/.test(String(error));
      if (!mayPass || performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, launchPauseMs));
    }
  }
  const executor = DBOSExecutor.globalInstance;
  if (executor === undefined) throw new RetinueError("store-broken", "DBOS did not start.");
  // pollQueue is private in its types; load-packages checks the version.
  const runner = queues.wfQueueRunner as unknown as QueueRunner;
  return {
    async poll(queue, free) {
      const workerConcurrency = executor.systemDatabase.countRunningWorkflowsForQueue(queue) + free;
      await runner.pollQueue(executor, createQueue(dbos, queue, workerConcurrency));
    },
    async recover(runnerId) {
      await executor.recoverPendingWorkflows([runnerId]);
    },
    async resume(stuck) {
      for (const { id: job, queue } of stuck) await DBOS.resumeWorkflow(job, { queueName: queue });
    },
    stop: () => DBOS.shutdown({ deregister: true, workflowCompletionTimeoutMS: 2_000 }),
  };
}

/** A queue that only this call knows. In the database, the number of slots would be shared by all workers. */
function createQueue({ queues }: Dbos, name: string, workerConcurrency: number): unknown {
  const { WorkflowQueue } = queues;
  return new WorkflowQueue(WorkflowQueue.recordFromParams(name, { workerConcurrency }), false);
}
