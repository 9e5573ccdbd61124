import { describeCost, describeTokens } from "@retinue/core/inspection/describe-duration.ts";
import type { SessionList, SessionRow } from "@retinue/core/kernel/live/session-update.ts";
import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import { ago, Badge, Problem } from "./parts.ts";
import { compareLink, sessionLink } from "./route.ts";
import { useEvents } from "./use-events.ts";
import { VirtualList } from "./virtual-list.ts";

const titles = {
  all: "Sessions of all folders",
  folder: "Sessions of this folder",
  store: "Sessions of the store",
} as const;

/** All sessions, running ones first. */
export function SessionsScreen(): ComponentChild {
  const { state, problem } = useEvents<SessionList, SessionList>("api/sessions", {}, (_, list) => list);
  const [search, setSearch] = useState("");
  const [chosen, setChosen] = useState<readonly SessionRow[]>([]);
  const found = (state?.sessions ?? []).filter((row) => matches(row, search));
  const toggle = (row: SessionRow): void =>
    setChosen((before) =>
      before.some(({ id }) => id === row.id)
        ? before.filter(({ id }) => id !== row.id)
        : [...before.slice(-1), row],
    );
  const [left, right] = chosen;
  return h(
    "main",
    {},
    h("h1", {}, titles[state?.scope ?? "folder"]),
    h(Problem, { text: problem }),
    h(
      "div",
      { class: "bar" },
      h(
        "label",
        {},
        "Search ",
        h("input", {
          type: "search",
          value: search,
          placeholder: "title, folder, id or state",
          onInput: (event: Event) => setSearch((event.target as HTMLInputElement).value),
        }),
      ),
      left !== undefined && right !== undefined
        ? h("a", { class: "button", href: compareLink(left, right) }, "Compare the two chosen sessions")
        : h("span", { class: "soft" }, "Choose two sessions to compare them."),
    ),
    state === undefined ? h("p", { role: "status" }, "Reading sessions…") : null,
    state !== undefined && found.length === 0 ? h("p", {}, "No session matches.") : null,
    h(VirtualList<SessionRow>, {
      items: found,
      label: "Sessions",
      rowHeight: 76,
      keyOf: ({ project, id }) => `${project}/${id}`,
      row: (row) =>
        h(Row, { row, isChosen: chosen.some(({ id }) => id === row.id), onChoose: () => toggle(row) }),
    }),
  );
}

function matches({ title, cwd = "", id, figures }: SessionRow, search: string): boolean {
  const text = `${title} ${cwd} ${id} ${figures?.state ?? ""}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function Row(props: { row: SessionRow; isChosen: boolean; onChoose: () => void }): ComponentChild {
  const { row, isChosen, onChoose } = props;
  const { figures } = row;
  const cost = figures === undefined ? "…" : describeCost(figures.cost ?? figures.pricedCost);
  const facts = [
    cost,
    ...(figures === undefined
      ? []
      : [
          `${describeTokens(figures.tokens)} tokens`,
          `${figures.agents} ${figures.agents === 1 ? "agent" : "agents"}`,
          ...(figures.running > 0 ? [`${figures.running} running`] : []),
        ]),
    ago(row.modified),
    ...(row.cwd === undefined ? [] : [row.cwd]),
  ];
  return h(
    "div",
    { class: "row session" },
    h("input", {
      type: "checkbox",
      checked: isChosen,
      onChange: onChoose,
      "aria-label": `Compare ${row.title}`,
    }),
    h(
      "a",
      { href: sessionLink(row) },
      h("span", { class: "name" }, row.title),
      h(Badge, { state: figures?.state ?? (row.isLive ? "running" : "…") }),
      figures !== undefined && figures.failed > 0
        ? h("span", { class: "badge failed" }, `${figures.failed} failed`)
        : null,
      figures !== undefined && figures.questions > 0
        ? h("span", { class: "badge refused" }, `${figures.questions} waiting for an answer`)
        : null,
      h("span", { class: "soft facts" }, facts.join(" · ")),
    ),
  );
}
