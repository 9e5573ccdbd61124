import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { checkSession } from "./check-session.ts";
import { growth, type RunningProgram, startProgram } from "./start-program.ts";
import type { TortureProvider } from "./torture-provider.ts";
import { plan } from "./torture-script.ts";

/** Where a session is started and killed, and where it is taken up again. */
export const containerMoves = ["outside", "sibling", "reboot", "frozen"] as const;
export type ContainerMove = (typeof containerMoves)[number];

export interface ContainerOutcome {
  readonly move: ContainerMove;
  /** From the start of the second process to its end. */
  readonly elapsedMs: number;
  /** Whether the second process had to be reported to take the session over. */
  readonly forced: boolean;
}

/** Why containers cannot be tried here; undefined where they can. */
export function containerObstacle(): string | undefined {
  if (process.platform !== "linux") return "it needs Linux";
  try {
    execFileSync("unshare", [...namespaces, "true"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "`unshare` may not make a pid namespace here";
  }
}

/** A pid namespace with its own list of processes and its own host name, which ends with the process that made it. */
const namespaces = ["--user", "--map-root-user", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child"];

function container(name: string): readonly string[] {
  return ["unshare", ...namespaces, "sh", "-c", `hostname ${name} && exec "$@"`, "sh"];
}

/**
 * Begins a session in a container, ends or freezes it in the middle, and continues with it elsewhere: outside, in a second
 * container, after a reboot, or while the first one is only frozen. Throws when the session is not whole at the end.
 */
export async function moveContainer(
  move: ContainerMove,
  provider: TortureProvider,
): Promise<ContainerOutcome> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-container-")));
  let first: RunningProgram | undefined;
  try {
    const place = createPlace(root);
    first = startProgram(place, ["--session-id", place.sessionId], provider.url, {
      within: container("one"),
    });
    await growth(() => sizeOf(place.transcript), 12, AbortSignal.timeout(20_000));
    const frozen = move === "frozen" ? freeze(first) : undefined;
    if (frozen === undefined) {
      first.process.kill("SIGKILL");
      await first.ended;
    }
    if (move === "reboot") ageLock(`${place.transcript}.lock`);
    const start = performance.now();
    const session = ["--resume", place.sessionId, ...(move === "frozen" ? ["--take-over"] : [])];
    const within = move === "sibling" ? { within: container("two") } : {};
    const { code, output } = await startProgram(place, session, provider.url, within).ended;
    if (code !== 0 || !output.includes("ALL DONE")) throw new Error(`It was not taken up: ${output}`);
    const elapsedMs = performance.now() - start;
    if (frozen !== undefined) await checkFenced(first, frozen, place.transcript);
    const state = await checkSession(place);
    const missing = plan.flat().find(({ name }) => !state.done.has(name));
    if (missing !== undefined) throw new Error(`${missing.name} was never done.`);
    return { move, elapsedMs, forced: move === "frozen" };
  } finally {
    first?.process.kill("SIGKILL");
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }
}

interface Place {
  readonly home: string;
  readonly project: string;
  readonly sessionId: string;
  readonly transcript: string;
  readonly tears: number;
  readonly tornCalls: ReadonlySet<string>;
}

function createPlace(root: string): Place {
  const [home, project] = [join(root, "home"), join(root, "project")];
  mkdirSync(home);
  mkdirSync(project);
  const sessionId = randomUUID();
  const { transcripts } = createPaths({ cwd: project, home, environment: {}, platform: process.platform });
  const transcript = join(transcripts, `${sessionId}.jsonl`);
  return { home, project, sessionId, transcript, tears: 1, tornCalls: new Set() };
}

/** The lock as a process of an earlier start of this machine would have left it, long enough ago. */
function ageLock(lock: string): void {
  const owner: unknown = JSON.parse(readFileSync(lock, "utf8"));
  writeFileSync(
    lock,
    JSON.stringify({ ...Object(owner), started: "00000000-0000-0000-0000-000000000000/1" }),
  );
  execFileSync("touch", ["-d", "1 minute ago", lock]);
}

/** Stops everything in the container, as a paused virtual machine is stopped. */
function freeze({ process: child }: RunningProgram): readonly number[] {
  const family = descendantsOf(child.pid ?? 0);
  for (const pid of family) send(pid, "SIGSTOP");
  return family;
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // A command that has just ended.
  }
}

/** Wakes the first process: it must end by itself, refused, and leave the transcript as it is. */
async function checkFenced(
  first: RunningProgram,
  frozen: readonly number[],
  transcript: string,
): Promise<void> {
  const before = readFileSync(transcript, "utf8");
  for (const pid of frozen) send(pid, "SIGCONT");
  const { code, output } = await first.ended;
  if (code === 0 || !/taken over/.test(output)) throw new Error(`The first owner was not refused: ${output}`);
  if (readFileSync(transcript, "utf8") !== before)
    throw new Error("The first owner wrote to the transcript.");
}

function descendantsOf(pid: number): readonly number[] {
  const list = execFileSync("ps", ["-e", "-o", "pid=,ppid="], { encoding: "utf8" });
  const pairs = list
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  const found = [pid];
  for (const parent of found)
    found.push(...pairs.flatMap(([own = 0, above]) => (above === parent ? [own] : [])));
  return found;
}

function sizeOf(file: string): number {
  try {
    return readFileSync(file).length;
  } catch {
    return 0;
  }
}
