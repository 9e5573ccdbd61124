import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** The variable by which whatever a hook has started can be recognised, also in a session of its own. */
export const hookMark = "RETINUE_HOOK_ID";

const killRounds = 25;
const pollMs = 20;

/** Kills what a hook left running outside its group. Where there is no /proc nothing can be found. */
export async function endMarkedProcesses(mark: string): Promise<number> {
  const found = findMarkedProcesses(mark);
  for (let round = 0, left = found; left.length > 0 && round < killRounds; round += 1) {
    for (const pid of left) kill(pid);
    await sleep(pollMs);
    left = findMarkedProcesses(mark);
  }
  return found.length;
}

export function findMarkedProcesses(mark: string): readonly number[] {
  if (process.platform !== "linux") return [];
  const wanted = `${hookMark}=${mark}`;
  return processNames()
    .filter((name) => variablesOf(name).includes(wanted))
    .map(Number);
}

function processNames(): readonly string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    // There is nothing to look with just now; whoever ends a hook ends its group in any case.
    return [];
  }
}

/** Empty for zombies and for processes of other people. */
function variablesOf(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
  } catch {
    return [];
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended in between.
  }
}
