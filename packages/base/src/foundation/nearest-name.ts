/** The known name a person most likely meant, if one is close enough to be worth saying, at most `slips` changes away. */
export function nearestName(
  name: string,
  known: Iterable<string>,
  slips = Number.POSITIVE_INFINITY,
): string | undefined {
  const wanted = bare(name);
  let best: { name: string; distance: number } | undefined;
  for (const candidate of known) {
    const other = bare(candidate);
    if (other === wanted) return candidate;
    const limit = Math.min(slips, Math.max(1, Math.floor(Math.min(wanted.length, other.length) / 3)));
    const distance = editDistance(
      wanted,
      other,
      best === undefined ? limit : Math.min(limit, best.distance - 1),
    );
    if (distance !== undefined) best = { name: candidate, distance };
  }
  return best?.name;
}

/** Case, hyphens, underscores and spaces are what people get wrong most. */
function bare(name: string): string {
  return name
    .slice(0, 200)
    .toLowerCase()
    .replace(/[-_\s]/g, "");
}

/** Insertions, deletions, changes and swaps of neighbours; undefined when it is more than `limit`. */
function editDistance(a: string, b: string, limit: number): number | undefined {
  if (limit < 0 || Math.abs(a.length - b.length) > limit) return undefined;
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let cost = Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, change);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (beforePrevious[j - 2] ?? 0) + 1);
      }
      current.push(cost);
    }
    beforePrevious = previous;
    previous = current;
  }
  const distance = previous[b.length] ?? 0;
  return distance <= limit ? distance : undefined;
}
