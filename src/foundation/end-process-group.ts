// @io
import { setTimeout as sleep } from "node:timers/promises";
import { findGroupMembers, groupAnswers } from "./find-group-members.ts";
import { spawnProcess } from "./spawn-process.ts";

const pollMs = 20;
const killRounds = 25;

/**
 * Ends everything a leader has started: asks politely, and kills what is left when the grace is over. Whether something
 * is left is seen at the processes themselves. Resolves when nothing lives, or when even killing did not help.
 */
export async function endProcessGroup(leader: number, options: { readonly graceMs: number }): Promise<void> {
  if (process.platform === "win32") return endTree(leader);
  signalGroup(leader, "SIGTERM");
  // By the clock: on a busy machine looking takes longer than the pause between two looks.
  const until = performance.now() + options.graceMs;
  for (let left = options.graceMs; left > 0; left = until - performance.now()) {
    if (!isAlive(leader)) return;
    await sleep(Math.min(pollMs, left));
  }
  for (let round = 0; round < killRounds && isAlive(leader); round += 1) {
    signalGroup(leader, "SIGKILL");
    await sleep(pollMs);
  }
}

/** Sends a signal to the group and to those of the session that left it, as `timeout` and job control do. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  sendSignal(-leader, signal);
  for (const pid of findGroupMembers(leader)) if (pid !== leader) sendSignal(pid, signal);
}

function isAlive(leader: number): boolean {
  return process.platform === "linux" ? findGroupMembers(leader).length > 0 : groupAnswers(leader);
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended in between, or belongs to somebody else: nothing more can be done here.
  }
}

async function endTree(leader: number): Promise<void> {
  try {
    const options = { stdio: "ignore", windowsHide: true } as const;
    const killer = await spawnProcess("taskkill", ["/pid", String(leader), "/T", "/F"], options);
    await new Promise((resolve) => killer.once("exit", resolve));
  } catch {
    // Nothing more can be done here.
  }
}
