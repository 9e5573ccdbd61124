import { widthOf } from "../../cli/views/strip-control-characters.ts";

let segmenter: Intl.Segmenter | undefined;

/** What a person sees as one character each. What finds them is made with the first text that needs it: that takes a while. */
export function clusters(text: string): readonly string[] {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

const known = new Map<string, number>();
const maxKnown = 2000;

/** Cells that a text takes which is not plain ASCII. */
export function cellWidth(text: string): number {
  let width = 0;
  for (const cluster of clusters(text)) width += clusterWidth(cluster);
  return width;
}

function clusterWidth(cluster: string): number {
  const cached = known.get(cluster);
  if (cached !== undefined) return cached;
  const width = measure(cluster);
  if (known.size >= maxKnown) known.clear();
  known.set(cluster, width);
  return width;
}

/** An emoji of any number of parts takes two cells; marks take none, but those that stand beside their letter take one. */
function measure(cluster: string): number {
  if (/^\p{RGI_Emoji}$/v.test(cluster)) return 2;
  const [base = "", ...marks] = Array.from(cluster);
  const beside = marks.filter((mark) => /^\p{Spacing_Mark}$/u.test(mark)).length;
  return Math.min(2, widthOf(base) + beside);
}
