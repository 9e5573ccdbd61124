import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { agentLog, inboxLog, readAgentState, toAgentRecord } from "./agent-records.ts";
import { isStore, type Store } from "./store.ts";

export interface PruneOptions {
  /** Milliseconds since 1970. */
  readonly before: number;
  readonly isDryRun?: boolean | undefined;
}

/**
 * Removes agents that ended before a time, with their inboxes. A child stays as long as its tree does, so that a reader
 * of the tree finds all of it. Needs an account that may delete, which workers do not have.
 */
export async function pruneAgents(store: Store, options: PruneOptions): Promise<readonly string[]> {
  const shape = checks.shape({ before: checks.number, isDryRun: checks.flag }, ["before"]);
  checkArgument("The first argument of pruneAgents()", isStore, store);
  checkArgument("The second argument of pruneAgents()", shape, options);
  const { before, isDryRun = false } = options;
  const { log, engine } = store;
  const summaries = await log.list("run/", { last: true });
  const young = new Set<string>();
  const ended: { readonly agent: string; readonly tree: string }[] = [];
  for (const { name, lastAt, last } of summaries) {
    const agent = name.slice("run/".length);
    const [first] = await log.read(name, 0, 1);
    if (first === undefined || last === undefined) continue;
    const { tree } = readAgentState([first]);
    const isOver =
      toAgentRecord(last.record)?.type === "ended" && (await engine.status(agent)).state === "idle";
    if (isOver && lastAt < before) ended.push({ agent, tree });
    else young.add(tree);
  }
  const old = ended.filter(({ tree }) => !young.has(tree)).map(({ agent }) => agent);
  if (isDryRun) return old;
  for (const agent of old) {
    await log.remove(inboxLog(agent));
    await log.remove(agentLog(agent));
  }
  await engine.prune(before);
  return old;
}
