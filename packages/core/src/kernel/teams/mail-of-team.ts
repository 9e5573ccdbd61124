import type { InspectedTeam, Inspection } from "../../inspection/inspection.ts";
import { openBlockers, sortedTasks } from "../../teams/board.ts";
import { bodyOf, type Mail } from "../../teams/mail.ts";
import { leadName, stateOf } from "../../teams/team-config.ts";
import { loadMailHistory, openTeamStore, type TeamPlaces, type TeamStore } from "../../teams/team-store.ts";
import { findTeamOf } from "./find-team.ts";

/** An inspection with the team that its session led: members, board, and its mail and changes over time. */
export function withTeam(inspection: Inspection, places: TeamPlaces): Inspection {
  const name = findTeamOf(places, inspection.session.id);
  const config = name === undefined ? undefined : openTeamStore(places, name).config();
  if (name === undefined || config === undefined) return inspection;
  const store = openTeamStore(places, name, config.taskList);
  const board = store.board.read();
  const team: InspectedTeam = {
    name: config.name,
    members: config.members.map((member) => ({
      name: member.name,
      state: member.name === leadName ? "lead" : stateOf(member),
      agentId: member.taskId,
      agentType: member.agentType,
      unread: store.inbox(member.name).mail.filter(({ read }) => !read).length,
    })),
    tasks: sortedTasks(board).map((task) => ({ ...task, blockedBy: openBlockers(task, board) })),
    events: [
      ...mailEvents(
        store,
        config.members.map((member) => member.name),
      ),
      ...boardEvents(inspection),
    ].toSorted((a, b) => a.at - b.at),
  };
  return { ...inspection, team };
}

export interface MailLine {
  readonly to: string;
  readonly mail: Mail;
}

/** All mail of a team, oldest first. */
export function mailOfTeam(store: TeamStore, names: readonly string[]): readonly MailLine[] {
  return names
    .flatMap((to) => loadMailHistory(store, to).map((mail) => ({ to, mail })))
    .toSorted((a, b) => Date.parse(a.mail.timestamp) - Date.parse(b.mail.timestamp));
}

const maxText = 200;

function mailEvents(store: TeamStore, names: readonly string[]): InspectedTeam["events"] {
  return mailOfTeam(store, names).map(({ to, mail }) => ({
    kind: "mail",
    at: Date.parse(mail.timestamp) || 0,
    text: `${mail.from} → ${to}: ${(mail.summary ?? bodyOf(mail)).replace(/\s+/g, " ").slice(0, maxText)}`,
  }));
}

const boardTools: ReadonlySet<string> = new Set(["TaskCreate", "TaskUpdate"]);

/** What agents did to the board, as their transcripts have it. */
function boardEvents({ agents }: Inspection): InspectedTeam["events"] {
  return agents.flatMap((agent) => {
    const who = agent.name ?? (agent.id === "main" ? leadName : agent.id);
    return agent.steps.flatMap((step) => {
      if (step.type !== "call" || !boardTools.has(step.tool)) return [];
      const outcome = step.outcome === "ok" ? "" : ` (${step.reason ?? step.outcome})`;
      return [
        {
          kind: "board",
          at: step.at ?? 0,
          text: `${who} ${step.tool} ${step.about}${outcome}`.slice(0, maxText),
        },
      ];
    });
  });
}
