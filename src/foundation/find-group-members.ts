// @io
import { readdirSync, readFileSync } from "node:fs";
import { isScarce } from "./retry-while-scarce.ts";

/**
 * The living processes that a leader started in its group or session, the leader included and zombies not. A process
 * that made a session of its own is a daemon and does not count. Where there is no /proc, only the group is asked.
 */
export function findGroupMembers(leader: number): readonly number[] {
  if (process.platform !== "linux") return groupAnswers(leader) ? [leader] : [];
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((name) => belongsTo(leader, readStatus(name)))
      .map(Number);
  } catch {
    // Without descriptors no one can be looked at, and what is not seen must not count as gone.
    return groupAnswers(leader) ? [leader] : [];
  }
}

/** Whether anything, a zombie included, is left in the group; costs one system call. */
export function groupAnswers(leader: number): boolean {
  try {
    process.kill(process.platform === "win32" ? leader : -leader, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function readStatus(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch (error) {
    if (isScarce(error)) throw error;
    return "";
  }
}

/** The command's name is in parentheses and may hold anything, so reading starts behind the last one. */
function belongsTo(leader: number, status: string): boolean {
  const [state = "Z", , group, session] = status.slice(status.lastIndexOf(")") + 2).split(" ");
  if (status === "" || state === "Z" || state === "X") return false;
  return Number(group) === leader || Number(session) === leader;
}
