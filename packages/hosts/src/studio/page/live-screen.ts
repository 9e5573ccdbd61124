import { describeTokens } from "@retinue/core/inspection/describe-duration.ts";
import type { DaySums, InboxQuestion, SessionRow } from "@retinue/core/kernel/live/session-update.ts";
import { type ComponentChild, h } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { counted, duration, folderOf, money, plainLine, startOf, withoutFolder } from "./format.ts";
import { Icon, StateSign } from "./icons.ts";
import { compareLink, sessionLink } from "./route.ts";
import { Search, Shell } from "./shell.ts";
import { MiniTimeline } from "./timeline.ts";
import { exported, useList } from "./use-events.ts";

const maxRecent = 50;

/** Who needs me, what runs, what was. */
export function LiveScreen(): ComponentChild {
  const { state, problem } = useList();
  const { text } = useContext(Search);
  const all = state?.list?.sessions;
  const found = (all ?? []).filter((row) => matches(row, text));
  // Waiting first, once: what is shown stays in its place while values change.
  const rows = found.filter(({ isLive }) => isLive);
  const [known, setKnown] = useState<readonly string[]>([]);
  const fresh = rows.filter(({ id }) => !known.includes(id));
  const sorted = fresh.toSorted(
    (a, b) => Number(stateOf(b) === "waiting") - Number(stateOf(a) === "waiting"),
  );
  const order = [...known, ...sorted.map(({ id }) => id)];
  const isReady = rows.every(({ figures }) => figures !== undefined);
  useEffect(() => {
    if (isReady && fresh.length > 0) setKnown(order);
  });
  const running = rows.toSorted((a, b) => order.indexOf(a.id) - order.indexOf(b.id));
  const agents = running.reduce((sum, { figures }) => sum + (figures?.running ?? 0), 0);
  return h(
    Shell,
    { active: "live", inbox: state?.inbox, problem },
    h(
      "div",
      { class: "wrap" },
      h("h1", { class: "vh" }, "Live"),
      h(LoginOffers, {}),
      all === undefined ? null : h(Stats, { sessions: all, inbox: state?.inbox ?? [] }),
      all === undefined ? h(Loading, {}) : null,
      running.length === 0
        ? null
        : [
            h(
              "div",
              { key: "h", class: "sh" },
              h("h2", {}, "Running now"),
              h(
                "span",
                { class: "dim" },
                `${counted(running.length, "session")}, ${counted(agents, "agent")}`,
              ),
            ),
            h(
              "div",
              { key: "c", class: "cards" },
              running.map((row) => h(Card, { key: row.id, row })),
            ),
          ],
      all === undefined ? null : h(Recent, { rows: found, all }),
    ),
  );
}

function Loading(): ComponentChild {
  return h("p", { role: "status", class: "dim" }, "Reading sessions…");
}

function Stats({
  sessions,
  inbox,
}: {
  sessions: readonly SessionRow[];
  inbox: readonly InboxQuestion[];
}): ComponentChild {
  const sum = (of: (day: DaySums) => number): number =>
    sessions.reduce((total, { figures }) => total + (figures === undefined ? 0 : of(figures.today)), 0);
  const [tokensIn, cached, tokensOut] = [
    sum((day) => day.tokensIn),
    sum((day) => day.cached),
    sum((day) => day.tokensOut),
  ];
  const live = sessions.filter(({ figures }) => (figures?.running ?? 0) > 0);
  const running = live.reduce((total, { figures }) => total + (figures?.running ?? 0), 0);
  const waiting = inbox.filter(({ state }) => state === "waiting");
  const oldest = Math.min(...waiting.map(({ at }) => at));
  const asked = live.reduce((total, { figures }) => total + (figures?.asked ?? 0), 0);
  const share = tokensIn === 0 ? 0 : Math.round((100 * cached) / tokensIn);
  const failed = sum((day) => day.failed);
  const rows = [
    [
      "Spent today",
      money(sum((day) => day.cost)),
      counted(sessions.filter(({ figures }) => (figures?.today.agents ?? 0) > 0).length, "session"),
    ],
    [
      "Tokens today",
      describeTokens(tokensIn + tokensOut),
      `in ${describeTokens(tokensIn)}, ${share} % cached, out ${describeTokens(tokensOut)}`,
    ],
    ["Agents running", String(running), `in ${counted(live.length, "session")}`],
    [
      "Failed today",
      String(failed),
      `of ${counted(
        sum((day) => day.agents),
        "agent",
      )}`,
      failed > 0 ? "st-bad" : "",
    ],
    [
      "Waiting for you",
      String(waiting.length + asked),
      [
        ...(waiting.length === 0 ? [] : [`longest ${duration(Date.now() - oldest)}`]),
        ...(asked === 0 ? [] : [`${asked} in a terminal`]),
      ].join(", ") || "nothing",
      waiting.length + asked > 0 ? "st-wait" : "",
      "#/approvals",
    ],
  ] as const;
  return h(
    "div",
    { class: "panel stats" },
    rows.map(([label, value, note, name = "", href]) =>
      h(
        href === undefined ? "div" : "a",
        { key: label, class: "stat", href },
        h("span", { class: "lab" }, label),
        h("b", { class: name }, value),
        h("span", { class: "note" }, note),
      ),
    ),
  );
}

function Card({ row }: { row: SessionRow }): ComponentChild {
  const { figures } = row;
  const isWaiting = stateOf(row) === "waiting";
  const durationMs = figures?.durationMs ?? 0;
  return h(
    "a",
    { class: isWaiting ? "panel card w" : "panel card", href: sessionLink(row) },
    h(
      "div",
      { class: "row" },
      h(StateSign, { state: stateOf(row) }),
      h("h3", { class: "clip grow" }, row.title),
    ),
    h("span", { class: "dim clip mono small" }, folderOf(row.cwd, figures?.branch)),
    h(MiniTimeline, { lanes: figures?.lanes ?? [], axis: { durationMs, place: (at) => at } }),
    h("span", { class: isWaiting ? "now clip st-wait" : "now clip" }, nowOf(row) || " "),
    h(
      "div",
      { class: "foot" },
      h("span", {}, counted(figures?.agents ?? 1, "agent")),
      h("span", {}, describeTokens(figures?.tokens ?? 0)),
      h("span", {}, duration(durationMs)),
      h("b", {}, money(figures?.pricedCost ?? 0, figures?.cost !== undefined)),
    ),
  );
}

const filters = [
  ["all", "All"],
  ["running", "Running"],
  ["waiting", "Waiting"],
  ["failed", "Failed"],
  ["completed", "Completed"],
] as const;

function isShown(row: SessionRow, filter: string): boolean {
  const state = stateOf(row);
  if (filter === "all") return true;
  if (filter === "failed") return state === "failed" || (row.figures?.failed ?? 0) > 0;
  return filter === "completed" ? state === "completed" || state === "answered" : state === filter;
}

function Recent({ rows, all }: { rows: readonly SessionRow[]; all: readonly SessionRow[] }): ComponentChild {
  const [filter, setFilter] = useState("all");
  const shown = rows.filter((row) => isShown(row, filter)).slice(0, maxRecent);
  return [
    h(
      "div",
      { key: "h", class: "sh" },
      h("h2", {}, "Recent sessions"),
      h("span", { class: "dim" }, `${shown.length} of ${all.length}`),
      h("span", { class: "grow" }),
      h(Filters, { filter, onChange: setFilter }),
    ),
    shown.length > 0
      ? h(SessionTable, { key: "t", rows: shown })
      : h(NoSession, { key: "n", isEmpty: all.length === 0 }),
  ];
}

function Filters({ filter, onChange }: { filter: string; onChange: (name: string) => void }): ComponentChild {
  return h(
    "div",
    { class: "filters" },
    h(
      "div",
      { class: "seg", role: "group", "aria-label": "State" },
      filters.map(([name, label]) =>
        h(
          "button",
          { key: name, type: "button", "aria-pressed": filter === name, onClick: () => onChange(name) },
          label,
        ),
      ),
    ),
  );
}

function NoSession({ isEmpty }: { isEmpty: boolean }): ComponentChild {
  if (!isEmpty)
    return h("p", { class: "panel empty" }, "No session matches. Clear the search or choose All.");
  return h(
    "div",
    { class: "panel empty" },
    h("h2", {}, "No session in this folder"),
    h("p", {}, "Start one with ", h("code", {}, 'retinue -p "…"'), "; it appears here immediately."),
  );
}

const titles = {
  all: "Sessions of all folders",
  folder: "Sessions of this folder",
  store: "Sessions of the store",
} as const;

/** All sessions, running ones first; two of them can be compared. */
export function SessionsScreen(): ComponentChild {
  const { state, problem } = useList();
  const { text } = useContext(Search);
  const [filter, setFilter] = useState("all");
  const [chosen, setChosen] = useState<readonly SessionRow[]>([]);
  const all = state?.list?.sessions ?? [];
  const rows = all.filter((row) => matches(row, text) && isShown(row, filter));
  const toggle = (row: SessionRow): void =>
    setChosen((before) =>
      before.some(({ id }) => id === row.id)
        ? before.filter(({ id }) => id !== row.id)
        : [...before.slice(-1), row],
    );
  const [left, right] = chosen;
  return h(
    Shell,
    { active: "sessions", inbox: state?.inbox, problem },
    h(
      "div",
      { class: "wrap" },
      h(
        "div",
        { class: "sh" },
        h("h1", {}, titles[state?.list?.scope ?? "folder"]),
        h("span", { class: "dim" }, `${rows.length} of ${all.length}`),
        h("span", { class: "grow" }),
        left !== undefined && right !== undefined
          ? h("a", { class: "btn pri", href: compareLink(left, right) }, "Compare the two chosen sessions")
          : h("span", { class: "dim hide-s" }, "Choose two to compare them."),
        h(Filters, { filter, onChange: setFilter }),
      ),
      state?.list === undefined ? h(Loading, {}) : null,
      state?.list !== undefined && rows.length === 0 ? h(NoSession, { isEmpty: all.length === 0 }) : null,
      rows.length === 0 ? null : h(SessionTable, { rows, chosen, onChoose: toggle }),
    ),
  );
}

/** MCP servers at which the person has to log in. */
function LoginOffers(): ComponentChild {
  const [servers, setServers] = useState<readonly string[]>([]);
  useEffect(() => {
    if (exported !== undefined) return;
    // Without an answer there is nothing to offer.
    askForLogins<{ servers: readonly string[] }>("api/logins").then(
      (answer) => setServers(answer.servers),
      () => undefined,
    );
  }, []);
  return servers.map((server) => h(LoginOffer, { key: server, server }));
}

function LoginOffer({ server }: { server: string }): ComponentChild {
  const [status, setStatus] = useState(`The MCP server ${server} wants you to log in.`);
  const [address, setAddress] = useState<string>();
  const [isDone, setDone] = useState(false);
  const logIn = async (): Promise<void> => {
    try {
      const { address: target } = await askForLogins<{ address: string }>("api/login", { server });
      setAddress(target);
      setStatus(`Log in to ${server} in the tab that opens.`);
      window.open(target, "_blank", "noopener");
      const query = new URLSearchParams({ server });
      setStatus((await askForLogins<{ outcome: string }>(`api/login?${query}`)).outcome);
      setDone(true);
    } catch (error) {
      setStatus(error instanceof Error ? error.message : String(error));
    } finally {
      setAddress(undefined);
    }
  };
  return h(
    "p",
    { class: "ban", role: "status" },
    h(Icon, { name: isDone ? "ok" : "wait" }),
    h("span", { class: "grow" }, status),
    address === undefined
      ? null
      : h("a", { class: "btn", href: address, target: "_blank", rel: "noopener noreferrer" }, "Open the tab"),
    isDone || address !== undefined
      ? null
      : h("button", { class: "btn", type: "button", onClick: () => void logIn() }, "Log in"),
  );
}

/** The answer, or an error in the server's words. */
async function askForLogins<Answer>(path: string, body?: object): Promise<Answer> {
  const sent =
    body === undefined
      ? {}
      : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, sent);
  const answer: unknown = await response.json().catch(() => ({}));
  if (response.ok) return answer as Answer; // The server's own form.
  const { message, advice } = answer as Record<string, string | undefined>;
  throw new Error([message ?? `The studio answered ${response.status}.`, advice].filter(Boolean).join(" "));
}

/** Waiting comes before what the files say. */
function stateOf({ figures, isLive }: SessionRow): string {
  if (figures === undefined) return isLive ? "running" : "…";
  return figures.questions + figures.asked > 0 ? "waiting" : figures.state;
}

function nowOf(row: SessionRow): string {
  const count = row.figures?.questions ?? 0;
  if (count > 0) return count === 1 ? "1 call waits for you" : `${count} calls wait for you`;
  const { asked = 0, now = "" } = row.figures ?? {};
  const words = plainLine(withoutFolder(now, row.cwd));
  return asked > 0 ? `In its terminal: ${words}` : words;
}

function matches(row: SessionRow, search: string): boolean {
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
function SessionTable({ rows, chosen = [], onChoose }: TableProps): ComponentChild {
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
