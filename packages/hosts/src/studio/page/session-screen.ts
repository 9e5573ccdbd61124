import { allTokens, describeTokens } from "@retinue/core/inspection/describe-duration.ts";
import { createTimeAxis } from "@retinue/core/inspection/time-axis.ts";
import type { OverviewAgent, SessionOverview } from "@retinue/core/kernel/live/session-overview.ts";
import { type ComponentChild, h } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ActBar, StopButtons } from "./act-bar.ts";
import { ConversationPart, type Seek } from "./conversation-part.ts";
import { counted, duration, folderOf, money, withoutFolder } from "./format.ts";
import { StateSign } from "./icons.ts";
import { Badge, labelOf } from "./parts.ts";
import { agentLink, mergeLink, type Place, runLink, teamLink } from "./route.ts";
import { Shell } from "./shell.ts";
import { SidePart } from "./side-part.ts";
import { type Lane, Timeline } from "./timeline.ts";
import { doingOf, type TreeAgent, TreePart } from "./tree-part.ts";
import { exported, type SessionState, type SessionView, useSession } from "./use-events.ts";

const tabs = [
  ["tree", "Agents", "only-s"],
  ["time", "Timeline", "only-s"],
  ["talk", "Conversation", "only-s"],
  ["mid", "Timeline and conversation", "only-m"],
  ["side", "Details", ""],
] as const;

/** One session and one of its agents: the tree, the timeline, the conversation, the details. */
export function SessionScreen({ place, agentId }: { place: Place; agentId: string }): ComponentChild {
  const [all, setAll] = useState(false);
  const [seek, setSeek] = useState<Seek>();
  const [tab, setTab] = useState<string>(agentId === "main" ? "mid" : "talk");
  const { state, problem } = useSession(place, { agentId, all });
  const isFirst = useRef(true);
  useEffect(() => {
    // On narrow screens, who chooses an agent wants to read it.
    if (!isFirst.current) setTab("talk");
    isFirst.current = false;
  }, [agentId]);
  const view = state?.session;
  const arranged = useMemo(() => arrange(view), [view]);
  if (state === undefined || view === undefined || arranged === undefined)
    return h(
      Shell,
      { active: "sessions", inbox: state?.inbox, problem },
      problem === undefined ? h("p", { class: "wrap dim", role: "status" }, "Reading the session…") : null,
    );
  const { overview } = view;
  const { agents, axis, ordered } = arranged;
  const agent = view.agents.get(agentId);
  const rows = treeRows(ordered, state, overview);
  const choose = (id: string, moment?: number): void => {
    location.hash = agentLink(place, id);
    if (moment !== undefined) setSeek({ agentId: id, at: axis.timeOf(moment) });
  };
  return h(
    Shell,
    { active: "sessions", inbox: state.inbox, problem },
    h(
      "div",
      { class: "session" },
      h(SessionHead, { overview, agents, place, durationMs: axis.durationMs }),
      overview.unread === undefined
        ? null
        : h(
            "p",
            { class: "ban", role: "status" },
            `${agents.length} of ${agents.length + overview.unread} agents are read. Totals grow until all are.`,
          ),
      h(Tabs, { tab, onChoose: setTab }),
      h(
        "div",
        { class: "cols", "data-tab": tab },
        h(TreePart, { place, agents: rows, selected: agentId, onOpen: () => setTab("talk") }),
        h(
          "div",
          { class: "pane p-mid" },
          h(Timeline, {
            lanes: lanesOf(rows, overview),
            axis,
            isLive: overview.session.isLive,
            selected: agentId,
            onSelect: choose,
          }),
          h(Talk, { place, agentId, agent, state, seek, onEarlier: () => setAll(true) }),
        ),
        h(SidePart, { place, overview, agents, agent, plan: state.agent?.plan }),
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

/** Each agent behind its parent; the order of their start among siblings. */
function inTreeOrder(agents: readonly OverviewAgent[]): readonly OverviewAgent[] {
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

function treeRows(
  ordered: readonly OverviewAgent[],
  { live }: SessionState,
  overview: SessionOverview,
): readonly TreeAgent[] {
  const asking = new Map(
    (overview.questions ?? [])
      .filter(({ state }) => state === "waiting")
      .flatMap((question) =>
        question.places.map(
          ({ agent }) => [agent === overview.session.id ? "main" : agent, question] as const,
        ),
      ),
  );
  return ordered.map((agent) => {
    const question = asking.get(agent.id);
    const own = agent.inFlight.find((one) => one.type === "call" && one.askedSince !== undefined);
    if (question === undefined && own?.type === "call")
      return { agent, state: "waiting", doing: `Asks in its terminal: ${own.tool} ${own.about}` };
    if (question === undefined)
      return {
        agent,
        state: agent.state,
        doing: doingOf(agent, live.get(agent.id)?.text, {
          now: overview.takenAt,
          folder: overview.session.cwd,
        }),
      };
    return {
      agent,
      state: "waiting",
      doing: `Asks: ${withoutFolder(question.command ?? `${question.tool} ${question.edit?.path ?? ""}`, overview.session.cwd)}`,
    };
  });
}

const maxLanes = 200;

/** What waits now is a bar up to now, until it is answered. */
function lanesOf(
  rows: readonly TreeAgent[],
  { questions = [], takenAt, session }: SessionOverview,
): readonly Lane[] {
  const open = questions.filter(({ state }) => state === "waiting");
  return rows.slice(0, maxLanes).map(({ agent, state }) => ({
    id: agent.id,
    state,
    label: labelOf(agent),
    depth: agent.depth,
    bars: [
      ...agent.bars,
      ...open
        .filter(({ places }) =>
          places.some(
            (asked) => asked.agent === agent.id || (agent.id === "main" && asked.agent === session.id),
          ),
        )
        .map(({ at }) => ({ kind: "waiting" as const, from: at, to: takenAt })),
    ],
  }));
}

function Tabs({ tab, onChoose }: { tab: string; onChoose: (name: string) => void }): ComponentChild {
  return h(
    "div",
    { class: "tabs" },
    h(
      "div",
      { class: "seg", role: "group", "aria-label": "Parts of the session" },
      tabs.map(([name, label, size]) =>
        h(
          "button",
          {
            key: name,
            type: "button",
            class: size,
            "aria-pressed": isShown(name, tab),
            onClick: () => onChoose(name),
          },
          label,
        ),
      ),
    ),
  );
}

/** Wide screens show in one what narrow ones have as three. */
function isShown(name: string, tab: string): boolean {
  return name === "mid" ? tab !== "side" : name === tab || (name === "tree" && tab === "mid");
}

interface HeadProps {
  readonly overview: SessionOverview;
  readonly agents: readonly OverviewAgent[];
  readonly place: Place;
  readonly durationMs: number;
}

function SessionHead({ overview, agents, place, durationMs }: HeadProps): ComponentChild {
  const { session, totals } = overview;
  const main = agents.find(({ id }) => id === (overview.only ?? "main"));
  const state = main?.state ?? "empty";
  const facts = [
    ["Cost", money(totals.pricedCost, totals.costUsd !== undefined)],
    ["Tokens", describeTokens(allTokens(totals.usage))],
    ["Agents", String(agents.length)],
    ["Time", duration(durationMs)],
  ] as const;
  return h(
    "div",
    { class: "shead" },
    h(StateSign, { state }),
    h("h1", { class: "clip", title: session.title }, session.title),
    h(Badge, { state }),
    h(
      "span",
      { class: "dim clip mono hide-m", title: session.cwd ?? "" },
      folderOf(session.cwd, session.gitBranch),
    ),
    exported === undefined
      ? null
      : h("span", { class: "dim" }, `A snapshot of ${new Date(exported.session.takenAt).toISOString()}.`),
    overview.team === undefined
      ? null
      : h("a", { class: "btn", href: teamLink(place) }, `Team ${overview.team.name}`),
    h(Parts, { overview, place }),
    h(
      "div",
      { class: "kv" },
      facts.map(([name, value]) => h("div", { key: name }, h("span", {}, name), " ", h("b", {}, value))),
    ),
    h(StopButtons, { place, agent: main, agentId: "main", label: "Stop session" }),
    exported === undefined
      ? h(
          "a",
          {
            class: "btn hide-s",
            href: `api/export?${new URLSearchParams({ project: place.project, id: place.id })}`,
            download: true,
            title: "This page as one file that needs no network",
          },
          "Export",
        )
      : null,
  );
}

/** What the session has beside its agents: its newest run of a workflow, those that run, and the merge. */
function Parts({ overview, place }: { overview: SessionOverview; place: Place }): ComponentChild {
  const { workflows = [], merge } = overview;
  const shown = workflows.filter(({ status }, at) => at === 0 || status === "running").slice(0, 2);
  return [
    shown.map(({ runId, name, status, done, steps }) =>
      h(
        "a",
        { key: runId, class: "btn part", href: runLink(place, runId), title: `Workflow ${name}` },
        h(StateSign, { state: status }),
        h("span", { class: "clip" }, name),
        h("span", { class: "dim" }, `${done}/${steps}`),
      ),
    ),
    merge === undefined
      ? null
      : h(
          "a",
          { key: "merge", class: "btn part", href: mergeLink(place) },
          h(StateSign, { state: merge.left > 0 ? "left" : merge.state }),
          "Merge ",
          h("span", { class: "dim" }, `${merge.done}/${merge.children}`),
        ),
  ];
}

function Talk(props: {
  place: Place;
  agentId: string;
  agent: OverviewAgent | undefined;
  state: SessionState;
  seek: Seek | undefined;
  onEarlier: () => void;
}): ComponentChild {
  const { place, agentId, agent, state, seek, onEarlier } = props;
  const conversation = state.agent;
  return h(
    "div",
    { class: "talkbox" },
    h(
      "div",
      { class: "talk", tabIndex: 0, role: "group", "aria-label": "Conversation of the agent" },
      agent === undefined
        ? null
        : h(AgentHead, { agent, place, workflows: state.session?.overview.workflows }),
      conversation === undefined
        ? h("p", { class: "msgs dim", role: "status" }, "Reading the conversation…")
        : h(ConversationPart, {
            key: agentId,
            entries: conversation.entries,
            from: conversation.from,
            place,
            agentId,
            writing: state.live.get(agentId)?.text,
            mayFork: agentId === "main" && exported === undefined,
            turns: agent?.totals.turns ?? 0,
            folder: state.session?.overview.session.cwd,
            seek: seek?.agentId === agentId ? seek : undefined,
            onEarlier,
          }),
    ),
    h(ActBar, { place, agent, agentId }),
  );
}

function AgentHead(props: {
  agent: OverviewAgent;
  place: Place;
  workflows: SessionOverview["workflows"];
}): ComponentChild {
  const { agent, place, workflows = [] } = props;
  // The ids of a run's agents begin with that of the run.
  const run = workflows.find(({ runId }) => agent.id.startsWith(`${runId}-`));
  const { totals } = agent;
  const ending =
    agent.state === "failed" || agent.state === "interrupted" ? (agent.error ?? agent.reason) : undefined;
  return [
    h(
      "div",
      { key: "head", class: "ah" },
      h(StateSign, { state: agent.state }),
      h("h2", { class: "clip" }, labelOf(agent)),
      h("span", { class: "chip hide-s" }, agent.name ?? agent.agentType),
      run === undefined
        ? null
        : h("a", { class: "chip hide-s", href: runLink(place, run.runId) }, `workflow ${run.name}`),
      agent.models.length === 0 ? null : h("span", { class: "chip hide-s" }, agent.models.join(", ")),
      h("span", { class: "grow" }),
      h(
        "span",
        { class: "dim hide-m" },
        `${counted(totals.turns, "turn")}, ${counted(totals.toolUses, "call")}`,
      ),
      // The main agent is stopped from the head of the session.
      agent.id === "main" ? null : h(StopButtons, { place, agent, agentId: agent.id, label: "Stop" }),
    ),
    ending === undefined ? null : h("p", { key: "end", class: "ban bad" }, ending),
  ];
}
