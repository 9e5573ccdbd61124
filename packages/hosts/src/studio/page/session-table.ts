import { describeTokens } from "@retinue/core/inspection/describe-duration.ts";
import type { SessionRow } from "@retinue/core/kernel/live/session-update.ts";
import { type ComponentChild, h } from "preact";
import { counted, duration, folderOf, money, startOf } from "./figures.ts";
import { StateSign } from "./icons.ts";
import { sessionLink } from "./route.ts";

/** Waiting comes before what the files say. */
export function stateOf({ figures, isLive }: SessionRow): string {
  if (figures === undefined) return isLive ? "running" : "…";
  return figures.questions > 0 ? "waiting" : figures.state;
}

export function nowOf(row: SessionRow): string {
  const count = row.figures?.questions ?? 0;
  if (count > 0) return count === 1 ? "1 call waits for you" : `${count} calls wait for you`;
  return row.figures?.now ?? "";
}

export function matches(row: SessionRow, search: string): boolean {
  const { title, cwd = "", id, figures } = row;
  const text = [title, cwd, id, stateOf(row), figures?.branch, figures?.words, figures?.now]
    .join(" ")
    .toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

const heads = [
  ["Title", "ti"],
  ["Now or result", "c-res"],
  ["Folder, branch", "c-dir"],
  ["Agents", "num c-agents"],
  ["Calls", "num hide-t"],
  ["Tokens", "num hide-t"],
  ["Cost", "num c-cost"],
  ["Time", "num c-time"],
  ["Started", "num c-start"],
] as const;

interface TableProps {
  readonly rows: readonly SessionRow[];
  readonly chosen?: readonly SessionRow[];
  readonly onChoose?: (row: SessionRow) => void;
}

/** Sessions in the columns that are the same everywhere: state, name, what it does now, money, time. */
export function SessionTable({ rows, chosen = [], onChoose }: TableProps): ComponentChild {
  return h(
    "div",
    { class: "panel" },
    h(
      "table",
      { class: "sessions" },
      h("caption", { class: "vh" }, "Sessions"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, h("span", { class: "vh" }, "State")),
          heads.map(([label, name]) => h("th", { key: label, scope: "col", class: name }, label)),
          onChoose === undefined ? null : h("th", { scope: "col", class: "c-choose" }, "Compare"),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(Row, {
            key: `${row.project}/${row.id}`,
            row,
            isChosen: chosen.some(({ id }) => id === row.id),
            onChoose,
          }),
        ),
      ),
    ),
  );
}

function Row(props: {
  row: SessionRow;
  isChosen: boolean;
  onChoose?: (row: SessionRow) => void;
}): ComponentChild {
  const { row, isChosen, onChoose } = props;
  const { figures } = row;
  const state = stateOf(row);
  const place = folderOf(row.cwd, figures?.branch);
  const cost = figures === undefined ? "…" : money(figures.pricedCost, figures.cost !== undefined);
  const failed = figures?.failed ?? 0;
  return h(
    "tr",
    {},
    h("td", { class: "c-st" }, h(StateSign, { state })),
    h("td", { class: "ti" }, h("a", { href: sessionLink(row) }, row.title)),
    h("td", { class: `c-res of-${state}`, title: nowOf(row) }, nowOf(row)),
    h("td", { class: "dim mono c-dir clip" }, place),
    h(
      "td",
      { class: "num c-agents" },
      failed > 0 ? [h("span", { key: "f", class: "st-bad" }, `${failed} failed`), ", "] : null,
      figures?.agents ?? "",
    ),
    h("td", { class: "num hide-t" }, figures?.calls ?? ""),
    h("td", { class: "num hide-t" }, figures === undefined ? "" : describeTokens(figures.tokens)),
    h("td", { class: "num c-cost" }, cost),
    h("td", { class: "num c-time" }, duration(figures?.durationMs)),
    h("td", { class: "num dim c-start" }, startOf(figures?.startedAt ?? row.modified)),
    h(
      "td",
      { class: "c-sub dim" },
      [place, counted(figures?.agents ?? 1, "agent"), duration(figures?.durationMs)]
        .filter(Boolean)
        .join(", "),
    ),
    onChoose === undefined
      ? null
      : h(
          "td",
          { class: "c-choose" },
          h("input", {
            type: "checkbox",
            checked: isChosen,
            onChange: () => onChoose(row),
            "aria-label": `Compare ${row.title}`,
          }),
        ),
  );
}
