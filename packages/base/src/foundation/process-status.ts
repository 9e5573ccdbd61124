// @io
import { readdirSync, readFileSync } from "node:fs";
import { isResourceLimit } from "./retry-on-resource-limit.ts";

/** What /proc shows of a living process. */
export interface ProcessStatus {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** The moment it began, in ticks since the machine was booted. */
  readonly started: number;
}

/** Undefined for one that has ended, collected or not, and where there is no /proc. Throws only where there are no descriptors left. */
export function readProcessStatus(pid: number | string): ProcessStatus | undefined {
  const text = readStatus(pid);
  // The command's name is in parentheses and may hold anything, so reading starts behind the last one.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state = "", parent, group, session] = fields;
  if (text === "" || state === "Z" || state === "X") return undefined;
  return {
    pid: Number(pid),
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    started: Number(fields[19]),
  };
}

/** All living processes; throws where they cannot be listed. */
export function readProcesses(): readonly ProcessStatus[] {
  return readdirSync("/proc").flatMap((name) => {
    const status = /^\d+$/.test(name) ? readProcessStatus(name) : undefined;
    return status === undefined ? [] : [status];
  });
}

function readStatus(pid: number | string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch (error) {
    if (isResourceLimit(error)) throw error;
    return "";
  }
}
