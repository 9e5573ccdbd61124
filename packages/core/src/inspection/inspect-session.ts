import { defined } from "@retinue/base/foundation/defined.ts";
import { addUsage, contextTokens } from "../conversation/usage.ts";
import type { KnownChild } from "../tasks/child-meta.ts";
import type { FoldedAgent } from "./agent-fold.ts";
import type {
  InspectedAgent,
  InspectedTotals,
  Inspection,
  ModelShare,
  Refusal,
  Step,
  ToolShare,
} from "./inspection.ts";
import { boundedLine } from "./read-answer.ts";
import { addTotals, noTotals } from "./totals-of.ts";

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

/** Puts together what the agents of a session show; with `only`, of one agent and its children. Pure. */
export function inspectSession(parts: SessionParts, only?: string): Inspection {
  const placed = placeAgents(parts.agents);
  const shown = only === undefined ? placed : placed.filter(({ path }) => path.includes(only));
  const starters = new Map(
    parts.agents.flatMap(({ id, known }) =>
      known?.toolUseId === undefined ? [] : [[known.toolUseId, id] as const],
    ),
  );
  const agents = shown.map(({ part, parentId, path, family }): InspectedAgent => {
    const { cwd: _cwd, gitBranch: _branch, version: _version, ...folded } = part.folded;
    return {
      id: part.id,
      ...defined({ parentId, name: part.known?.name }),
      depth: path.length - 1,
      agentType: boundedLine(part.known?.agentType ?? (part.id === "main" ? "main" : "unknown"), 100),
      description: boundedLine(part.known?.description ?? "", 200),
      ...folded,
      steps: withChildren(folded.steps, starters),
      tree: family().reduce(addTotals, noTotals),
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
    only,
    agents,
    totals: agents.map(({ totals }) => totals).reduce(addTotals, noTotals),
    ...quotesOf(agents),
    byModel: shareByModel(agents),
    byTool: shareByTool(agents, placed),
    refusals: agents.flatMap(refusalsOf),
    notes: [...parts.notes, ...agents.flatMap(differences)],
  };
}

/** A child names the call that started it, also where the result of the call is not there yet. */
function withChildren(steps: readonly Step[], starters: ReadonlyMap<string, string>): readonly Step[] {
  const childOf = (step: Step): string | undefined =>
    step.type === "call" ? starters.get(step.callId) : undefined;
  if (!steps.some((step) => childOf(step) !== undefined)) return steps;
  return steps.map((step) => {
    const agentId = childOf(step);
    return agentId === undefined ? step : { ...step, agentId };
  });
}

function refusalsOf({ id, steps }: InspectedAgent): readonly Refusal[] {
  return steps.flatMap((step) => {
    if (step.type !== "call" || step.outcome !== "refused") return [];
    const { callId, tool, about, reason = "", at } = step;
    return [defined({ agentId: id, callId, tool, about, reason, at })];
  });
}

/** One that failed or was stopped says nothing of what the work takes. */
function quotesOf(agents: readonly InspectedAgent[]): Pick<Inspection, "quotes"> {
  const quoted = agents.flatMap(({ quote, state }) =>
    quote !== undefined && (state === "completed" || state === "partial") ? [quote] : [],
  );
  if (quoted.length === 0) return {};
  return { quotes: { inside: quoted.filter(({ isInside }) => isInside).length, of: quoted.length } };
}

/** Endings that report more than the lines do mean that lines are missing. The other way round, a run was cut off. */
function differences({ id, totals, recorded }: InspectedAgent): readonly string[] {
  if (recorded === undefined) return [];
  const tokens = allTokens(recorded) - allTokens(totals);
  const cost = (recorded.costUsd ?? 0) - totals.pricedCost;
  const what = [
    ...(tokens > 0 ? [`${tokens} more tokens`] : []),
    ...(cost > 1e-9 ? [`$${cost.toFixed(6)} more`] : []),
    ...(recorded.toolUses > totals.toolUses
      ? [`${recorded.toolUses - totals.toolUses} more tool calls`]
      : []),
  ];
  return what.length === 0
    ? []
    : [`${id}: its endings report ${what.join(", ")} than its lines; some lines are missing.`];
}

function allTokens({ usage }: Pick<InspectedAgent["totals"], "usage">): number {
  return contextTokens(usage) + usage.outputTokens;
}

/** The dearest model first. */
function shareByModel(agents: readonly InspectedAgent[]): readonly ModelShare[] {
  const shares = new Map<string, ModelShare>();
  for (const step of agents.flatMap(({ steps }) => steps)) {
    if (step.type !== "turn" && step.type !== "compaction" && step.type !== "lost") continue;
    const { model = "unknown", usage, costUsd: cost, costFrom } = step;
    const durationMs = step.type === "lost" ? 0 : (step.durationMs ?? 0);
    const before = shares.get(model);
    if (step.type === "compaction" && step.model === undefined) continue;
    const isKnown = costFrom !== "unknown" && (before === undefined || before.costUsd !== undefined);
    shares.set(model, {
      model,
      turns: (before?.turns ?? 0) + (step.type === "turn" ? 1 : 0),
      usage: before === undefined ? usage : addUsage(before.usage, usage),
      ...(isKnown ? { costUsd: (before?.costUsd ?? 0) + (cost ?? 0) } : {}),
      modelMs: (before?.modelMs ?? 0) + durationMs,
    });
  }
  return [...shares.values()].toSorted((a, b) => (b.costUsd ?? 0) - (a.costUsd ?? 0) || b.turns - a.turns);
}

/** What took longest first. */
function shareByTool(
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
  // By tool, what the agents cost that its calls have started; unknown when it is of one of them.
  const started = new Map<string, Set<string>>();
  for (const { steps } of agents)
    for (const step of steps)
      if (step.type === "call" && step.agentId !== undefined)
        started.set(step.tool, (started.get(step.tool) ?? new Set()).add(step.agentId));
  const costs = new Map(
    [...started].flatMap(([tool, ids]) => {
      const totals = placed
        .filter(({ path }) => path.some((id) => ids.has(id)))
        .map(({ part }) => part.folded.totals);
      const { costUsd: cost } = totals.reduce(addTotals, noTotals);
      return totals.length === 0 || cost === undefined ? [] : [[tool, cost] as const];
    }),
  );
  return [...shares.values()]
    .map((share) => withAgentsCost(share, costs.get(share.tool)))
    .toSorted((a, b) => b.durationMs - a.durationMs || b.calls - a.calls);
}

function withAgentsCost(share: ToolShare, agentsCost: number | undefined): ToolShare {
  return agentsCost === undefined ? share : { ...share, agentsCost };
}

interface PlacedAgent {
  readonly part: AgentParts;
  readonly parentId?: string;
  /** From the main agent down to itself. */
  readonly path: readonly string[];
  /** The totals of itself and all below it. */
  readonly family: () => readonly InspectedTotals[];
}

/**
 * Each agent below the one that started it, siblings in the order of their start, those of one answer in the order of its
 * calls. Who names no parent that is there, or one below itself, is below the main agent.
 */
function placeAgents(parts: readonly AgentParts[]): readonly PlacedAgent[] {
  const [main, ...others] = parts;
  if (main === undefined) return [];
  const ids = new Set(parts.map(({ id }) => id));
  const callers = new Map(
    parts.flatMap(({ id, folded }) =>
      folded.steps.flatMap((step) => (step.type === "call" ? [[step.callId, id] as const] : [])),
    ),
  );
  const parents = new Map(
    parts.map(({ id, known }) => {
      const named = known?.parentAgentId;
      const caller = known?.toolUseId === undefined ? undefined : callers.get(known.toolUseId);
      return [id, named !== undefined && ids.has(named) ? named : (caller ?? main.id)] as const;
    }),
  );
  const children = Map.groupBy(inOrder(others, parts), ({ id }) =>
    leadsTo(id, main.id, parents) ? (parents.get(id) ?? main.id) : main.id,
  );
  const placed: PlacedAgent[] = [];
  // Everything below an agent follows it without a gap, and is deeper.
  const place = (part: AgentParts, path: readonly string[], parentId?: string): void => {
    const at = placed.length;
    const family = (): readonly InspectedTotals[] => {
      let end = at + 1;
      while ((placed[end]?.path.length ?? 0) > path.length) end += 1;
      return placed.slice(at, end).map((other) => other.part.folded.totals);
    };
    placed.push({ part, path, family, parentId });
  };
  place(main, [main.id]);
  const waiting = (children.get(main.id) ?? []).map((part) => ({ part, above: [main.id] })).reverse();
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { part, above } = next;
    const path = [...above, part.id];
    place(part, path, above.at(-1) ?? main.id);
    waiting.push(...(children.get(part.id) ?? []).map((child) => ({ part: child, above: path })).reverse());
  }
  return placed;
}

/** Agents of one answer start within a moment of each other, in any order. */
function inOrder(others: readonly AgentParts[], parts: readonly AgentParts[]): readonly AgentParts[] {
  const calls = new Map<string, { readonly answer: string; readonly index: number }>();
  for (const { id, folded } of parts) {
    let turns = 0;
    folded.steps.forEach((step, index) => {
      if (step.type === "turn") turns += 1;
      if (step.type === "call") calls.set(step.callId, { answer: `${turns} ${id}`, index });
    });
  }
  const callOf = ({ known }: AgentParts) => calls.get(known?.toolUseId ?? "");
  const starts = new Map<string, number>();
  for (const part of others) {
    const answer = callOf(part)?.answer ?? "";
    starts.set(answer, Math.min(startOf(part), starts.get(answer) ?? Number.POSITIVE_INFINITY));
  }
  const keyed = others.map((part) => {
    const call = callOf(part);
    const start = (call === undefined ? undefined : starts.get(call.answer)) ?? startOf(part);
    return { part, start, index: call?.index ?? -1 };
  });
  // Two that have not started yet are alike, though their difference is no number.
  return keyed
    .toSorted((a, b) => a.start - b.start || a.index - b.index || (a.part.id < b.part.id ? -1 : 1))
    .map(({ part }) => part);
}

/** False for those in a cycle. */
function leadsTo(id: string, main: string, parents: ReadonlyMap<string, string>): boolean {
  const seen = new Set<string>();
  for (let at = id; at !== main; at = parents.get(at) ?? main) {
    if (seen.has(at)) return false;
    seen.add(at);
  }
  return true;
}

function startOf({ folded }: AgentParts): number {
  return folded.startedAt ?? Number.POSITIVE_INFINITY;
}
