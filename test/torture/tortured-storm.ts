import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { findInterrupted } from "@retinue/core/tasks/find-interrupted.ts";
import { checkStorm, checkStormOver, endingOf, type StormPlace, type StormState } from "./check-storm.ts";
import { createKeeper, listTranscripts } from "./kept-files.ts";
import { findMarked, isAlive, type MarkedProcess, markVariable } from "./marked-processes.ts";
import { growth, type RunningProgram, startProgram } from "./start-program.ts";
import type { TortureProvider } from "./torture-provider.ts";

export const stormSignals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"] as const;
export type StormSignal = (typeof stormSignals)[number];

export const exitCodes: Readonly<Record<StormSignal, number>> = {
  SIGINT: 130,
  SIGTERM: 143,
  SIGHUP: 129,
  SIGKILL: 137,
};

export interface Storm {
  readonly provider: TortureProvider;
  readonly random: () => number;
  /** Asked before each start; false lets the run continue to its end. */
  readonly mayKill: () => boolean;
  readonly report: (kill: StormKill) => void;
  /** With the setting that lets interrupted children in the background resume by themselves. */
  readonly resumesByItself: boolean;
}

export interface StormKill {
  readonly signal: StormSignal;
  /** How long the process took to end. */
  readonly tookMs: number;
  /** Commands that lived on when it had ended. */
  readonly leftAtEnd: number;
  /** What broke a promise, in words. */
  readonly flaws: readonly string[];
}

export interface StormEnd {
  readonly restarted: number;
  readonly doubled: number;
  readonly lost: number;
  /** Processes that still lived after the session had been resumed. */
  readonly left: number;
  readonly unknownTasks: number;
}

/** A main agent with children, half of them in the background, stopped by any signal and resumed until it is done. */
export async function torturedStorm(storm: Storm): Promise<StormEnd> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-storm-")));
  const place = createPlace(root, storm);
  try {
    return await runStorm(place, storm);
  } finally {
    for (const { pid } of findMarked(place.mark)) endQuietly(pid);
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function runStorm(place: Place, storm: Storm): Promise<StormEnd> {
  const keeper = createKeeper();
  let state = checkStorm(place);
  let orphans: readonly MarkedProcess[] = [];
  const left: MarkedProcess[] = [];
  while (true) {
    const session = state.hasStarted ? proceed(place, storm.random) : ["--session-id", place.sessionId];
    const program = startProgram(place, session, storm.provider.url, {
      environment: { [markVariable]: place.mark },
    });
    const resumed = whenResumed(place, program).then((isResumed) => {
      if (isResumed) left.push(...before.filter(isAlive));
    });
    const before = orphans;
    const sizes = new Map(listTranscripts(place.transcript).map((file) => [file, sizeOf(file)]));
    const signal = storm.mayKill() ? pick(storm.random) : undefined;
    const at = signal === undefined ? 0 : await killWith(signal, program, { place, storm });
    const { code, signal: died, output } = await program.ended;
    const tookMs = performance.now() - at;
    await resumed;
    orphans = findMarked(place.mark);
    keeper.check(listTranscripts(place.transcript));
    state = checkStorm(place);
    const wasStopped = signal !== undefined && (died !== null || code !== 0);
    if (wasStopped) {
      const isExpected = died === signal || code === exitCodes[signal];
      const flaws = [
        ...(isExpected ? [] : [`${signal} ended it with ${code ?? died}: ${output.slice(-4000)}`]),
        ...(await unlisted(place, state)),
        ...(signal === "SIGKILL" ? [] : unmarked(state, { died, sizes })),
      ];
      storm.report({ signal, tookMs, leftAtEnd: orphans.length, flaws });
      continue;
    }
    if (code !== 0) throw new Error(`The program ended with ${code ?? died}: ${output}`);
    checkStormOver(state);
    const { restarted, doubled, lost, unknownTasks } = state;
    const still = orphans.filter(isAlive);
    const diagnostics = [
      ...restarted,
      ...doubled,
      ...lost,
      ...unknownTasks,
      ...still.map(({ command }) => command),
    ];
    if (diagnostics.length > 0 && process.env["TORTURE_VERBOSE"] !== undefined) console.log(diagnostics);
    return {
      restarted: restarted.length,
      doubled: doubled.length,
      lost: lost.length,
      left: left.length + still.length,
      unknownTasks: unknownTasks.length,
    };
  }
}

function proceed({ sessionId }: Place, random: () => number): readonly string[] {
  return random() < 0.5 ? ["--resume", sessionId] : ["--continue"];
}

/** Children that have not ended and are not found by the process that asks what was interrupted. */
async function unlisted({ transcripts }: Place, { members }: StormState): Promise<readonly string[]> {
  const { agents } = await findInterrupted(transcripts);
  const found = new Set(agents.map(({ id }) => id));
  return members
    .filter(({ isDone, agentId, records }) => !isDone && records.length > 0 && !found.has(agentId))
    .map((member) => `${member.agentId} is not listed as interrupted (${endingOf(member) ?? "no ending"})`);
}

/** Where the process had the time to say so, each child that ran in it says that it was stopped. */
function unmarked(
  { members }: StormState,
  { died, sizes }: { readonly died: NodeJS.Signals | null; readonly sizes: ReadonlyMap<string, number> },
): readonly string[] {
  if (died !== null) return [];
  return members
    .filter((member) => sizes.get(member.file) !== sizeOf(member.file) && endingOf(member) === undefined)
    .map(({ agentId }) => `${agentId} does not say that it was stopped`);
}

/** True once the session has been resumed: its file continues growing. False when the process ended before that. */
async function whenResumed({ transcript }: Place, { ended }: RunningProgram): Promise<boolean> {
  const over = new AbortController();
  const grown = growth(() => sizeOf(transcript), 0, over.signal).then(() => !over.signal.aborted);
  return Promise.race([grown, ended.then(() => false)]).finally(() => over.abort());
}

interface Place extends StormPlace {
  readonly home: string;
  readonly sessionId: string;
  readonly transcripts: string;
  readonly mark: string;
}

function createPlace(root: string, { resumesByItself }: Storm): Place {
  const [home, project] = [join(root, "home"), join(root, "project")];
  mkdirSync(join(home, ".claude"), { recursive: true });
  mkdirSync(project);
  if (resumesByItself)
    writeFileSync(join(home, ".claude/settings.json"), JSON.stringify({ resumeInterruptedAgents: true }));
  const sessionId = randomUUID();
  const { transcripts } = createPaths({ cwd: project, home, environment: {}, platform: process.platform });
  const transcript = join(transcripts, `${sessionId}.jsonl`);
  return { home, project, sessionId, transcripts, transcript, mark: randomUUID() };
}

function pick(random: () => number): StormSignal {
  return stormSignals[Math.floor(random() * stormSignals.length)] ?? "SIGKILL";
}

/** Sends the signal at some moment; returns when that was. */
async function killWith(
  signal: StormSignal,
  { process: child, ended }: RunningProgram,
  { place, storm }: { readonly place: Place; readonly storm: Storm },
): Promise<number> {
  const { random, provider } = storm;
  const over = new AbortController();
  void ended.then(() => over.abort());
  const times = Math.floor(random() * 20);
  const sizes = (): number => listTranscripts(place.transcript).reduce((sum, file) => sum + sizeOf(file), 0);
  const moments = [
    () => wait(random() * 600),
    () => wait(300 + random() * 1500),
    async () => {
      await provider.nextAnswer(times);
      await wait(random() * 12);
    },
    () => growth(() => sizeOf(join(place.project, "log.txt")), Math.floor(times / 2), over.signal),
    () => growth(sizes, times * 2, over.signal),
  ];
  await Promise.race([moments[Math.floor(random() * moments.length)]?.(), ended]);
  const at = performance.now();
  child.kill(signal);
  return at;
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}

function endQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
