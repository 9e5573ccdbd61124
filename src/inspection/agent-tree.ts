import type { AgentParts } from "./inspect-session.ts";

export interface PlacedAgent {
  readonly part: AgentParts;
  readonly parentId?: string;
  /** From the main agent down to itself. */
  readonly path: readonly string[];
}

/**
 * Each agent below the one that started it, siblings in the order of their start, those of one answer in the order of its
 * calls. Who names no parent that is there, or one below itself, stands below the main agent.
 */
export function placeAgents(parts: readonly AgentParts[]): readonly PlacedAgent[] {
  const [main, ...others] = parts;
  if (main === undefined) return [];
  const parents = findParents(parts, main.id);
  const children = Map.groupBy(inOrder(others, parts), ({ id }) =>
    leadsTo(id, main.id, parents) ? (parents.get(id) ?? main.id) : main.id,
  );
  const placed: PlacedAgent[] = [{ part: main, path: [main.id] }];
  const waiting = (children.get(main.id) ?? []).map((part) => ({ part, above: [main.id] })).reverse();
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { part, above } = next;
    const path = [...above, part.id];
    placed.push({ part, parentId: above.at(-1) ?? main.id, path });
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

function findParents(parts: readonly AgentParts[], main: string): ReadonlyMap<string, string> {
  const ids = new Set(parts.map(({ id }) => id));
  const callers = new Map(
    parts.flatMap(({ id, folded }) =>
      folded.steps.flatMap((step) => (step.type === "call" ? [[step.callId, id] as const] : [])),
    ),
  );
  return new Map(
    parts.map(({ id, known }) => {
      const named = known?.parentAgentId;
      const caller = known?.toolUseId === undefined ? undefined : callers.get(known.toolUseId);
      return [id, named !== undefined && ids.has(named) ? named : (caller ?? main)] as const;
    }),
  );
}

/** False for those who stand in a circle. */
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
