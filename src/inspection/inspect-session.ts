import { contextTokens } from "../conversation/usage.ts";
import type { KnownChild } from "../tasks/child-meta.ts";
import { addTotals, noTotals } from "./agent-totals.ts";
import { placeAgents } from "./agent-tree.ts";
import type { FoldedAgent } from "./fold-agent.ts";
import type { InspectedAgent, Inspection, Refusal, Step } from "./inspection.ts";
import { boundedLine, defined } from "./read-line.ts";
import { shareByModel, shareByTool } from "./shares.ts";

export interface SessionParts {
  readonly id: string;
  readonly title: string;
  readonly file: string;
  /** The main agent has the id `main`. */
  readonly agents: readonly AgentParts[];
  /** What was wrong with the files. */
  readonly notes: readonly string[];
  readonly now: number;
}

export interface AgentParts {
  readonly id: string;
  readonly folded: FoldedAgent;
  readonly known?: KnownChild | undefined;
}

/** Puts together what the agents of a session tell; with `only`, of one agent and its children. Pure. */
export function inspectSession(parts: SessionParts, only?: string): Inspection {
  const placed = placeAgents(parts.agents);
  const shown = only === undefined ? placed : placed.filter(({ path }) => path.includes(only));
  const starters = new Map(
    parts.agents.flatMap(({ id, known }) =>
      known?.toolUseId === undefined ? [] : [[known.toolUseId, id] as const],
    ),
  );
  const agents = shown.map(({ part, parentId, path }): InspectedAgent => {
    const family = placed.filter((other) => other.path.includes(part.id));
    const { cwd: _cwd, gitBranch: _branch, version: _version, ...folded } = part.folded;
    return {
      id: part.id,
      ...defined({ parentId, name: part.known?.name }),
      depth: path.length - 1,
      agentType: boundedLine(part.known?.agentType ?? (part.id === "main" ? "main" : "unknown"), 100),
      description: boundedLine(part.known?.description ?? "", 200),
      ...folded,
      steps: folded.steps.map((step) => withChild(step, starters)),
      tree: family.map((other) => other.part.folded.totals).reduce(addTotals, noTotals),
    };
  });
  const [main] = parts.agents;
  return {
    version: 1,
    session: {
      id: parts.id,
      title: parts.title,
      file: parts.file,
      ...defined({
        cwd: main?.folded.cwd,
        gitBranch: main?.folded.gitBranch,
        version: main?.folded.version,
      }),
      isLive: parts.agents.some(({ folded }) => folded.isLive),
    },
    takenAt: parts.now,
    ...(only === undefined ? {} : { only }),
    agents,
    totals: agents.map(({ totals }) => totals).reduce(addTotals, noTotals),
    byModel: shareByModel(agents),
    byTool: shareByTool(agents, placed),
    refusals: agents.flatMap(refusalsOf),
    notes: [...parts.notes, ...agents.flatMap(differences)],
  };
}

/** A child names the call that started it, also where the result of the call is not there yet. */
function withChild(step: Step, starters: ReadonlyMap<string, string>): Step {
  if (step.type !== "call") return step;
  const agentId = starters.get(step.callId);
  return agentId === undefined ? step : { ...step, agentId };
}

function refusalsOf({ id, steps }: InspectedAgent): readonly Refusal[] {
  return steps.flatMap((step) => {
    if (step.type !== "call" || step.outcome !== "refused") return [];
    const { callId, tool, about, reason = "", at } = step;
    return [defined({ agentId: id, callId, tool, about, reason, at })];
  });
}

/** Endings that tell of more than the lines do mean that lines are missing. The other way round, a run was cut off. */
function differences({ id, totals, recorded }: InspectedAgent): readonly string[] {
  if (recorded === undefined) return [];
  const tokens = allTokens(recorded) - allTokens(totals);
  const cost = (recorded.cost ?? 0) - totals.pricedCost;
  const what = [
    ...(tokens > 0 ? [`${tokens} more tokens`] : []),
    ...(cost > 1e-9 ? [`$${cost.toFixed(6)} more`] : []),
    ...(recorded.toolUses > totals.toolUses
      ? [`${recorded.toolUses - totals.toolUses} more tool calls`]
      : []),
  ];
  return what.length === 0
    ? []
    : [`${id}: its endings tell of ${what.join(", ")} than its lines; some lines are missing.`];
}

function allTokens({ usage }: Pick<InspectedAgent["totals"], "usage">): number {
  return contextTokens(usage) + usage.outputTokens;
}
