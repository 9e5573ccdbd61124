import { addUsage } from "../conversation/usage.ts";
import { addTotals, noTotals } from "./agent-totals.ts";
import type { PlacedAgent } from "./agent-tree.ts";
import type { InspectedAgent, ModelShare, ToolShare } from "./inspection.ts";

/** The dearest model first. */
export function shareByModel(agents: readonly InspectedAgent[]): readonly ModelShare[] {
  const shares = new Map<string, ModelShare>();
  for (const step of agents.flatMap(({ steps }) => steps)) {
    if (step.type !== "turn" && step.type !== "compaction" && step.type !== "lost") continue;
    const { model = "unknown", usage, cost, costFrom } = step;
    const durationMs = step.type === "lost" ? 0 : (step.durationMs ?? 0);
    const before = shares.get(model);
    if (step.type === "compaction" && step.model === undefined) continue;
    const isKnown = costFrom !== "unknown" && (before === undefined || before.cost !== undefined);
    shares.set(model, {
      model,
      turns: (before?.turns ?? 0) + (step.type === "turn" ? 1 : 0),
      usage: before === undefined ? usage : addUsage(before.usage, usage),
      ...(isKnown ? { cost: (before?.cost ?? 0) + (cost ?? 0) } : {}),
      modelMs: (before?.modelMs ?? 0) + durationMs,
    });
  }
  return [...shares.values()].toSorted((a, b) => (b.cost ?? 0) - (a.cost ?? 0) || b.turns - a.turns);
}

/** What took longest first. */
export function shareByTool(
  agents: readonly InspectedAgent[],
  placed: readonly PlacedAgent[],
): readonly ToolShare[] {
  const shares = new Map<string, ToolShare>();
  for (const step of agents.flatMap(({ steps }) => steps)) {
    if (step.type !== "call") continue;
    const before = shares.get(step.tool) ?? {
      tool: step.tool,
      calls: 0,
      failed: 0,
      refused: 0,
      durationMs: 0,
    };
    shares.set(step.tool, {
      ...before,
      calls: before.calls + 1,
      failed: before.failed + (step.outcome === "failed" ? 1 : 0),
      refused: before.refused + (step.outcome === "refused" ? 1 : 0),
      durationMs: before.durationMs + (step.durationMs ?? 0),
    });
  }
  const costs = costOfStarted(agents, placed);
  return [...shares.values()]
    .map((share) => withAgentsCost(share, costs.get(share.tool)))
    .toSorted((a, b) => b.durationMs - a.durationMs || b.calls - a.calls);
}

function withAgentsCost(share: ToolShare, agentsCost: number | undefined): ToolShare {
  return agentsCost === undefined ? share : { ...share, agentsCost };
}

/** By tool, what the agents cost that its calls have started; unknown when it is of one of them. */
function costOfStarted(
  agents: readonly InspectedAgent[],
  placed: readonly PlacedAgent[],
): ReadonlyMap<string, number> {
  const started = new Map<string, Set<string>>();
  for (const { steps } of agents)
    for (const step of steps)
      if (step.type === "call" && step.agentId !== undefined)
        started.set(step.tool, (started.get(step.tool) ?? new Set()).add(step.agentId));
  return new Map(
    [...started].flatMap(([tool, ids]) => {
      const totals = placed
        .filter(({ path }) => path.some((id) => ids.has(id)))
        .map(({ part }) => part.folded.totals);
      const { cost } = totals.reduce(addTotals, noTotals);
      return totals.length === 0 || cost === undefined ? [] : [[tool, cost] as const];
    }),
  );
}
