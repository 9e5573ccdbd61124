// @io
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { loadSettings } from "@retinue/config/settings/load-settings.ts";
import { createPaths, type Paths } from "@retinue/config/settings/paths.ts";
import { findRepositoryRoot } from "@retinue/config/settings/trust-store.ts";
import { findNamedInspected } from "../../inspection/find-named-inspected.ts";
import type { Inspection } from "../../inspection/inspection.ts";
import { createInspectionSource } from "../../inspection/inspection-source.ts";
import { findSession, findSessions, type SessionSummary } from "../../journal/find-sessions.ts";
import { loadRecording } from "../../replay/load-recording.ts";
import type { Recording } from "../../replay/recording.ts";
import { findGaps } from "../../replay/replay-recording.ts";
import { type Cleaned, cleanUp } from "../../tasks/cleanup.ts";
import { type CleanedTeams, cleanUpTeams } from "../teams/clean-up-teams.ts";
import { withTeam } from "../teams/mail-of-team.ts";
import { findTrust } from "./lock/judge-lock.ts";
import type { ProjectOptions } from "./project-facts.ts";

export type { Inspection } from "../../inspection/inspection.ts";
export type { SessionSummary } from "../../journal/find-sessions.ts";

/** What one session or agent did; read again from its files at each call. */
export interface SessionInspector {
  readonly sessionId: string;
  /** The folder of its transcript. */
  readonly transcripts: string;
  load(): Promise<Inspection>;
}

export interface CleanSessionsOptions {
  /** Nothing is removed; the answer says what would be. */
  readonly dryRun?: boolean;
  /** What was not touched for so many days; the setting `cleanupPeriodDays`, or 30, when left out. */
  readonly olderThanDays?: number;
  readonly signal?: AbortSignal;
}

export type CleanedSessions = Cleaned & { readonly teams: CleanedTeams };

/** A session as it can be replayed. */
export interface RecordedSession {
  readonly recording: Recording;
  readonly title: string;
  /** Why a replay of it would pass or fail for the wrong reason; empty where it is whole. */
  readonly gaps: readonly string[];
}

/** The stored sessions of a folder. */
export interface ProjectSessions {
  /** The newest first. */
  list(options?: { readonly limit?: number }): Promise<readonly SessionSummary[]>;
  /** One, by id, the beginning of it, or title. */
  get(written: string): Promise<SessionSummary>;
  /** What a session or an agent did; the newest session when nothing is named. */
  inspect(written?: string): Promise<SessionInspector>;
  /** A session as data for replays; the newest when nothing is named. */
  recording(written?: string): Promise<RecordedSession>;
  /** Removes sessions, teams and worktrees that were not touched for a time; never what is in use. */
  clean(options?: CleanSessionsOptions): Promise<CleanedSessions>;
}

type Place = Pick<ProjectOptions, "cwd" | "home" | "env" | "platform">;

export function projectSessions(paths: () => Promise<Paths>, place: () => Promise<Place>): ProjectSessions {
  const transcriptsOf = async (): Promise<string> => (await paths()).transcripts;
  return {
    list: async ({ limit } = {}) => findSessions(await transcriptsOf(), limit === undefined ? {} : { limit }),
    get: async (written) => findNamed(await transcriptsOf(), written),
    async inspect(written) {
      const places = await paths();
      const { transcripts } = places;
      const wanted = await findNamedInspected(transcripts, written);
      const source = createInspectionSource({ transcripts, ...wanted, now: Date.now });
      return {
        sessionId: wanted.sessionId,
        transcripts,
        load: async () => withTeam(await source.load(), places),
      };
    },
    recording: async (written) => loadRecorded(await transcriptsOf(), written),
    clean: async (options) => cleanHere(await place(), options),
  };
}

async function findNamed(transcripts: string, written: string): Promise<SessionSummary> {
  const found = await findSession(transcripts, written);
  if (found.type === "found") return found.session;
  const what = JSON.stringify(written);
  if (found.type === "ambiguous")
    throw new RetinueError("session-ambiguous", `Several sessions match ${what}.`, {
      advice: `Write more of the id: ${found.sessions.map(({ id, title }) => `${id.slice(0, 8)} (${title.slice(0, 40)})`).join(", ")}.`,
    });
  const near = found.nearest === undefined ? "" : ` Did you mean ${JSON.stringify(found.nearest)}?`;
  throw new RetinueError("session-missing", `There is no session ${what} in this folder.${near}`, {
    advice: "`retinue sessions list` lists them.",
  });
}

async function loadRecorded(transcripts: string, written: string | undefined): Promise<RecordedSession> {
  const recording = await loadRecording(transcripts, written);
  const { agents, damage = [], sessionId } = recording;
  const found = await findSession(transcripts, sessionId);
  const steps = agents.flatMap(({ runs }) => runs.flatMap((run) => run.steps));
  const answers = steps.filter((step) => step.type === "answer");
  const uncompared = answers.filter(({ request }) => request === undefined).length;
  const requests = { made: answers.length, same: answers.length - uncompared, uncompared };
  return {
    recording,
    title: found.type === "found" ? found.session.title : "session",
    gaps: findGaps({ damage, requests }),
  };
}

export const defaultDays = 30;

async function cleanHere(
  { cwd, home, env: environment, platform }: Place,
  { dryRun = false, olderThanDays, signal = new AbortController().signal }: CleanSessionsOptions = {},
): Promise<CleanedSessions> {
  const repositoryRoot = await findRepositoryRoot(cwd);
  const place = { cwd, home, environment, platform };
  const paths = createPaths({ ...place, ...(repositoryRoot === undefined ? {} : { repositoryRoot }) });
  const settings = await loadSettings({ paths, trusted: false });
  const wanted = {
    ...paths,
    olderThanDays: olderThanDays ?? settings.settings.plain.cleanupPeriodDays ?? defaultDays,
    now: Date.now(),
    dryRun,
    requested: true,
    environment,
    trusted: (await findTrust({ cwd, home, env: environment, platform })).trusted,
    signal,
    limit: Number.POSITIVE_INFINITY,
  };
  return { ...(await cleanUp(wanted)), teams: await cleanUpTeams(wanted) };
}
