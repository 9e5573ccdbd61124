/** The cycles of a graph, each as the way round from a node back to itself; one per knot is enough to act on. */
export function findCycles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const finished = new Set<string>();
  const path: string[] = [];
  const visit = (node: string): void => {
    const seenAt = path.indexOf(node);
    if (seenAt !== -1) {
      cycles.push([...path.slice(seenAt), node]);
      return;
    }
    if (finished.has(node)) return;
    path.push(node);
    for (const next of graph.get(node) ?? []) visit(next);
    path.pop();
    finished.add(node);
  };
  for (const node of graph.keys()) visit(node);
  return cycles;
}
