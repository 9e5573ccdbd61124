import type { AgentParts } from "./inspect-session.ts";

export interface PlacedAgent {
  readonly part: AgentParts;
  readonly parentId?: string;
  /** From the main agent down to itself. */
  readonly path: readonly string[];
}

/**
 * Each agent below the one that started it, siblings in the order of their start. Who names no parent that is there, or
 * one below itself, stands below the main agent.
 */
export function placeAgents(parts: readonly AgentParts[]): readonly PlacedAgent[] {
  const [main, ...others] = parts;
  if (main === undefined) return [];
  const parents = findParents(parts, main.id);
  const children = Map.groupBy(
    others.toSorted((a, b) => startOf(a) - startOf(b) || (a.id < b.id ? -1 : 1)),
    ({ id }) => (leadsTo(id, main.id, parents) ? (parents.get(id) ?? main.id) : main.id),
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
