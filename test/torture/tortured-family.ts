import { randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { checkFamily, checkFinished, type FamilyPlace, type FamilyState } from "./check-family.ts";
import { checkHooks, type HookCount, openMark } from "./check-hooks.ts";
import { createKeeper, listLeftovers, listTranscripts, newestOf } from "./kept-files.ts";
import { growth, type RunningProgram, startProgram } from "./start-program.ts";
import { tearLastLine } from "./tear-last-line.ts";
import type { TortureProvider } from "./torture-provider.ts";
import { isShort } from "./torture-script.ts";

/** When the process is killed; `recovery` is when it settles what the kill before has left. */
export const familyMoments = ["start", "any", "stream", "tool", "transcript", "hook", "recovery"] as const;
export type FamilyMoment = (typeof familyMoments)[number];

export interface FamilyTorture {
  readonly provider: TortureProvider;
  readonly random: () => number;
  /** Asked before each start; false lets the run continue to its end. */
  readonly mayKill: () => boolean;
  readonly report: (kill: FamilyKill) => void;
  /** When it is killed next; absent means at any moment. */
  readonly nextMoment?: () => FamilyMoment | undefined;
}

export interface FamilyKill extends FamilyState {
  readonly moment: FamilyMoment;
}

/** A main agent with children in the background, killed and taken up again until the kills end. */
export async function torturedFamily(options: FamilyTorture): Promise<HookCount> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-family-")));
  try {
    const end = await runInFolder(createPlace(root), options);
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
    return end;
  } catch (error) {
    // What broke a promise is worth a look.
    throw new Error(`${error instanceof Error ? error.message : String(error)} (kept in ${root})`, {
      cause: error,
    });
  }
}

async function runInFolder(place: Place, options: FamilyTorture): Promise<HookCount> {
  const keeper = createKeeper();
  let state = checkFamily(place);
  while (true) {
    const session = state.hasStarted ? ["--resume", place.sessionId] : ["--session-id", place.sessionId];
    const program = startProgram(place, session, options.provider.url);
    const moment = options.mayKill() ? (options.nextMoment?.() ?? pick(options.random)) : undefined;
    if (moment !== undefined) await killAt(moment, program, { place, ...options });
    const { code, signal, output } = await program.ended;
    keeper.check(listTranscripts(place.transcript));
    const next = checkFamily(place);
    const lost = [...state.done].find((deed) => !next.done.has(deed));
    if (lost !== undefined) throw new Error(`The result of ${lost} was in a transcript and is gone.`);
    state = next;
    if (signal === "SIGKILL" && moment !== undefined) {
      noteTears(place, state);
      if (options.random() < tearShare) state = tearNewest(place, keeper, options.random);
      noteUnsure(place, state);
      options.report({ ...state, moment });
      continue;
    }
    if (code !== 0) throw new Error(`The program ended with ${code ?? signal}: ${output}`);
    checkFinished(state);
    const left = listLeftovers(place.transcript);
    if (left.length > 0) throw new Error(`These were left behind: ${left.join(", ")}`);
    return checkAllHooks(place, state);
  }
}

/** A kill can cut a long write in half by itself; each such line is counted once, however long the file stays so. */
function noteTears(place: Place, { torn }: FamilyState): void {
  for (const one of torn.filter((each) => !place.tornBySystem.has(each) && !place.tornHere.has(each))) {
    place.tornBySystem.add(one);
    place.tears += 1;
  }
}

/** The part of the kills after which the line that was written last is torn too. */
const tearShare = 0.25;

function tearNewest(
  place: Place,
  keeper: ReturnType<typeof createKeeper>,
  random: () => number,
): FamilyState {
  const file = newestOf(listTranscripts(place.transcript));
  // Hooks run behind such a line only when it is whole, so no crash leaves a torn one whose hook has run.
  if (file !== undefined && !endsWithMark(file)) {
    place.tears += 1;
    for (const id of tearLastLine(file, random)) place.tornCalls.add(id);
    keeper.forget(file);
  }
  const state = checkFamily(place);
  for (const one of state.torn) place.tornHere.add(one);
  return state;
}

function endsWithMark(file: string): boolean {
  return readFileSync(file, "utf8").trimEnd().split("\n").at(-1)?.includes('"retinue-told"') === true;
}

function noteUnsure({ unsure }: Place, { members }: FamilyState): void {
  for (const { agentId, records } of members) {
    const mark = openMark(records);
    if (mark !== undefined) unsure.set(agentId, (unsure.get(agentId) ?? new Set()).add(mark));
  }
}

function checkAllHooks({ hookLog, unsure }: Place, { members }: FamilyState): HookCount {
  const counts = members.map(({ agentId, records }) =>
    checkHooks(records, { agentId, log: hookLog, unsure: unsure.get(agentId) ?? new Set() }),
  );
  return {
    starts: counts.reduce((sum, { starts }) => sum + starts, 0),
    unheard: counts.reduce((sum, { unheard }) => sum + unheard, 0),
  };
}

interface Place extends FamilyPlace {
  readonly home: string;
  readonly sessionId: string;
  readonly hookLog: string;
  tears: number;
  readonly tornCalls: Set<string>;
  /** Files with their lengths, torn by a kill and torn by the torture itself. */
  readonly tornBySystem: Set<string>;
  readonly tornHere: Set<string>;
  /** By agent, the marks that were the last word before a kill. */
  readonly unsure: Map<string, Set<number>>;
}

function createPlace(root: string): Place {
  const [home, project] = [join(root, "home"), join(root, "project")];
  const hookLog = join(root, "hooks.log");
  mkdirSync(join(home, ".claude"), { recursive: true });
  mkdirSync(project);
  const report = (event: string) => {
    const command = `id=$(sed -n 's/.*"agent_id":"\\([^"]*\\)".*/\\1/p'); echo "${event} $id" >> '${hookLog}'`;
    return [{ hooks: [{ type: "command", command }] }];
  };
  const hooks = { SubagentStart: report("SubagentStart"), SubagentStop: report("SubagentStop") };
  writeFileSync(
    join(home, ".claude/settings.json"),
    JSON.stringify({ resumeInterruptedAgents: true, hooks }),
  );
  const sessionId = randomUUID();
  const { transcripts } = createPaths({ cwd: project, home, environment: {}, platform: process.platform });
  const transcript = join(transcripts, `${sessionId}.jsonl`);
  const marks = {
    tornCalls: new Set<string>(),
    tornBySystem: new Set<string>(),
    tornHere: new Set<string>(),
    unsure: new Map(),
  };
  return { home, project, sessionId, transcript, hookLog, tears: 0, ...marks };
}

function pick(random: () => number): FamilyMoment {
  return familyMoments[Math.floor(random() * familyMoments.length)] ?? "any";
}

async function killAt(
  moment: FamilyMoment,
  { process: child, ended }: RunningProgram,
  { place, provider, random }: FamilyTorture & { readonly place: Place },
): Promise<void> {
  const over = new AbortController();
  void ended.then(() => over.abort());
  const times = Math.floor(random() * (isShort ? 8 : 30));
  const sizes = (): number => listTranscripts(place.transcript).reduce((sum, file) => sum + sizeOf(file), 0);
  const reached = async (): Promise<void> => {
    switch (moment) {
      case "start":
        return wait(random() * 500);
      case "any":
        return wait(300 + random() * 1500);
      case "stream":
        await provider.nextAnswer(times);
        return wait(random() * 12);
      case "tool":
        return growth(() => sizeOf(join(place.project, "log.txt")), times, over.signal);
      case "transcript":
        return growth(sizes, times * 3, over.signal);
      case "hook":
        return growth(() => sizeOf(place.hookLog), Math.floor(times / 3), over.signal);
      case "recovery":
        await growth(sizes, Math.floor(random() * 12), over.signal);
        return wait(random() * 10);
    }
  };
  await Promise.race([reached(), ended]);
  child.kill("SIGKILL");
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}
