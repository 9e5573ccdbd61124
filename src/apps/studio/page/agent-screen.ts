import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import type { ConversationEntry } from "../../../inspection/conversation-fold.ts";
import {
  allTokens,
  describeDuration,
  describeTokens,
  describeTotalCost,
} from "../../../inspection/describe-duration.ts";
import type { OverviewAgent, SessionOverview } from "../session-overview.ts";
import type { AgentUpdate } from "../studio-messages.ts";
import { ActBar } from "./act-bar.ts";
import { ConversationPart } from "./conversation-part.ts";
import { Badge, describeInFlight, Figures, labelOf, Problem } from "./parts.ts";
import { PlanPart } from "./plan-part.ts";
import { agentLink, type Place, sessionLink } from "./route.ts";
import { ContextFill, foldOverview, type SessionView } from "./session-screen.ts";
import { useEvents } from "./use-events.ts";

interface AgentView {
  readonly from: number;
  readonly entries: readonly ConversationEntry[];
  readonly plan?: Readonly<Record<string, unknown>>;
}

function foldAgent(before: AgentView | undefined, update: AgentUpdate): AgentView {
  const entries = [...(before?.entries ?? [])];
  for (const [index, entry] of update.entries) entries[index - update.from] = entry;
  const plan = update.plan ?? before?.plan;
  return { from: update.from, entries, ...(plan === undefined ? {} : { plan }) };
}

/** One agent: what became of it, its conversation, and what was decided for it. */
export function AgentScreen({ place, agentId }: { place: Place; agentId: string }): ComponentChild {
  const [all, setAll] = useState(false);
  const query = { project: place.project, id: place.id };
  const session = useEvents<SessionView, SessionOverview>("api/session", query, foldOverview);
  const { state, problem } = useEvents<AgentView, AgentUpdate>(
    "api/agent",
    { ...query, agent: agentId, all: all ? "1" : "0" },
    foldAgent,
  );
  const agent = session.state?.agents.get(agentId);
  const overview = session.state?.overview;
  return h(
    "main",
    {},
    h(
      "nav",
      { "aria-label": "Breadcrumb" },
      h("a", { href: "#/" }, "All sessions"),
      " / ",
      h("a", { href: sessionLink(place) }, overview?.session.title ?? "Session"),
      h(Parent, { place, agent, view: session.state }),
    ),
    h(Problem, { text: problem ?? session.problem }),
    agent === undefined
      ? h("p", { role: "status" }, "Reading the agent…")
      : h(AgentHead, { agent, now: overview?.takenAt ?? 0 }),
    h(ActBar, { place, agent, agentId }),
    state?.plan === undefined ? null : h(PlanPart, { plan: state.plan }),
    state === undefined
      ? h("p", { role: "status" }, "Reading the conversation…")
      : h(ConversationPart, {
          entries: state.entries,
          from: state.from,
          place,
          onEarlier: () => setAll(true),
        }),
  );
}

function Parent(props: {
  place: Place;
  agent: OverviewAgent | undefined;
  view: SessionView | undefined;
}): ComponentChild {
  const { place, agent, view } = props;
  const parent = agent?.parentId === undefined ? undefined : view?.agents.get(agent.parentId);
  if (parent === undefined) return null;
  return h("span", {}, " / ", h("a", { href: agentLink(place, parent.id) }, labelOf(parent)));
}

function AgentHead({ agent, now }: { agent: OverviewAgent; now: number }): ComponentChild {
  const { totals } = agent;
  const ending = agent.error ?? agent.reason;
  return h(
    "header",
    {},
    h("h1", {}, labelOf(agent), " ", h(Badge, { state: agent.state })),
    h(
      "p",
      { class: "soft" },
      [agent.agentType, agent.name, agent.id, ...agent.models].filter(Boolean).join(" · "),
    ),
    ending === undefined
      ? null
      : h("p", { class: agent.state === "failed" || agent.state === "interrupted" ? "bad" : "soft" }, ending),
    agent.inFlight.length === 0
      ? null
      : h("p", { "aria-live": "polite" }, h("b", {}, "Now: "), describeInFlight(agent.inFlight, now)),
    h(Figures, {
      rows: [
        ["cost", describeTotalCost(totals)],
        ["tokens", describeTokens(allTokens(totals.usage))],
        ["time", describeDuration(totals.durationMs)],
        ["turns", String(totals.turns)],
        ["calls", `${totals.toolUses}, ${totals.failedCalls} failed, ${totals.refusedCalls} refused`],
      ],
    }),
    agent.context === undefined ? null : h(ContextFill, { context: agent.context }),
  );
}
