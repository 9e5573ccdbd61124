/** One place in a text, from `start` up to but without `end`. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Where a text occurs. In a text with CRLF line ends the wanted lines may be given with LF, because that is how they
 * are shown; elsewhere only the very same characters count. Places do not overlap unless `overlapping` is asked for.
 */
export function findOccurrences(text: string, wanted: string, overlapping = false): TextRange[] {
  if (wanted === "") return [];
  if (!text.includes("\r\n")) return findExactly(text, wanted, overlapping);
  const places = findExactly(toLf(text), toLf(wanted), overlapping);
  // Places in the text without carriage returns, as places in the text with them; both ascend.
  const toOriginal = (wanted: readonly number[]): number[] => {
    let removed = 0;
    let next = text.indexOf("\r\n");
    return wanted.map((position) => {
      while (next !== -1 && next - removed < position) {
        removed += 1;
        next = text.indexOf("\r\n", next + 2);
      }
      return position + removed;
    });
  };
  const starts = toOriginal(places.map(({ start }) => start));
  const ends = toOriginal(places.map(({ end }) => end));
  return places.map((_, index) => ({ start: starts[index] ?? 0, end: ends[index] ?? 0 }));
}

/** Puts a text into each range; its line ends become those of the place it goes to. */
export function replaceRanges(text: string, ranges: readonly TextRange[], replacement: string): string {
  const crlf = text.includes("\r\n");
  const mostly = crlf && countOf(text, "\r\n") * 2 > countOf(text, "\n") ? "\r\n" : "\n";
  const parts: string[] = [];
  let at = 0;
  for (const { start, end } of ranges) {
    const replaced = text.slice(start, end);
    parts.push(text.slice(at, start), crlf ? withEnds(replacement, endsOf(replaced) ?? mostly) : replacement);
    at = end;
  }
  parts.push(text.slice(at));
  return parts.join("");
}

export function toLf(text: string): string {
  return text.replaceAll("\r\n", "\n");
}

function findExactly(text: string, wanted: string, overlapping: boolean): TextRange[] {
  const places: TextRange[] = [];
  for (let at = text.indexOf(wanted); at !== -1; ) {
    places.push({ start: at, end: at + wanted.length });
    at = text.indexOf(wanted, at + (overlapping ? 1 : wanted.length));
  }
  return places;
}

function endsOf(text: string): string | undefined {
  const at = text.indexOf("\n");
  if (at === -1) return undefined;
  return text[at - 1] === "\r" ? "\r\n" : "\n";
}

function withEnds(text: string, ends: string): string {
  return ends === "\n" ? toLf(text) : toLf(text).replaceAll("\n", "\r\n");
}

function countOf(text: string, part: string): number {
  return text.split(part).length - 1;
}
