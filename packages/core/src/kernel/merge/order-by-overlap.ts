export interface ChangedFiles {
  readonly agent: string;
  readonly files: readonly string[];
  /** The agent whose worktree it began with. */
  readonly parentId?: string | undefined;
}

/**
 * The order in which children are integrated: those that touch what no other one touches first, since nothing can keep them
 * out; then those that share the fewest files with others. A child comes behind the one whose changes it began with, and
 * equals stay in the order they were started in.
 */
export function orderByOverlap<Child extends ChangedFiles>(children: readonly Child[]): readonly Child[] {
  const shared = new Map(
    children.map((child) => [
      child.agent,
      children
        .filter((other) => other !== child)
        .reduce((sum, other) => sum + countShared(child.files, other.files), 0),
    ]),
  );
  const sorted = children
    .map((child, at) => ({ child, at, overlap: shared.get(child.agent) ?? 0 }))
    .sort((a, b) => a.overlap - b.overlap || a.at - b.at)
    .map(({ child }) => child);
  return parentsFirst(sorted);
}

function parentsFirst<Child extends ChangedFiles>(sorted: readonly Child[]): readonly Child[] {
  const byId = new Map(sorted.map((child) => [child.agent, child]));
  const placed = new Set<Child>();
  const place = (child: Child): void => {
    if (placed.has(child)) return;
    const parent = child.parentId === undefined ? undefined : byId.get(child.parentId);
    // A record that names itself as its parent is no reason to go round in circles.
    if (parent !== undefined && parent !== child && parent.parentId !== child.agent) place(parent);
    placed.add(child);
  };
  for (const child of sorted) place(child);
  return [...placed];
}

/** The same path, or a file of the one where the other has a folder. */
function countShared(own: readonly string[], others: readonly string[]): number {
  const known = new Set(others);
  const folders = new Set(others.flatMap(foldersOf));
  return own.filter(
    (path) => known.has(path) || folders.has(path) || foldersOf(path).some((folder) => known.has(folder)),
  ).length;
}

function foldersOf(path: string): readonly string[] {
  const parts = path.split("/").slice(0, -1);
  return parts.map((_, at) => parts.slice(0, at + 1).join("/"));
}
