// @io
import { readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import {
  endProcessGroup,
  findMarkedProcesses,
  type ProcessStatus,
  readEnvironment,
  readProcesses,
  readProcessStatus,
  sendSignal,
  treeVariable,
} from "./spawn-process.ts";

/** A leader with everything that it has started, also what has made a group or a session of its own. */
export interface ProcessTree {
  /** Notes what is there now; the children of a process that ends are known by this also afterwards. */
  look(): void;
  /** Asks all of it to end, and kills what is left when the grace is over; resolves when nothing lives or even killing did not help. */
  end(options: { readonly graceMs: number }): Promise<void>;
}

const firstPollMs = 20;
const pollMs = 50;
const killRounds = 20;

/**
 * Follows the tree below a leader. A process belongs to it by its parent, by a group or session that one of the tree has
 * led, or by the mark in its environment, so that it is found as an orphan too. Where there is no /proc, the tree is
 * the group of the leader.
 */
export function followProcessTree(leader: number, mark: string): ProcessTree {
  // By number, with the moment it began; a leader that has ended immediately has no such moment any more.
  const first = startOf(leader);
  const known = new Map([[leader, first]]);
  const marker = `${treeVariable}=${mark}`;

  /** Those of the tree that live. */
  function find(): readonly number[] {
    const living = readProcesses();
    // A number that was given to another process says nothing any more.
    for (const { pid, started } of living)
      if (known.has(pid) && known.get(pid) !== started) known.delete(pid);
    // Nothing of the tree is older than its leader.
    const younger = living.filter(({ pid, started }) => started >= first && pid !== process.pid);
    let added: readonly ProcessStatus[];
    do {
      added = younger.filter((one) => !known.has(one.pid) && belongs(one));
      for (const { pid, started } of added) known.set(pid, started);
    } while (added.length > 0);
    return younger.filter(({ pid }) => known.has(pid)).map(({ pid }) => pid);
  }

  function belongs({ pid, parent, group, session }: ProcessStatus): boolean {
    if (known.has(parent) || known.has(group) || known.has(session)) return true;
    return readEnvironment(pid).includes(marker);
  }

  const look = (): readonly number[] => {
    try {
      return isSeen() ? find() : [];
    } catch {
      // Without descriptors nothing can be seen; the group is ended all the same.
      return [];
    }
  };

  return {
    look: () => void look(),
    end: ({ graceMs }) => (isSeen() ? endAll(look, graceMs) : endProcessGroup(leader, { graceMs })),
  };
}

/** Ends every process with a mark that begins so, as far as the system shows them. */
export async function endMarkedProcesses(
  mark: string,
  { graceMs }: { readonly graceMs: number },
): Promise<void> {
  if (isSeen()) await endAll(() => findMarkedProcesses(mark), graceMs);
}

async function endAll(look: () => readonly number[], graceMs: number): Promise<void> {
  for (const pid of look()) sendSignal(pid, "SIGTERM");
  const until = performance.now() + graceMs;
  let pauseMs = firstPollMs;
  for (let left = graceMs; left > 0; left = until - performance.now()) {
    if (look().length === 0) return;
    await sleep(Math.min(pauseMs, left));
    pauseMs = pollMs;
  }
  for (let round = 0; round < killRounds; round += 1) {
    const members = look();
    if (members.length === 0) return;
    for (const pid of members) sendSignal(pid, "SIGKILL");
    await sleep(pollMs);
  }
}

/** Zero for one that has ended, and where it cannot be seen. */
function startOf(pid: number): number {
  try {
    return readProcessStatus(pid)?.started ?? 0;
  } catch {
    return 0;
  }
}

/** Not in a container that still sees the list of the machine around it, with other numbers. */
function isSeen(): boolean {
  try {
    return process.platform === "linux" && readlinkSync("/proc/self") === String(process.pid);
  } catch {
    return false;
  }
}
