import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { isRecord } from "../foundation/json-value.ts";

/** What tells one process from all others, also from a later one that was given the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** The machine, or the container on it, in which the number means something. */
  readonly machine: string;
  /** When the process began, in a form only good for comparing; empty where the system does not tell. */
  readonly started: string;
}

export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, machine: thisMachine(), started: startOf(process.pid) ?? "" };
}

/** Any process of this machine; undefined for one that has ended. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const started = startOf(pid);
  if (started !== undefined) return { pid, machine: thisMachine(), started };
  return !canReadProcesses() && answersSignals(pid)
    ? { pid, machine: thisMachine(), started: "" }
    : undefined;
}

/** What was written down of a process as JSON; undefined for anything else. */
export function readIdentity(text: string): ProcessIdentity | undefined {
  try {
    return toIdentity(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** A value that was read from somewhere as the identity it claims to be. */
export function toIdentity(value: unknown): ProcessIdentity | undefined {
  if (!isRecord(value)) return undefined;
  const { pid, machine, started } = value;
  if (typeof pid !== "number" || !Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return typeof machine === "string" && typeof started === "string" ? { pid, machine, started } : undefined;
}

export function isOnThisMachine({ machine }: ProcessIdentity): boolean {
  return machine === thisMachine();
}

/** Only meaningful for a process of this machine. A process that ended but was not collected counts as gone. */
export function isRunning({ pid, started }: ProcessIdentity): boolean {
  if (!answersSignals(pid)) return false;
  const current = startOf(pid);
  if (current === undefined) return process.platform !== "linux" || !canReadProcesses();
  return started === "" || current === started;
}

function answersSignals(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Linux counts clock ticks since the machine was booted, so the boot is part of the answer. */
function startOf(pid: number): string | undefined {
  const status = readText(`/proc/${pid}/stat`);
  const fields = status?.slice(status.lastIndexOf(")") + 2).split(" ") ?? [];
  const [state = "", ticks] = [fields[0], fields[19]];
  if (ticks === undefined || state === "Z" || state === "X") return undefined;
  return `${readText("/proc/sys/kernel/random/boot_id")?.trim() ?? ""}/${ticks}`;
}

function canReadProcesses(): boolean {
  return readText("/proc/self/stat") !== undefined;
}

function thisMachine(): string {
  try {
    return `${hostname()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
