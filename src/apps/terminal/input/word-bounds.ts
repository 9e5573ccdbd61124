/** Where the word before an index begins: spaces behind it are passed over. */
export function wordStart(text: string, index: number): number {
  const parts = partsOf(text.slice(0, index));
  let at = index;
  while (parts.length > 0 && isBlank(parts.at(-1))) at -= parts.pop()?.segment.length ?? 0;
  const last = parts.pop();
  if (last === undefined) return at;
  at -= last.segment.length;
  // Signs that are adjacent go together.
  while (last.isWordLike !== true && isSign(parts.at(-1))) at -= parts.pop()?.segment.length ?? 0;
  return at;
}

/** Where the word after an index ends: spaces before it are passed over. */
export function wordEnd(text: string, index: number): number {
  const parts = partsOf(text.slice(index)).toReversed();
  let at = index;
  while (parts.length > 0 && isBlank(parts.at(-1))) at += parts.pop()?.segment.length ?? 0;
  const first = parts.pop();
  if (first === undefined) return at;
  at += first.segment.length;
  while (first.isWordLike !== true && isSign(parts.at(-1))) at += parts.pop()?.segment.length ?? 0;
  return at;
}

let segmenter: Intl.Segmenter | undefined;

/** Made with the first use, since that takes a while. Words are near; what is far away need not be cut. */
function partsOf(text: string): Intl.SegmentData[] {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "word" });
  return [...segmenter.segment(text)];
}

function isBlank(part: Intl.SegmentData | undefined): boolean {
  return part !== undefined && /^\s+$/.test(part.segment);
}

function isSign(part: Intl.SegmentData | undefined): boolean {
  return part !== undefined && part.isWordLike !== true && !isBlank(part);
}
