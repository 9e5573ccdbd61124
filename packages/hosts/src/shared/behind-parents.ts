/** The same list with each agent behind the one that started it, where that is in the list too; else it stays where it is. */
export function behindParents<Agent extends { readonly id: string; readonly parentId?: string }>(
  agents: readonly Agent[],
): readonly Agent[] {
  const ids = new Set(agents.map(({ id }) => id));
  const isBelow = ({ id, parentId }: Agent): boolean =>
    parentId !== undefined && parentId !== id && ids.has(parentId);
  const children = Map.groupBy(agents.filter(isBelow), ({ parentId }) => parentId);
  if (children.size === 0) return agents;
  const placed = new Set<Agent>();
  const place = (agent: Agent): void => {
    if (placed.has(agent)) return;
    placed.add(agent);
    for (const child of children.get(agent.id) ?? []) place(child);
  };
  for (const agent of agents) if (!isBelow(agent)) place(agent);
  // Those in a loop, which have no parent outside of it.
  for (const agent of agents) place(agent);
  return [...placed];
}
