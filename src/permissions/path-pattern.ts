/**
 * Whether a gitignore-style pattern, anchored at a directory, covers a path. Both are absolute and in canonical form.
 * A pattern without a slash matches at any depth; a match of a folder covers everything in it.
 */
export function coversPath(pattern: string, anchor: string, path: string): boolean {
  const inside = relativeTo(anchor, path);
  if (inside === undefined) return false;
  const bare = pattern.replace(/^\.\//, "").replace(/\/+$/, "");
  if (bare === "" || bare === ".") return true;
  const segments = bare.split("/");
  const anyDepth = segments.length === 1 ? ["**", ...segments] : segments;
  return covers(anyDepth, inside);
}

/** The segments of a path below a directory, or undefined when it is not below it. */
function relativeTo(anchor: string, path: string): readonly string[] | undefined {
  const base = anchor.endsWith("/") ? anchor : `${anchor}/`;
  if (path === anchor) return [];
  return path.startsWith(base) ? path.slice(base.length).split("/") : undefined;
}

/** Follows all positions the pattern can be in at once, so the work is bounded by pattern times path. */
function covers(pattern: readonly string[], path: readonly string[]): boolean {
  let positions = closure(new Set([0]), pattern);
  if (positions.has(pattern.length)) return true;
  for (const segment of path) {
    const next = new Set<number>();
    for (const position of positions) {
      const expected = pattern[position];
      if (expected === "**") next.add(position);
      else if (expected !== undefined && matchesSegment(expected, segment)) next.add(position + 1);
    }
    positions = closure(next, pattern);
    if (positions.has(pattern.length)) return true;
  }
  return false;
}

/** `**` may stand for nothing, except at the end, where something must follow the folder. */
function closure(positions: Set<number>, pattern: readonly string[]): Set<number> {
  for (const position of positions) {
    if (pattern[position] === "**" && position < pattern.length - 1) positions.add(position + 1);
  }
  const last = pattern.length - 1;
  if (pattern[last] === "**" && positions.has(last)) positions.add(pattern.length);
  return positions;
}

function matchesSegment(pattern: string, segment: string): boolean {
  let p = 0;
  let s = 0;
  let star = -1;
  let mark = 0;
  while (s < segment.length) {
    if (pattern[p] === "?" || (pattern[p] === segment[s] && pattern[p] !== "*")) {
      p += 1;
      s += 1;
    } else if (pattern[p] === "*") {
      star = p;
      mark = s;
      p += 1;
    } else if (star !== -1) {
      p = star + 1;
      mark += 1;
      s = mark;
    } else return false;
  }
  while (pattern[p] === "*") p += 1;
  return p === pattern.length;
}
