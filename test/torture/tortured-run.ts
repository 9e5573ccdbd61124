import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { type CheckedPlace, checkSession, type SessionState } from "./check-session.ts";
import { growth, type RunningProgram, startProgram } from "./start-program.ts";
import { tearLastLine } from "./tear-last-line.ts";
import type { TortureProvider } from "./torture-provider.ts";
import { plan } from "./torture-script.ts";

/** When a run is killed: some time after its start, or in the middle of something. */
export const killMoments = ["start", "any", "stream", "tool", "transcript"] as const;
export type KillMoment = (typeof killMoments)[number];

export interface TortureOptions {
  readonly provider: TortureProvider;
  readonly random: () => number;
  /** Asked before each start; false lets the run continue to its end. */
  readonly mayKill: () => boolean;
  readonly report: (kill: KillReport) => void;
  /** When it is killed next; absent means at any moment. */
  readonly nextMoment?: () => KillMoment | undefined;
}

export interface KillReport extends SessionState {
  readonly moment: KillMoment;
  /** How many calls this kill cut off. */
  readonly cutOff: number;
}

/** One run of many steps, killed and resumed until the kills end. Throws when a promise is broken. */
export async function torturedRun(options: TortureOptions): Promise<void> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-torture-")));
  try {
    await runInFolder(root, options);
  } finally {
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function runInFolder(root: string, options: TortureOptions): Promise<void> {
  const place = createPlace(root);
  let state = await checkSession(place);
  while (true) {
    const child = start(place, state.lines > 0, options.provider.url);
    const moment = options.mayKill() ? (options.nextMoment?.() ?? pick(options.random)) : undefined;
    if (moment !== undefined) await killAt(moment, child, { place, ...options });
    const { code, signal, output } = await child.ended;
    const before = state;
    const next = await checkSession(place);
    const lost = [...state.done].find((deed) => !next.done.has(deed));
    if (lost !== undefined) throw new Error(`The result of ${lost} was in the transcript and is gone.`);
    state = next;
    if (signal === "SIGKILL" && moment !== undefined) {
      // A kill can cut a long write in half by itself.
      if (state.torn) place.tears += 1;
      if (options.random() < tearShare) {
        place.tears += 1;
        for (const id of tearLastLine(place.transcript, options.random)) place.tornCalls.add(id);
        state = await checkSession(place);
      }
      options.report({ ...state, moment, cutOff: state.interrupted - before.interrupted });
      continue;
    }
    if (code !== 0 || !output.includes("ALL DONE"))
      throw new Error(`The program ended with ${code ?? signal}: ${output}`);
    const missing = plan.flat().find(({ name }) => !state.done.has(name));
    if (missing !== undefined) throw new Error(`${missing.name} was never done.`);
    return;
  }
}

/** The part of the kills after which the last line is torn too. */
const tearShare = 0.3;

interface Place extends CheckedPlace {
  readonly home: string;
  readonly sessionId: string;
  tears: number;
  readonly tornCalls: Set<string>;
}

function createPlace(root: string): Place {
  const home = join(root, "home");
  const project = join(root, "project");
  mkdirSync(home);
  mkdirSync(project);
  const sessionId = randomUUID();
  const { transcripts } = createPaths({ cwd: project, home, environment: {}, platform: process.platform });
  const transcript = join(transcripts, `${sessionId}.jsonl`);
  return { home, project, sessionId, transcript, tears: 0, tornCalls: new Set() };
}

/** A session of which nothing was written down is started again under its id; every other one is resumed. */
function start(place: Place, isStarted: boolean, url: string): RunningProgram {
  const session = isStarted ? ["--resume", place.sessionId] : ["--session-id", place.sessionId];
  return startProgram(place, session, url);
}

function pick(random: () => number): KillMoment {
  return killMoments[Math.floor(random() * killMoments.length)] ?? "any";
}

async function killAt(
  moment: KillMoment,
  { process: child, ended }: RunningProgram,
  { place, provider, random }: TortureOptions & { readonly place: Place },
): Promise<void> {
  const over = new AbortController();
  void ended.then(() => over.abort());
  const turns = Math.floor(random() * 8);
  const reached = async (): Promise<void> => {
    switch (moment) {
      case "start":
        return wait(random() * 250);
      case "any":
        return wait(100 + random() * 900);
      case "stream":
        await provider.nextAnswer(turns);
        return wait(random() * 12);
      case "tool":
        return growth(() => sizeOf(join(place.project, "log.txt")), turns, over.signal);
      case "transcript":
        return growth(() => sizeOf(place.transcript), turns * 2, over.signal);
    }
  };
  await Promise.race([reached(), ended]);
  child.kill("SIGKILL");
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}
