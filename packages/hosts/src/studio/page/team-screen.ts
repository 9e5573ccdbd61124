import type { InspectedTeam } from "@retinue/core/inspection/inspection.ts";
import { type ComponentChild, h } from "preact";
import { ActBar } from "./act-bar.ts";
import { Badge, Table } from "./parts.ts";
import { agentLink, type Place, sessionLink } from "./route.ts";
import { Shell } from "./shell.ts";
import { type SessionState, useSession } from "./use-events.ts";

/** The team that a session leads: members, board and mail, live. */
export function TeamScreen({ place }: { place: Place }): ComponentChild {
  const { state, problem } = useSession(place);
  const overview = state?.session?.overview;
  const team = overview?.team;
  return h(
    Shell,
    { active: "teams", inbox: state?.inbox, problem },
    h(
      "div",
      { class: "wrap" },
      h(
        "nav",
        { "aria-label": "Breadcrumb" },
        h("a", { class: "link", href: sessionLink(place) }, overview?.session.title ?? "Session"),
      ),
      overview === undefined ? h("p", { role: "status" }, "Reading the team…") : null,
      overview !== undefined && team === undefined ? h("p", {}, "This session leads no team.") : null,
      team === undefined ? null : h(Team, { place, team, state }),
    ),
  );
}

function Team(props: { place: Place; team: InspectedTeam; state: SessionState | undefined }): ComponentChild {
  const { place, team, state } = props;
  const mail = team.events.filter(({ kind }) => kind === "mail");
  const changes = team.events.filter(({ kind }) => kind === "board");
  return h(
    "div",
    {},
    h("h1", {}, `Team ${team.name}`),
    h("h2", { id: "members" }, `Members (${team.members.length})`),
    h(
      "ul",
      { class: "rows", "aria-labelledby": "members" },
      team.members.map((member) => h(Member, { key: member.name, place, member, state })),
    ),
    h(ActBar, { place, agent: state?.session?.agents.get("main"), agentId: "main" }),
    h(Table, {
      caption: `Board (${team.tasks.length})`,
      heads: ["task", "what", "state", "owner", "blocked by"],
      rows: team.tasks.map(({ id, subject, status, owner = "", blockedBy }) => [
        `#${id}`,
        subject,
        status,
        owner,
        blockedBy.map((other) => `#${other}`).join(", "),
      ]),
    }),
    h(Events, { title: "Mail", events: mail }),
    h(Events, { title: "Changes of the board", events: changes }),
  );
}

function Member(props: {
  place: Place;
  member: InspectedTeam["members"][number];
  state: SessionState | undefined;
}): ComponentChild {
  const { place, member, state } = props;
  const agentId = member.agentId ?? (member.state === "lead" ? "main" : undefined);
  const writing = agentId === undefined ? undefined : state?.live.get(agentId)?.text;
  const unread = member.unread === 0 ? "" : `${member.unread} unread`;
  const facts = [member.agentType, unread].filter(Boolean).join(" · ");
  const name = h("span", { class: "name" }, member.name);
  return h(
    "li",
    { class: "row" },
    agentId === undefined ? name : h("a", { class: "link", href: agentLink(place, agentId) }, name),
    h(Badge, { state: member.state }),
    h("span", { class: "dim" }, facts),
    writing === undefined ? null : h("span", { class: "dim facts" }, `Writing: ${writing.slice(-200)}`),
  );
}

const maxEvents = 500;

/** The newest first. */
function Events({ title, events }: { title: string; events: InspectedTeam["events"] }): ComponentChild {
  return h(
    "section",
    { "aria-label": title },
    h("h2", {}, `${title} (${events.length})`),
    events.length > maxEvents ? h("p", { class: "dim" }, `The newest ${maxEvents} are shown.`) : null,
    h(
      "ol",
      { class: "conversation" },
      events
        .slice(-maxEvents)
        .toReversed()
        .map(({ at, text }, index) =>
          h(
            "li",
            { key: events.length - index },
            h("span", { class: "dim" }, `${new Date(at).toLocaleTimeString()} `),
            text,
          ),
        ),
    ),
  );
}
