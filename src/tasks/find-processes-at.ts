import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { contains } from "./worktree-plan.ts";

/** Other processes that stand in a folder or name it in their command line. Where there is no /proc nothing can be found. */
export function findProcessesAt(folder: string): readonly number[] {
  if (process.platform !== "linux") return [];
  const name = basename(folder);
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .filter((pid) => isIn(pid, folder) || commandOf(pid).includes(name))
    .map(Number);
}

function isIn(pid: string, folder: string): boolean {
  try {
    return contains(folder, readlinkSync(`/proc/${pid}/cwd`));
  } catch {
    return false;
  }
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
