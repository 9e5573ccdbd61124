/** A part of two texts, such as a line or a word, with whether only one of them has it. */
export interface DiffPart {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** More cells than this take too long; the middle is then shown as replaced as a whole. */
const maxCells = 250_000;

/** The lines of two texts, with what only one of them has. */
export function diffLines(before: string, after: string): readonly DiffPart[] {
  return diffParts(linesOf(before), linesOf(after));
}

/** The parts of two texts in order, with what only one of them has. */
export function diffParts(a: readonly string[], b: readonly string[]): readonly DiffPart[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const same = (text: string): DiffPart => ({ kind: "same", text });
  return [
    ...a.slice(0, start).map(same),
    ...diffMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ];
}

function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function diffMiddle(a: readonly string[], b: readonly string[]): readonly DiffPart[] {
  if (a.length * b.length > maxCells) return [...removed(a), ...added(b)];
  // How many lines the rests of both texts have in common, from each pair of places on.
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const [row, below] = [lengths[i], lengths[i + 1]];
      if (row === undefined || below === undefined) continue;
      row[j] = a[i] === b[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
    }
  const lines: DiffPart[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    const down = lengths[i + 1]?.[j] ?? 0;
    const right = lengths[i]?.[j + 1] ?? 0;
    if (a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i] ?? "" });
      i += 1;
      j += 1;
    } else if (down >= right) lines.push(...removed(a.slice(i, ++i)));
    else lines.push(...added(b.slice(j, ++j)));
  }
  return [...lines, ...removed(a.slice(i)), ...added(b.slice(j))];
}

function removed(lines: readonly string[]): readonly DiffPart[] {
  return lines.map((text) => ({ kind: "removed", text }));
}

function added(lines: readonly string[]): readonly DiffPart[] {
  return lines.map((text) => ({ kind: "added", text }));
}
