import { readAgentState, toAgentRecord } from "./agent-records.ts";
import type { LogSummary, Store } from "./store.ts";

/** Compares what the logs say with what the engine knows; remembers what it saw the last time. */
export interface Reconciler {
  /** Wakes agents that have work by their log although nothing is scheduled for them; gives their names. */
  run(): Promise<readonly string[]>;
}

/**
 * A wake that was lost, by an error between two writes or a mistake of the engine, would leave an agent for ever that everybody takes for
 * working. Whatever has not changed between two looks and is not scheduled is woken: an open log, and a message that came after an agent
 * had come to rest. The same state is woken once.
 */
export function createReconciler({ log, engine }: Pick<Store, "log" | "engine">): Reconciler {
  let seen = new Map<string, string>();
  return {
    async run() {
      const [agents, inboxes] = await Promise.all([
        log.list(runPrefix, { last: true }),
        log.list(inboxPrefix),
      ]);
      const mail = new Map(inboxes.map((inbox) => [inbox.name.slice(inboxPrefix.length), inbox]));
      const now = new Map<string, string>();
      const found: string[] = [];
      for (const summary of agents) {
        const agent = summary.name.slice(runPrefix.length);
        const inbox = mail.get(agent);
        if (!mayHaveWork(summary, inbox)) continue;
        const state = `${summary.lastSeq}/${inbox?.lastSeq ?? 0}`;
        now.set(agent, state);
        if (seen.get(agent) !== state || (await engine.status(agent)).state !== "idle") continue;
        const { needs } = readAgentState(await log.read(summary.name, 0, 1));
        await engine.wake(agent, `reconciled/${state}`, { needs });
        // A wake that the engine has known before changes nothing.
        if ((await engine.status(agent)).state !== "idle") found.push(agent);
      }
      seen = now;
      return found;
    },
  };
}

const runPrefix = "run/";
const inboxPrefix = "in/";

function mayHaveWork({ last, lastAt }: LogSummary, inbox: LogSummary | undefined): boolean {
  const record = last === undefined ? undefined : toAgentRecord(last.record);
  switch (record?.type) {
    case "dead-letter":
      return false;
    case "ended":
      return record.ending.status !== "stopped" && inbox !== undefined && inbox.lastAt > lastAt;
    case "parked":
      return inbox !== undefined && inbox.lastAt > lastAt;
    default:
      return true;
  }
}
