import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { checkTeam, openTeamOf, type TeamCount, type TeamPlace } from "./check-team.ts";
import { findMarked, markVariable } from "./marked-processes.ts";
import { startProgram } from "./start-program.ts";
import type { TeamSize } from "./team-script.ts";
import type { TortureProvider } from "./torture-provider.ts";

export interface TeamTorture {
  readonly provider: Pick<TortureProvider, "url">;
  readonly size: TeamSize;
  /** Resolves when something is to be killed next, with what; `nothing` lets the team finish. */
  readonly nextKill: (signal: AbortSignal) => Promise<TeamVictim>;
  readonly onKill: (victim: TeamVictim) => void;
}

/** A member is named by its number. */
export type TeamVictim = "lead" | "nothing" | number;

/** A lead with members in processes, killed and continued until the kills end. */
export async function torturedTeam(options: TeamTorture): Promise<TeamCount> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-tortured-team-")));
  try {
    const count = await runInFolder(createTeamPlace(root), options);
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
    return count;
  } catch (error) {
    // What broke a promise is worth a look.
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${reason} (kept in ${root})`, { cause: error });
  }
}

interface Place extends TeamPlace {
  /** What all processes of this team have in their environment. */
  readonly mark: string;
}

function createTeamPlace(root: string): Place {
  const [home, project] = [join(root, "home"), join(root, "project")];
  mkdirSync(join(home, ".claude"), { recursive: true });
  mkdirSync(project);
  const settings = { teams: true, teammateMode: "process" };
  writeFileSync(join(home, ".claude/settings.json"), JSON.stringify(settings));
  return { home, project, sessionId: randomUUID(), mark: randomUUID() };
}

async function runInFolder(place: Place, options: TeamTorture): Promise<TeamCount> {
  for (let start = 0; ; start += 1) {
    if (start > 0) await allGone(place);
    // A lead that was killed before it wrote anything is started again as a new one.
    const session = hasStarted(place) ? ["--continue"] : ["--session-id", place.sessionId];
    const program = startProgram(place, session, options.provider.url, {
      environment: { [markVariable]: place.mark, RETINUE_LOCAL_MODELS: "0" },
    });
    const over = new AbortController();
    void program.ended.then(() => over.abort());
    await killUntil(over.signal, program.process, { place, ...options });
    const { code, signal, output } = await program.ended;
    checkTeam(place);
    if (signal === "SIGKILL") continue;
    if (code !== 0) throw new Error(`The lead ended with ${code ?? signal}: ${output}`);
    await allGone(place);
    try {
      return checkTeam(place, options.size);
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : error} The lead said: ${output}`);
    }
  }
}

function hasStarted({ home, project, sessionId }: Place): boolean {
  const { transcripts } = createPaths({ cwd: project, home, environment: {}, platform: process.platform });
  // A lead that was killed before its first line has nothing to continue.
  const file = join(transcripts, `${sessionId}.jsonl`);
  return existsSync(file) && statSync(file).size > 0;
}

async function killUntil(
  over: AbortSignal,
  lead: { kill(signal: "SIGKILL"): boolean },
  { place, nextKill, onKill }: TeamTorture & { readonly place: Place },
): Promise<void> {
  while (!over.aborted) {
    const victim = await nextKill(over);
    if (over.aborted || victim === "nothing") return;
    if (victim === "lead") {
      lead.kill("SIGKILL");
      return onKill(victim);
    }
    if (killMember(place, victim)) onKill(victim);
  }
}

/** A number in the config may belong to another process by now, so only those of this team are killed. */
function killMember(place: Place, number: number): boolean {
  const member = openTeamOf(place)
    .config()
    ?.members.find(({ name }) => name === `m${number}`);
  const found = findMarked(place.mark).find(({ pid }) => pid === member?.pid);
  if (found === undefined) return false;
  try {
    return process.kill(found.pid, "SIGKILL");
  } catch {
    return false;
  }
}

const maxGoneMs = 15_000;

/** A process that ends takes its own processes along. */
async function allGone({ mark }: Place): Promise<void> {
  const until = Date.now() + maxGoneMs;
  let left = findMarked(mark);
  while (left.length > 0) {
    if (Date.now() > until)
      throw new Error(`These still run: ${left.map(({ pid, command }) => `${pid} ${command}`).join("; ")}`);
    await wait(20);
    left = findMarked(mark);
  }
}
