import { diffParts } from "../../shared/diff-parts.ts";
import { cleanText } from "../screen/row.ts";

/** From a character on, up to another one that is not part of it. */
export interface TextRange {
  readonly from: number;
  readonly to: number;
}

const maxParts = 400;
/** Lines that have less in common are others, and not the same one changed. */
const minShared = 0.4;

/** The words that differ between two lines, as they are shown; undefined where the lines have too little in common. */
export function changedWords(
  before: string,
  after: string,
): { readonly before: readonly TextRange[]; readonly after: readonly TextRange[] } | undefined {
  const [a, b] = [partsOf(cleanText(before)), partsOf(cleanText(after))];
  if (a.length > maxParts || b.length > maxParts) return undefined;
  const ranges = { before: [] as TextRange[], after: [] as TextRange[] };
  let [atBefore, atAfter, shared] = [0, 0, 0];
  for (const { kind, text } of diffParts(a, b)) {
    const { length } = text;
    if (kind === "removed") extend(ranges.before, atBefore, length);
    if (kind === "added") extend(ranges.after, atAfter, length);
    if (kind === "same") shared += text.trim().length;
    if (kind !== "added") atBefore += length;
    if (kind !== "removed") atAfter += length;
  }
  const whole = Math.max(before.replaceAll(/\s/g, "").length, after.replaceAll(/\s/g, "").length);
  return shared < whole * minShared ? undefined : ranges;
}

function partsOf(text: string): readonly string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

/** Adjacent parts are one range. */
function extend(ranges: TextRange[], from: number, length: number): void {
  const last = ranges.at(-1);
  if (last?.to === from) ranges[ranges.length - 1] = { from: last.from, to: from + length };
  else ranges.push({ from, to: from + length });
}
