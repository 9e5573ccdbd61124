import { sortedTasks } from "../../teams/board.ts";
import { leadName, stateOf } from "../../teams/team-config.ts";
import { openTeamStore, type TeamPlaces } from "../../teams/team-store.ts";
import { findTeams } from "../teams/find-team.ts";
import type { SessionRow, TeamRow } from "./session-update.ts";

/** The teams that are led by one of these sessions, those with working members first. */
export function listTeams(places: TeamPlaces, sessions: readonly SessionRow[]): readonly TeamRow[] {
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
