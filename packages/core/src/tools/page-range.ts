export type PageRange =
  | { readonly type: "pages"; readonly first: number; readonly last: number }
  | { readonly type: "refused"; readonly reason: string };

/** Which pages to show: `3`, `10-20`, `10-`; the first ones when nothing is said. */
export function readPageRange(
  given: string | undefined,
  { total, limit }: { readonly total: number; readonly limit: number },
): PageRange {
  if (given === undefined) return { type: "pages", first: 1, last: Math.min(total, limit) };
  const match = /^\s*(\d+)\s*(?:([-\u2013])\s*(\d*))?\s*$/.exec(given);
  if (match === null) return refused(`"${given}" is not a page range; write "3", "10-20" or "10-".`);
  const first = Number(match[1]);
  const open = match[2] !== undefined && (match[3] ?? "") === "";
  const wanted = match[2] === undefined ? first : Number(match[3]);
  const last = Math.min(total, open ? first + limit - 1 : wanted);
  if (first < 1 || first > total)
    return refused(`The file has pages 1 to ${total}; there is no page ${first}.`);
  if (last < first) return refused(`"${given}" ends before it begins; write it as "first-last".`);
  if (last - first + 1 > limit)
    return refused(`"${given}" is more than ${limit} pages; ask for fewer at a time.`);
  return { type: "pages", first, last };
}

function refused(reason: string): PageRange {
  return { type: "refused", reason };
}
