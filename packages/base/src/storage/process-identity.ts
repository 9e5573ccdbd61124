import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { isRecord } from "../foundation/json-record.ts";

/** What shows one process from all others, also from a later one that was given the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** The machine, or the container on it, in which the number means something. */
  readonly machine: string;
  /** When the process began, in a form only good for comparing; empty where the system does not report it. */
  readonly started: string;
}

let ownIdentity: ProcessIdentity | undefined;

/** Never changes while the process runs, so it is found out once. */
export function thisProcess(): ProcessIdentity {
  ownIdentity ??= { pid: process.pid, machine: thisMachine(), started: startOf("self") ?? "" };
  return ownIdentity;
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
  if (!canReadProcesses()) return true;
  const current = startOf(pid);
  return current !== undefined && (started === "" || current === started);
}

/**
 * Whether a process lives, as far as it can be seen from here. Another container's process can be seen from the outermost
 * one of the same kernel; of a process on another machine, or beside this container, nothing is known.
 */
export function livenessOf(identity: ProcessIdentity): "running" | "gone" | "unknown" {
  const { started, machine } = identity;
  const boot = started.includes("/") ? started.slice(0, started.indexOf("/")) : "";
  if (boot === "" || thisBoot() === "") {
    if (!isOnThisMachine(identity)) return "unknown";
    return isRunning(identity) ? "running" : "gone";
  }
  if (boot !== thisBoot()) return "unknown";
  const namespace = machine.split(" ")[1];
  if (namespace !== undefined && namespace === thisNamespace())
    return isRunning(identity) ? "running" : "gone";
  if (isSeenInside(identity)) return "running";
  return thisNamespace() === outermostNamespace && canSeeOthers() ? "gone" : "unknown";
}

/** The kernel gives the namespace it starts with this number. */
const outermostNamespace = "pid:[4026531836]";

/** The pid a process has in its own container is the last of those that are listed for it. */
function isSeenInside({ pid, started }: ProcessIdentity): boolean {
  return processNumbers().some((number) => {
    if (startOf(number) !== started) return false;
    const numbers =
      /^NSpid:\s*(.*)$/m.exec(readText(`/proc/${number}/status`) ?? "")?.[1]?.split(/\s+/) ?? [];
    return Number(numbers.at(-1)) === pid;
  });
}

function processNumbers(): readonly number[] {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

/** Some systems show a user only their own processes; the first process is never one of these. */
function canSeeOthers(): boolean {
  return readText("/proc/1/stat") !== undefined;
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
function startOf(pid: number | "self"): string | undefined {
  const status = readText(`/proc/${pid}/stat`);
  const fields = status?.slice(status.lastIndexOf(")") + 2).split(" ") ?? [];
  const [state = "", ticks] = [fields[0], fields[19]];
  if (ticks === undefined || state === "Z" || state === "X") return undefined;
  return `${thisBoot()}/${ticks}`;
}

function thisBoot(): string {
  return readText("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
}

/** Not everywhere, and not in a container that still sees the list of the machine around it, with other numbers. */
function canReadProcesses(): boolean {
  try {
    return readlinkSync("/proc/self") === String(process.pid);
  } catch {
    return false;
  }
}

function thisMachine(): string {
  const namespace = thisNamespace();
  return namespace === undefined ? hostname() : `${hostname()} ${namespace}`;
}

function thisNamespace(): string | undefined {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return undefined;
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
