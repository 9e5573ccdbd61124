/** One hunk of a patch, in the shape that viewers of transcripts know. */
export interface PatchHunk {
  readonly oldStart: number;
  readonly oldLines: number;
  readonly newStart: number;
  readonly newLines: number;
  /** Each line with ` `, `-` or `+` before it. */
  readonly lines: readonly string[];
}

export interface LineDiff {
  readonly hunks: readonly PatchHunk[];
  readonly added: number;
  readonly removed: number;
  /** Hunks were left out because there were too many. */
  readonly shortened: boolean;
}

interface Step {
  readonly kind: " " | "-" | "+";
  readonly line: string;
}

/** What changed between two texts, by lines. Very different texts count as replaced between their first and last difference. */
export function diffLines(before: string, after: string): LineDiff {
  if (before === after) return { hunks: [], added: 0, removed: 0, shortened: false };
  const { start, end } = commonEnds(before, after);
  const oldMiddle = before.slice(start, before.length - end);
  const newMiddle = after.slice(start, after.length - end);
  if (oldMiddle.length + newMiddle.length > maxCompared) {
    return { hunks: [], added: countBreaks(newMiddle), removed: countBreaks(oldMiddle), shortened: true };
  }
  const oldLines = splitLines(oldMiddle);
  const newLines = splitLines(newMiddle);
  const steps = shortestEdit(oldLines, newLines) ?? [
    ...oldLines.map((line): Step => ({ kind: "-", line })),
    ...newLines.map((line): Step => ({ kind: "+", line })),
  ];
  const firstLine = 1 + countBreaks(before.slice(0, start));
  const changed = steps.flatMap(({ kind }, index) => (kind === " " ? [] : [index]));
  const spans: [number, number][] = [];
  for (const index of changed) {
    const last = spans.at(-1);
    if (last !== undefined && index - last[1] <= 2 * contextLines) last[1] = index;
    else spans.push([index, index]);
  }
  let oldLine = firstLine;
  let newLine = firstLine;
  let at = 0;
  const hunks = spans.map(([first, last]) => {
    const from = Math.max(0, first - contextLines);
    oldLine += countLines(steps.slice(at, from), "-");
    newLine += countLines(steps.slice(at, from), "+");
    at = Math.min(steps.length, last + 1 + contextLines);
    const part = steps.slice(from, at);
    const oldLines = countLines(part, "-");
    const newLines = countLines(part, "+");
    const hunk = {
      oldStart: oldLines === 0 ? oldLine - 1 : oldLine,
      oldLines,
      newStart: newLines === 0 ? newLine - 1 : newLine,
      newLines,
      lines: part.flatMap(({ kind, line }): string[] => {
        if (line.endsWith("\n")) return [`${kind}${line.slice(0, -1)}`];
        return [`${kind}${line}`, "\\ No newline at end of file"];
      }),
    };
    oldLine += oldLines;
    newLine += newLines;
    return hunk;
  });
  let lines = 0;
  const kept = hunks.filter((hunk) => {
    lines += hunk.lines.length;
    return lines <= maxPatchLines;
  });
  return {
    hunks: kept,
    added: steps.filter(({ kind }) => kind === "+").length,
    removed: steps.filter(({ kind }) => kind === "-").length,
    shortened: kept.length < hunks.length,
  };
}

/** How many characters at both ends need no comparing: whole lines that are the same, less those shown around a change. */
function commonEnds(before: string, after: string): { readonly start: number; readonly end: number } {
  const shorter = Math.min(before.length, after.length);
  let same = 0;
  while (same < shorter && before.charCodeAt(same) === after.charCodeAt(same)) same += 1;
  let start = same;
  for (let lines = 0; lines <= contextLines && start > 0; lines += 1) {
    start = before.lastIndexOf("\n", start - 2) + 1;
  }
  let end = 0;
  const most = shorter - same;
  while (
    end < most &&
    before.charCodeAt(before.length - 1 - end) === after.charCodeAt(after.length - 1 - end)
  )
    end += 1;
  let at = before.length - end;
  for (let lines = 0; lines <= contextLines && at < before.length; lines += 1) {
    const next = before.indexOf("\n", at);
    at = next === -1 ? before.length : next + 1;
  }
  return { start, end: before.length - at };
}

/** Lines with their ends, so that a missing last line break is a difference. */
function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function countBreaks(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

/** Myers' greedy algorithm; undefined when the texts differ in more than `maxDifferences` lines. */
function shortestEdit(before: readonly string[], after: readonly string[]): Step[] | undefined {
  const limit = Math.min(maxDifferences, before.length + after.length);
  const center = limit + 1;
  const furthest = new Int32Array(2 * limit + 3);
  const trace: Int32Array[] = [];
  for (let distance = 0; distance <= limit; distance += 1) {
    trace.push(furthest.slice(center - distance - 1, center + distance + 2));
    for (let diagonal = -distance; diagonal <= distance; diagonal += 2) {
      const down = goesDown(furthest, center + diagonal, diagonal, distance);
      let x = down ? (furthest[center + diagonal + 1] ?? 0) : (furthest[center + diagonal - 1] ?? 0) + 1;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal]) x += 1;
      furthest[center + diagonal] = x;
      if (x >= before.length && x - diagonal >= after.length) return walkBack(trace, before, after);
    }
  }
  return undefined;
}

function walkBack(trace: readonly Int32Array[], before: readonly string[], after: readonly string[]): Step[] {
  const steps: Step[] = [];
  let x = before.length;
  let y = after.length;
  for (let distance = trace.length - 1; distance >= 0; distance -= 1) {
    const furthest = trace[distance] ?? new Int32Array();
    const center = distance + 1;
    const diagonal = x - y;
    const down = goesDown(furthest, center + diagonal, diagonal, distance);
    const previousX = distance === 0 ? 0 : (furthest[center + diagonal + (down ? 1 : -1)] ?? 0);
    const previousY = distance === 0 ? 0 : previousX - (diagonal + (down ? 1 : -1));
    while (x > previousX && y > previousY) {
      x -= 1;
      y -= 1;
      steps.push({ kind: " ", line: before[x] ?? "" });
    }
    if (distance > 0)
      steps.push(down ? { kind: "+", line: after[y - 1] ?? "" } : { kind: "-", line: before[x - 1] ?? "" });
    x = previousX;
    y = previousY;
  }
  return steps.reverse();
}

function goesDown(furthest: Int32Array, at: number, diagonal: number, distance: number): boolean {
  return (
    diagonal === -distance || (diagonal !== distance && (furthest[at - 1] ?? 0) < (furthest[at + 1] ?? 0))
  );
}

function countLines(steps: readonly Step[], side: "-" | "+"): number {
  return steps.filter(({ kind }) => kind === " " || kind === side).length;
}

const contextLines = 3;
const maxDifferences = 600;
const maxPatchLines = 1000;
const maxCompared = 2_000_000;
