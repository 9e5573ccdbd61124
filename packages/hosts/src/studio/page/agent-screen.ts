import {
  allTokens,
  describeDuration,
  describeTokens,
  describeTotalCost,
} from "@retinue/core/inspection/describe-duration.ts";
import type { OverviewAgent } from "@retinue/core/kernel/live/session-overview.ts";
import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import { ActBar } from "./act-bar.ts";
import { ConversationPart } from "./conversation-part.ts";
import { Badge, describeInFlight, Figures, labelOf, Problem } from "./parts.ts";
import { PlanPart } from "./plan-part.ts";
import { agentLink, type Place, sessionLink } from "./route.ts";
import { ContextFill } from "./session-screen.ts";
import { exported, type SessionView, useSession } from "./use-events.ts";

/** One agent: what became of it, its conversation, and what was decided for it. */
export function AgentScreen({ place, agentId }: { place: Place; agentId: string }): ComponentChild {
  const [all, setAll] = useState(false);
  const { state, problem } = useSession(place, { agentId, all });
  const agent = state?.session?.agents.get(agentId);
  const overview = state?.session?.overview;
  const conversation = state?.agent;
  return h(
    "main",
    {},
    h(
      "nav",
      { "aria-label": "Breadcrumb" },
      exported === undefined ? [h("a", { href: "#/" }, "All sessions"), " / "] : null,
      h("a", { href: sessionLink(place) }, overview?.session.title ?? "Session"),
      h(Parent, { place, agent, view: state?.session }),
    ),
    h(Problem, { text: problem }),
    agent === undefined
      ? h("p", { role: "status" }, "Reading the agent…")
      : h(AgentHead, { agent, now: overview?.takenAt ?? 0 }),
    h(ActBar, { place, agent, agentId }),
    conversation?.plan === undefined ? null : h(PlanPart, { plan: conversation.plan }),
    conversation === undefined
      ? h("p", { role: "status" }, "Reading the conversation…")
      : h(ConversationPart, {
          entries: conversation.entries,
          from: conversation.from,
          place,
          writing: state?.live.get(agentId)?.text,
          mayFork: agentId === "main" && exported === undefined,
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
