// @io

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { createInspectionSource, type InspectionSource } from "../../inspection/inspection-source.ts";
import { findSessions } from "../../journal/find-sessions.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { sortedTasks } from "../../teams/board.ts";
import { leadName, stateOf } from "../../teams/team-config.ts";
import { openTeamStore, type TeamPlaces } from "../../teams/team-store.ts";
import { readApprovals } from "../approvals/find-approvals.ts";
import { findTeams } from "../teams/find-team.ts";
import { type FollowOptions, teamFolders } from "./follow-session.ts";
import { sessionFigures } from "./session-figures.ts";
import type { SessionFigures, SessionList, SessionRow, TeamRow } from "./session-update.ts";
import { createRefresher, watchFolders } from "./watch-folders.ts";

/** Where the sessions are that are served. */
export interface StudioScope {
  /** The folder that holds one folder of transcripts per project. */
  readonly projects: string;
  /** The only project that is served; absent where all of them are. */
  readonly project?: string;
  /** What is served is a copy of a store. */
  readonly isStore?: boolean;
}

const liveMs = 2000;
const maxListed = 500;
const maxMeasured = 100;

/** Figures are read once for each state of a session's file, for all readers. */
export type FiguresCache = Map<string, MeasuredSession>;

interface MeasuredSession {
  readonly key: string;
  readonly figures: SessionFigures;
  /** Kept while the session runs, to read only what was added. */
  readonly source?: InspectionSource;
}

export async function findProjects({ projects, project }: StudioScope): Promise<readonly string[]> {
  if (project !== undefined) return [project];
  const entries = await readdir(projects, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Sends the list of sessions, running ones first, then again with the figures of each, and after every change. */
export function followSessions(
  scope: StudioScope,
  {
    send,
    onError,
    cache,
    teams,
  }: FollowOptions<SessionList> & { readonly cache: FiguresCache; readonly teams?: TeamPlaces | undefined },
): () => void {
  let isClosed = false;
  let hasLive = false;
  const refresher = createRefresher(async () => {
    const names = await findProjects(scope);
    watch.add(names.map((name) => ({ path: join(scope.projects, name) })));
    const sessions = await listSessions(scope.projects, names, cache);
    hasLive = sessions.some(({ isLive }) => isLive);
    if (teams !== undefined) watch.add(findTeams(teams).flatMap(({ name }) => teamFolders(teams, name)));
    const list = (rows: readonly SessionRow[]): SessionList => ({
      scope: nameOf(scope),
      sessions: rows,
      ...(teams === undefined ? {} : { teams: listTeams(teams, rows) }),
    });
    send(list(sessions));
    let isNew = false;
    for (const row of sessions.slice(0, maxMeasured)) {
      if (isClosed) return;
      isNew = (await measure(scope.projects, row, cache)) || isNew;
    }
    if (isNew) {
      send(list(sessions.map((row) => withFigures(row, cache))));
    }
  }, onError);
  const watch = watchFolders(
    [{ path: scope.projects }, ...(teams === undefined ? [] : [{ path: teams.teams }])],
    refresher.request,
  );
  // Children write below the folder that is watched, and a process that is killed writes nothing.
  const timer = setInterval(() => {
    if (hasLive) refresher.request();
  }, liveMs).unref();
  refresher.request();
  return () => {
    isClosed = true;
    clearInterval(timer);
    watch.close();
    refresher.close();
  };
}

function nameOf({ project, isStore }: StudioScope): SessionList["scope"] {
  if (isStore === true) return "store";
  return project === undefined ? "all" : "folder";
}

async function listSessions(
  projects: string,
  names: readonly string[],
  cache: FiguresCache,
): Promise<readonly SessionRow[]> {
  const lists = await Promise.all(
    names.map(async (project) => {
      const found = await findSessions(join(projects, project), { limit: maxListed });
      return found.map(({ id, title, modified, cwd, file }) => {
        const row = { project, id, title, modified, isLive: hasLiveOwner(file) };
        return withFigures(cwd === undefined ? row : { ...row, cwd }, cache);
      });
    }),
  );
  return lists
    .flat()
    .toSorted((a, b) => Number(b.isLive) - Number(a.isLive) || b.modified - a.modified)
    .slice(0, maxListed);
}

function withFigures(row: SessionRow, cache: FiguresCache): SessionRow {
  const known = cache.get(`${row.project}/${row.id}`);
  return known === undefined ? row : { ...row, figures: known.figures };
}

/** Whether there is something new. Children of a running session write files of their own, so that is read each time. */
async function measure(projects: string, row: SessionRow, cache: FiguresCache): Promise<boolean> {
  const name = `${row.project}/${row.id}`;
  const midnight = new Date().setHours(0, 0, 0, 0);
  const key = `${row.modified} ${row.isLive} ${midnight}`;
  if (!row.isLive && cache.get(name)?.key === key) return false;
  const transcripts = join(projects, row.project);
  const source =
    cache.get(name)?.source ?? createInspectionSource({ transcripts, sessionId: row.id, now: Date.now });
  const inspection = await source.load().catch(() => undefined);
  if (inspection === undefined) return false;
  const { approvals } = sessionFiles(transcripts, row.id);
  const open = readApprovals(approvals, { now: Date.now }).filter(({ state }) => state === "waiting");
  const figures = sessionFigures(
    inspection,
    midnight,
    open.map(({ question }) => question),
  );
  cache.set(name, { key, figures, ...(row.isLive ? { source } : {}) });
  return true;
}

/** The teams that are led by one of these sessions, those with working members first. */
function listTeams(places: TeamPlaces, sessions: readonly SessionRow[]): readonly TeamRow[] {
  const rows = findTeams(places).flatMap(({ name, config }): readonly TeamRow[] => {
    const session = sessions.find(({ id }) => id === config?.leadSessionId);
    if (config === undefined || session === undefined) return [];
    const store = openTeamStore(places, name, config.taskList);
    const tasks = sortedTasks(store.board.read());
    const members = config.members.filter((member) => member.name !== leadName);
    const unread = config.members.map(
      (member) => store.inbox(member.name).mail.filter(({ read }) => !read).length,
    );
    return [
      {
        name: config.name,
        project: session.project,
        sessionId: session.id,
        title: session.title,
        members: members.length,
        working: members.filter((member) => stateOf(member) === "working").length,
        tasks: tasks.length,
        completed: tasks.filter(({ status }) => status === "completed").length,
        unread: unread.reduce((sum, count) => sum + count, 0),
        createdAt: config.createdAt,
      },
    ];
  });
  return rows.toSorted((a, b) => Number(b.working > 0) - Number(a.working > 0) || b.createdAt - a.createdAt);
}
