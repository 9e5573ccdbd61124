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

/** The groups of nodes that each lead to all others of their group, largest first: what has to be read together. */
export function findKnots(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const knots: string[][] = [];
  const order = new Map<string, number>();
  const open: string[] = [];
  const visit = (node: string): number => {
    const own = order.size;
    order.set(node, own);
    open.push(node);
    let low = own;
    for (const next of graph.get(node) ?? []) {
      if (!order.has(next)) low = Math.min(low, visit(next));
      else if (open.includes(next)) low = Math.min(low, order.get(next) ?? low);
    }
    if (low < own) return low;
    const knot = open.splice(open.indexOf(node));
    if (knot.length > 1) knots.push(knot.toSorted());
    return low;
  };
  for (const node of graph.keys()) if (!order.has(node)) visit(node);
  return knots.toSorted((a, b) => b.length - a.length);
}
