import type { InspectedTeam } from "@retinue/core/inspection/inspection.ts";
import { type ComponentChild, h } from "preact";
import { ActBar } from "./act-bar.ts";
import { timeOfDay } from "./format.ts";
import { StateSign } from "./icons.ts";
import { Badge, Breadcrumb, Facts, Table } from "./parts.ts";
import { agentLink, type Place } from "./route.ts";
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
      h(Breadcrumb, { place, title: overview?.session.title, here: `Team ${team?.name ?? ""}`.trim() }),
      overview === undefined && problem === undefined
        ? h("p", { role: "status", class: "dim" }, "Reading the team…")
        : null,
      overview !== undefined && team === undefined
        ? h("p", { class: "panel empty" }, "This session leads no team.")
        : null,
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
    h(
      "div",
      { class: "title" },
      h("h1", {}, `Team ${team.name}`),
      h(Facts, {
        facts: [
          ["Members", String(team.members.length)],
          [
            "Tasks done",
            `${team.tasks.filter(({ status }) => status === "completed").length} of ${team.tasks.length}`,
          ],
          ["Unread", String(team.members.reduce((sum, { unread }) => sum + unread, 0))],
        ],
      }),
    ),
    h("div", { class: "sh" }, h("h2", { id: "members" }, `Members (${team.members.length})`)),
    h(
      "div",
      { class: "panel" },
      h(
        "ul",
        { class: "rows", "aria-labelledby": "members" },
        team.members.map((member) => h(Member, { key: member.name, place, member, state })),
      ),
      h(ActBar, { place, agent: state?.session?.agents.get("main"), agentId: "main" }),
    ),
    h(Table, {
      caption: `Board (${team.tasks.length})`,
      heads: ["Task", "What", "State", "Owner", "Blocked by"],
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
    h(StateSign, { state: member.state === "working" ? "running" : member.state }),
    agentId === undefined ? name : h("a", { class: "up", href: agentLink(place, agentId) }, name),
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
    events.length === 0 ? h("p", { class: "dim" }, "Nothing yet.") : null,
    events.length > maxEvents ? h("p", { class: "dim" }, `The newest ${maxEvents} are shown.`) : null,
    h(
      "ol",
      { class: events.length === 0 ? "conversation" : "conversation panel mail" },
      events
        .slice(-maxEvents)
        .toReversed()
        .map(({ at, text }, index) =>
          h("li", { key: events.length - index }, h("span", { class: "dim" }, `${timeOfDay(at)} `), text),
        ),
    ),
  );
}
