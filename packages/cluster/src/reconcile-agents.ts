import { readAgentState, toAgentRecord } from "./agent-records.ts";
import type { JsonValue, LogSummary, Store } from "./store.ts";

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
  let known = new Map<string, Rest>();
  /** By the last record, which is read once for each end of a log. */
  const restOf = async ({ name, lastSeq }: LogSummary): Promise<Rest> => {
    const before = known.get(name);
    if (before?.seq === lastSeq) return before;
    const [last] = await log.read(name, -1);
    return { seq: lastSeq, wakes: last === undefined ? "nothing" : whatWakes(last.record) };
  };
  return {
    async run() {
      const inboxes = await log.list(inboxPrefix);
      const mail = new Map(inboxes.map((inbox) => [inbox.name.slice(inboxPrefix.length), inbox]));
      const [now, rests] = [new Map<string, string>(), new Map<string, Rest>()];
      const found: string[] = [];
      for (const summary of await log.list(runPrefix)) {
        const { name, lastSeq, lastAt } = summary;
        const rest = await restOf(summary);
        rests.set(name, rest);
        const agent = name.slice(runPrefix.length);
        const inbox = mail.get(agent);
        const hasMail = inbox !== undefined && inbox.lastAt > lastAt;
        if (rest.wakes === "nothing" || (rest.wakes === "mail" && !hasMail)) continue;
        const state = `${lastSeq}/${inbox?.lastSeq ?? 0}`;
        now.set(agent, state);
        if (seen.get(agent) !== state || (await engine.status(agent)).state !== "idle") continue;
        const { needs } = readAgentState(await log.read(name, 0, 1));
        await engine.wake(agent, `reconciled/${state}`, { needs });
        // A wake that the engine has known before changes nothing.
        if ((await engine.status(agent)).state !== "idle") found.push(agent);
      }
      seen = now;
      known = rests;
      return found;
    },
  };
}

const runPrefix = "run/";
const inboxPrefix = "in/";

/** What makes an agent work whose log ends at this record. */
interface Rest {
  readonly seq: number;
  readonly wakes: "itself" | "mail" | "nothing";
}

function whatWakes(last: JsonValue): Rest["wakes"] {
  const record = toAgentRecord(last);
  switch (record?.type) {
    case "dead-letter":
      return "nothing";
    case "ended":
      return record.ending.status === "stopped" ? "nothing" : "mail";
    case "parked":
      return "mail";
    default:
      return "itself";
  }
}
