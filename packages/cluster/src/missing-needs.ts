/** What a plan needs of a worker, as words that can be compared: `queue:gpu`, `tool:deploy`, `mcp:github`, `machine:build-1`. */

/** Sorted and without repeats, so that equal needs are equal texts. */
export function normalizeNeeds(needs: readonly string[]): readonly string[] {
  return [...new Set(needs)].sort();
}

/** The needs that are not met. */
export function missingNeeds(needs: readonly string[], has: readonly string[]): readonly string[] {
  return needs.filter((need) => !has.includes(need));
}

/**
 * What keeps an agent from starting: for each live worker what is missing there, reduced to the shortest list, since that worker is
 * the one that is nearest to being able to run it. Without workers everything is missing.
 */
export function missingEverywhere(
  needs: readonly string[],
  workers: readonly { readonly has: readonly string[] }[],
): readonly string[] {
  const isMissing = workers.map(({ has }) => missingNeeds(needs, has));
  return isMissing.sort((a, b) => a.length - b.length)[0] ?? needs;
}
