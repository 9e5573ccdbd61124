import type { TeamRow } from "@retinue/core/kernel/live/session-update.ts";
import { type ComponentChild, h } from "preact";
import { useContext } from "preact/hooks";
import { counted, startOf } from "./format.ts";
import { StateSign } from "./icons.ts";
import { teamLink } from "./route.ts";
import { Search, Shell } from "./shell.ts";
import { useList } from "./use-events.ts";

/** The teams that sessions lead, those at work first. */
export function TeamsScreen(): ComponentChild {
  const { state, problem } = useList();
  const { text } = useContext(Search);
  const all = state?.list?.teams ?? [];
  const rows = all.filter((row) => matches(row, text));
  return h(
    Shell,
    { active: "teams", inbox: state?.inbox, problem },
    h(
      "div",
      { class: "wrap" },
      h(
        "div",
        { class: "sh" },
        h("h1", {}, "Teams"),
        h("span", { class: "dim" }, `${rows.length} of ${all.length}`),
      ),
      state?.list === undefined ? h("p", { role: "status", class: "dim" }, "Reading teams…") : null,
      state?.list !== undefined && rows.length === 0 ? h(NoTeam, { isEmpty: all.length === 0 }) : null,
      rows.length === 0 ? null : h(TeamTable, { rows }),
    ),
  );
}

function matches({ name, title }: TeamRow, search: string): boolean {
  const text = `${name} ${title}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

const heads = [
  ["Team", "ti"],
  ["Session", "c-res"],
  ["Members", "num"],
  ["Tasks done", "num"],
  ["Unread", "num hide-s"],
  ["Created", "num hide-s"],
] as const;

function TeamTable({ rows }: { rows: readonly TeamRow[] }): ComponentChild {
  return h(
    "div",
    { class: "panel" },
    h(
      "table",
      { class: "sessions teams" },
      h("caption", { class: "vh" }, "Teams"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, h("span", { class: "vh" }, "State")),
          heads.map(([label, name]) => h("th", { key: label, scope: "col", class: name }, label)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) => {
          const { project, sessionId, working } = row;
          const done = row.tasks > 0 && row.completed === row.tasks;
          const idle = done ? "completed" : "stopped";
          return h(
            "tr",
            { key: `${project}/${row.name}` },
            h("td", { class: "c-st" }, h(StateSign, { state: working > 0 ? "running" : idle })),
            h("td", { class: "ti" }, h("a", { href: teamLink({ project, id: sessionId }) }, row.name)),
            h("td", { class: "c-res", title: row.title }, row.title),
            h("td", { class: "num" }, working > 0 ? `${working} of ${row.members} at work` : row.members),
            h("td", { class: "num" }, `${row.completed} of ${row.tasks}`),
            h("td", { class: "num hide-s" }, row.unread),
            h("td", { class: "num dim hide-s" }, startOf(row.createdAt)),
            h("td", { class: "c-sub dim" }, `${row.title} · ${counted(row.unread, "unread message")}`),
          );
        }),
      ),
    ),
  );
}

function NoTeam({ isEmpty }: { isEmpty: boolean }): ComponentChild {
  if (!isEmpty) return h("p", { class: "panel empty" }, "No team matches. Clear the search.");
  return h(
    "div",
    { class: "panel empty" },
    h("h2", {}, "No team here"),
    h(
      "p",
      {},
      "A session that creates a team with ",
      h("code", {}, "TeamCreate"),
      " appears here with its members and tasks.",
    ),
  );
}
