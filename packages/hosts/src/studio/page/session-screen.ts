import {
  allTokens,
  describeCost,
  describeDuration,
  describeTokens,
  describeTotalCost,
} from "@retinue/core/inspection/describe-duration.ts";
import type { InspectedAct } from "@retinue/core/inspection/inspection.ts";
import { createTimeAxis, type TimeAxis } from "@retinue/core/inspection/time-axis.ts";
import type { OverviewAgent, SessionOverview } from "@retinue/core/kernel/live/session-overview.ts";
import { type ComponentChild, h } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ActBar } from "./act-bar.ts";
import { Badge, describeInFlight, Figures, labelOf, memo, Problem, Table, Timeline } from "./parts.ts";
import { QuestionsPart } from "./questions-part.ts";
import { agentLink, type Place, teamLink } from "./route.ts";
import { exported, type SessionState, type SessionView, useSession } from "./use-events.ts";
import { VirtualList } from "./virtual-list.ts";

/** One session: what is going on or what came of it first, then failures, then the tree. */
export function SessionScreen({ place }: { place: Place }): ComponentChild {
  const { state, problem } = useSession(place);
  const [search, setSearch] = useState("");
  const view = state?.session;
  const arranged = useMemo(() => arrange(view), [view]);
  if (view === undefined || arranged === undefined || state === undefined)
    return h(
      "main",
      {},
      h(Back, {}),
      h(Problem, { text: problem }),
      h("p", { role: "status" }, "Reading the session…"),
    );
  const { overview } = view;
  const { agents, axis, ordered } = arranged;
  const failed = agents.filter(isBad);
  const words = search.toLowerCase();
  const shown = ordered.filter((agent) =>
    `${labelOf(agent)} ${agent.agentType} ${agent.id} ${agent.state}`.toLowerCase().includes(words),
  );
  return h(
    "main",
    {},
    h(Back, {}),
    h(Problem, { text: problem }),
    h(SessionHead, { overview, agents, axis, live: state.live }),
    overview.team === undefined
      ? null
      : h("p", {}, h("a", { href: teamLink(place) }, `Team ${overview.team.name}: members, board and mail`)),
    h(QuestionsPart, { place, questions: overview.questions ?? [] }),
    h(ActBar, { place, agent: view.agents.get("main"), agentId: "main" }),
    failed.length === 0 ? null : h(FailedAgents, { place, failed }),
    h(
      "section",
      { "aria-labelledby": "agents" },
      h("h2", { id: "agents" }, `Agents (${agents.length})`),
      overview.unread === undefined
        ? null
        : h("p", { role: "status" }, `Reading the other agents: ${overview.unread} left…`),
      h(AgentsBar, { search, onSearch: setSearch }),
      h(VirtualList<OverviewAgent>, {
        items: shown,
        label: "Agents",
        rowHeight: 62,
        keyOf: ({ id }) => id,
        row: (agent) =>
          h(AgentRow, { place, agent, axis, now: overview.takenAt, writing: state.live.get(agent.id)?.text }),
      }),
    ),
    h(Shares, { overview }),
    h(Acts, { acts: overview.acts ?? [], agents: view.agents }),
    h(Notes, { notes: overview.notes }),
  );
}

function AgentsBar({
  search,
  onSearch,
}: {
  search: string;
  onSearch: (text: string) => void;
}): ComponentChild {
  return h(
    "div",
    { class: "bar" },
    h(
      "label",
      {},
      "Search agents ",
      h("input", {
        type: "search",
        value: search,
        onInput: (event: Event) => onSearch((event.target as HTMLInputElement).value),
      }),
    ),
    h(
      "span",
      { class: "soft legend" },
      "Timeline: ",
      ["model", "tool", "failed", "refused"].map((kind) =>
        h("span", { key: kind, class: `key ${kind}` }, kind),
      ),
    ),
  );
}

/** What is made of a session once for each change of it, not for each piece of text. */
function arrange(view: SessionView | undefined) {
  if (view === undefined) return undefined;
  const agents = [...view.agents.values()];
  return { agents, axis: createTimeAxis(agents), ordered: inTreeOrder(agents) };
}

function Back(): ComponentChild {
  if (exported !== undefined)
    return h("p", { class: "soft" }, `A snapshot of ${new Date(exported.session.takenAt).toISOString()}.`);
  return h("nav", { "aria-label": "Breadcrumb" }, h("a", { href: "#/" }, "All sessions"));
}

function isBad({ state }: OverviewAgent): boolean {
  return state === "failed" || state === "interrupted";
}

/** Each agent behind its parent; the order of their start among siblings. */
export function inTreeOrder(agents: readonly OverviewAgent[]): readonly OverviewAgent[] {
  const ids = new Set(agents.map(({ id }) => id));
  const children = Map.groupBy(agents, ({ id, parentId }) =>
    id === "main" || parentId === undefined || !ids.has(parentId) ? "" : parentId,
  );
  const ordered: OverviewAgent[] = [];
  const seen = new Set<string>();
  const visit = (agent: OverviewAgent): void => {
    if (seen.has(agent.id)) return;
    seen.add(agent.id);
    ordered.push(agent);
    for (const child of children.get(agent.id) ?? []) visit(child);
  };
  for (const agent of children.get("") ?? []) visit(agent);
  for (const agent of agents) visit(agent);
  return ordered;
}

function SessionHead(props: {
  overview: SessionOverview;
  agents: readonly OverviewAgent[];
  axis: TimeAxis;
  live: SessionState["live"];
}): ComponentChild {
  const { overview, agents, axis, live } = props;
  const { session, totals, takenAt } = overview;
  const main = agents.find(({ id }) => id === (overview.only ?? "main"));
  const running = agents.filter(({ state }) => state === "running");
  const { usage } = totals;
  return h(
    "header",
    {},
    h("h1", {}, session.title, " ", h(Badge, { state: main?.state ?? "empty" })),
    h("p", { class: "soft" }, [session.cwd, session.gitBranch, session.id].filter(Boolean).join(" · ")),
    h(Now, { main, running, now: takenAt, live }),
    h(Figures, {
      rows: [
        ["cost", describeTotalCost(totals)],
        ["tokens in / out", [usage.inputTokens, usage.outputTokens].map(describeTokens).join(" / ")],
        [
          "cache read / write",
          [usage.cacheReadTokens, usage.cacheWriteTokens].map(describeTokens).join(" / "),
        ],
        ["time", describeDuration(axis.durationMs)],
        ["agents", `${agents.length}, ${running.length} running`],
        ["turns", String(totals.turns)],
        ["calls", `${totals.toolUses}, ${totals.failedCalls} failed, ${totals.refusedCalls} refused`],
      ],
    }),
    main?.context === undefined ? null : h(ContextFill, { context: main.context }),
  );
}

/** The current activity of a running session, else its answer. */
function Now(props: {
  main: OverviewAgent | undefined;
  running: readonly OverviewAgent[];
  now: number;
  live: SessionState["live"];
}): ComponentChild {
  const { main, running, now, live } = props;
  if (running.length === 0) {
    const ending = main?.error ?? main?.reason;
    return h(
      "section",
      { class: "answer", "aria-label": "Answer" },
      h("h2", {}, "Answer"),
      h("div", { class: "text" }, main?.result ?? "No answer."),
      main?.state === "failed" || main?.state === "interrupted"
        ? h("p", { class: "bad" }, ending ?? main.state)
        : null,
    );
  }
  const busy = running.filter(({ inFlight }) => inFlight.length > 0).slice(0, 5);
  return h(
    "section",
    { class: "answer", "aria-label": "Current activity" },
    h("h2", {}, "Now"),
    h(
      "ul",
      {},
      busy.map((agent) =>
        h("li", { key: agent.id }, h("b", {}, labelOf(agent)), ": ", activityOf(agent, live, now)),
      ),
    ),
    main?.result === undefined ? null : h("div", { class: "text soft" }, main.result),
  );
}

function activityOf(agent: OverviewAgent, live: SessionState["live"], now: number): string {
  const writing = live.get(agent.id)?.text;
  return writing === undefined ? describeInFlight(agent.inFlight, now) : `writes “${tailOf(writing)}”`;
}

export function ContextFill({ context }: { context: { tokens: number; window: number } }): ComponentChild {
  const { tokens, window } = context;
  const percent = Math.round((100 * tokens) / window);
  const text = `Context: ${describeTokens(tokens)} of ${describeTokens(window)} (${percent} %)`;
  return h(
    "label",
    { class: "fill" },
    text,
    " ",
    h("progress", { max: window, value: Math.min(tokens, window) }),
  );
}

function FailedAgents({ place, failed }: { place: Place; failed: readonly OverviewAgent[] }): ComponentChild {
  return h(
    "section",
    { class: "failures", "aria-labelledby": "failed" },
    h("h2", { id: "failed" }, `Failed (${failed.length})`),
    h(VirtualList<OverviewAgent>, {
      items: failed,
      label: "Failed agents",
      rowHeight: 48,
      keyOf: ({ id }) => id,
      row: (agent) =>
        h(
          "a",
          { class: "row", href: agentLink(place, agent.id) },
          h("span", { class: "name" }, labelOf(agent)),
          h(Badge, { state: agent.state }),
          h("span", { class: "bad" }, agent.error ?? agent.reason ?? "its process ended before it did"),
        ),
    }),
  );
}

const AgentRow = memo(drawAgentRow);

function drawAgentRow(props: {
  place: Place;
  agent: OverviewAgent;
  axis: TimeAxis;
  now: number;
  writing: string | undefined;
}): ComponentChild {
  const { place, agent, axis, now, writing } = props;
  const { totals, context } = agent;
  const facts = [
    agent.agentType,
    describeCost(totals.costUsd ?? totals.pricedCost),
    `${describeTokens(allTokens(totals.usage))} tokens`,
    describeDuration(totals.durationMs),
    ...(context === undefined ? [] : [`context ${Math.round((100 * context.tokens) / context.window)} %`]),
    ...(agent.state === "running" ? [describeInFlight(agent.inFlight, now)] : []),
  ];
  return h(
    "a",
    { class: `row agent depth${Math.min(agent.depth, 6)}`, href: agentLink(place, agent.id) },
    h("span", { class: "name" }, labelOf(agent)),
    h(Badge, { state: agent.state }),
    isBad(agent) ? h("span", { class: "bad" }, agent.error ?? agent.reason ?? "") : null,
    h("span", { class: "soft facts" }, facts.filter((fact) => fact !== "").join(" · ")),
    writing === undefined ? null : h("span", { class: "facts writing" }, tailOf(writing)),
    h(Timeline, { bars: agent.bars, axis }),
  );
}

const maxTail = 160;

/** The end of a text, from a word on. */
function tailOf(text: string): string {
  const line = text.slice(-maxTail * 2).replace(/\s+/g, " ");
  return line.length <= maxTail ? line : `… ${line.slice(-maxTail).replace(/^\S* /, "")}`;
}

const Shares = memo(drawShares);

function drawShares({ overview }: { overview: SessionOverview }): ComponentChild {
  const { byModel, byTool } = overview;
  return h(
    "section",
    { class: "shares" },
    h(Table, {
      caption: "By model",
      heads: ["model", "turns", "tokens", "cost"],
      rows: byModel.map(({ model, turns, usage, costUsd: cost }) => [
        model,
        String(turns),
        describeTokens(allTokens(usage)),
        describeCost(cost),
      ]),
    }),
    h(Table, {
      caption: "By tool",
      heads: ["tool", "calls", "failed", "refused", "time"],
      rows: byTool.map(({ tool, calls, failed, refused, durationMs }) => [
        tool,
        String(calls),
        String(failed),
        String(refused),
        describeDuration(durationMs),
      ]),
    }),
  );
}

function Acts({
  acts,
  agents,
}: {
  acts: readonly InspectedAct[];
  agents: SessionView["agents"];
}): ComponentChild {
  return h(Table, {
    caption: "What people did",
    heads: ["when", "who", "what", "agent", "state"],
    rows: acts.map(({ at, by, action, agentId, text, state, reason }) => {
      const agent = agents.get(agentId);
      return [
        at === undefined ? "" : new Date(at).toLocaleTimeString(),
        by,
        text === undefined ? action : `${action}: ${text}`,
        agent === undefined ? agentId : labelOf(agent),
        reason === undefined ? state : `${state}: ${reason}`,
      ];
    }),
  });
}

function Notes({ notes }: { notes: readonly string[] }): ComponentChild {
  if (notes.length === 0) return null;
  return h(
    "section",
    {},
    h("h2", {}, "Notes"),
    h(
      "ul",
      {},
      notes.map((note) => h("li", { key: note }, note)),
    ),
  );
}
