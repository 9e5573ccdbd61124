import { contextTokens } from "../../conversation/usage.ts";
import { allTokens } from "../../inspection/describe-duration.ts";
import type { InspectedAgent, Inspection } from "../../inspection/inspection.ts";
import { boundedLine } from "../../inspection/read-answer.ts";
import { createTimeAxis } from "../../inspection/time-axis.ts";
import { askedOf, mergeBars, overviewBars } from "./session-overview.ts";
import type { DaySums, SessionFigures } from "./session-update.ts";

const maxLanes = 12;
const laneResolution = 150;
const maxNow = 160;
const maxWords = 2000;

/** A question that waits, with the agents that ask; the main agent has the id of its session. */
export interface OpenQuestion {
  readonly at: number;
  readonly places: readonly { readonly agent: string }[];
}

/** What the list of sessions shows of one. Pure. */
export function sessionFigures(
  inspection: Inspection,
  midnight: number,
  questions: readonly OpenQuestion[] = [],
): SessionFigures {
  const { agents, totals, session, takenAt } = inspection;
  const [main] = agents;
  const axis = createTimeAxis(agents);
  const running = agents.filter(({ state }) => state === "running");
  const gap = Math.max(1, axis.durationMs / laneResolution);
  const lanes = agents.slice(0, maxLanes).map((agent) => {
    const own = agent.id === "main" ? session.id : agent.id;
    const asked = questions.filter(({ places }) => places.some((place) => place.agent === own));
    const waiting = asked.map(({ at }) => ({ kind: "waiting" as const, from: at, to: takenAt }));
    const placed = [...overviewBars(agent), ...waiting].map(({ kind, from, to }) => ({
      kind,
      from: Math.round(axis.place(from)),
      to: Math.round(axis.place(to)),
    }));
    return mergeBars(placed, gap);
  });
  return {
    state: main?.state ?? "empty",
    questions: questions.length,
    cost: totals.costUsd,
    pricedCost: totals.pricedCost,
    tokens: allTokens(totals.usage),
    agents: agents.length,
    running: running.length,
    failed: agents.filter(({ state }) => state === "failed").length,
    asked: agents.reduce((sum, agent) => sum + askedOf(agent).length, 0),
    calls: totals.toolUses,
    durationMs: axis.durationMs,
    ...(main?.startedAt === undefined ? {} : { startedAt: main.startedAt }),
    branch: session.gitBranch,
    now: nowOf(main, running),
    words: boundedLine(
      [main?.prompt ?? "", ...agents.map(({ agentType, description }) => `${agentType} ${description}`)].join(
        " ",
      ),
      maxWords,
    ),
    ...(session.isLive ? { lanes } : {}),
    today: sumsSince(agents, midnight),
  };
}

/** The newest call of a running agent, else the answer or why there is none. */
function nowOf(main: InspectedAgent | undefined, running: readonly InspectedAgent[]): string {
  const busy = running.flatMap((agent) =>
    agent.inFlight.map((doing) => ({ agent, doing, since: doing.since ?? 0 })),
  );
  const newest = busy.toSorted((a, b) => b.since - a.since);
  const one =
    newest.find(({ doing }) => isAsked(doing)) ??
    newest.find(({ doing }) => doing.type === "call") ??
    newest[0];
  if (one === undefined)
    return boundedLine(
      main?.error ?? main?.result ?? (running.length > 0 ? "" : (main?.reason ?? "")),
      maxNow,
    );
  const { agent, doing } = one;
  const who = agent.id === "main" ? "" : `${agent.name ?? (agent.description || agent.agentType)}: `;
  return boundedLine(
    `${who}${isAsked(doing) ? "asks " : ""}${doing.type === "model" ? waitingWords(doing) : `${doing.tool} ${doing.about}`}`,
    maxNow,
  );
}

function isAsked(doing: InspectedAgent["inFlight"][number]): boolean {
  return doing.type === "call" && doing.askedSince !== undefined;
}

function waitingWords({ quota }: Extract<InspectedAgent["inFlight"][number], { type: "model" }>): string {
  return quota === undefined
    ? "waits for the model"
    : `waiting-for-quota of ${quota.provider} until ${new Date(quota.until).toISOString()}`;
}

function sumsSince(agents: readonly InspectedAgent[], midnight: number): DaySums {
  const sums = { cost: 0, tokensIn: 0, cached: 0, tokensOut: 0, agents: 0, failed: 0 };
  for (const agent of agents) {
    if ((agent.lastSignAt ?? 0) < midnight) continue;
    sums.agents += 1;
    if (agent.state === "failed") sums.failed += 1;
    for (const step of agent.steps) {
      if (step.type !== "turn" && step.type !== "compaction" && step.type !== "lost") continue;
      if ((step.at ?? 0) < midnight) continue;
      sums.cost += step.costUsd ?? 0;
      sums.tokensIn += contextTokens(step.usage);
      sums.cached += step.usage.cacheReadTokens;
      sums.tokensOut += step.usage.outputTokens;
    }
  }
  return sums;
}
