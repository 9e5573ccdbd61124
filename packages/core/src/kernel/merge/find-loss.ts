import { diffLines } from "../../tools/line-diff.ts";

/** What git has made of a text, what a resolver has made of that, and what both sides began with. */
export interface ResolvedText {
  /** With git's markers where it conflicts. */
  readonly merged: string;
  readonly result: string;
  readonly base: string;
}

/**
 * What a resolver has lost of a text, as the end of a sentence. Between markers it may write anew; elsewhere it may add lines and
 * adapt them. What it may not do anywhere is to drop what a side has written, or to bring back what a side has removed.
 */
export function findLoss({ merged, result, base }: ResolvedText): string | undefined {
  const { clean, seams, sides, common } = readMerged(merged);
  const resultLines = linesOf(result);
  const baseLines = new Set(linesOf(base));
  const known = new Set([...clean, ...sides, ...common]);
  const restored = resultLines.find((line) => hasWords(line) && baseLines.has(line) && !known.has(line));
  if (restored !== undefined) return `restores ${shown(restored)}, which one side has removed`;
  const dropped =
    findDropped(clean, resultLines, seams) ?? findLeftOut({ sides, common, known }, resultLines);
  return dropped === undefined ? undefined : `drops ${shown(dropped)}`;
}

interface MergedText {
  /** The lines that do not conflict. */
  readonly clean: readonly string[];
  /** How many of them are before each conflict. */
  readonly seams: readonly number[];
  /** The lines of both sides between markers, and those that they began with there. */
  readonly sides: readonly string[];
  readonly common: readonly string[];
}

/** Seven, or as many as `conflict-marker-size` of the attributes says. */
const marker = /^(?:(<{7,})|(\|{7,})|(={7,})|(>{7,}))(?: |$)/;

function readMerged(text: string): MergedText {
  const clean: string[] = [];
  const seams: number[] = [];
  const sides: string[] = [];
  const common: string[] = [];
  let part = clean;
  for (const line of linesOf(text)) {
    const [found, begins, isBase, divides] = marker.exec(line) ?? [];
    // A line of `=` is a heading elsewhere.
    if (found === undefined || (part === clean && begins === undefined)) part.push(line);
    else if (begins !== undefined) {
      seams.push(clean.length);
      part = sides;
    } else if (isBase !== undefined) part = common;
    else part = divides === undefined ? clean : sides;
  }
  return { clean, seams, sides, common };
}

/** Without what an editor or git itself may change at the end of a line. */
function linesOf(text: string): readonly string[] {
  return text.split("\n").map((line) => line.trimEnd());
}

/** A line that does not conflict and that nothing has come in the place of. */
function findDropped(
  clean: readonly string[],
  result: readonly string[],
  seams: readonly number[],
): string | undefined {
  if (isWithin(clean, result)) return undefined;
  const end = "\n";
  const { hunks, shortened } = diffLines(clean.join(end) + end, result.join(end) + end);
  for (const { oldStart, lines } of hunks) {
    let at = oldStart - 1;
    let removed: string[] = [];
    let added: string[] = [];
    for (const line of [...lines, " "]) {
      if (line.startsWith("-")) removed.push(line.slice(1));
      else if (line.startsWith("+")) added.push(line.slice(1));
      else {
        const isAtSeam = seams.some((seam) => seam >= at && seam <= at + removed.length);
        const dropped = firstDropped(removed, added, isAtSeam);
        if (dropped !== undefined) return dropped;
        at += removed.length + 1;
        [removed, added] = [[], []];
      }
    }
  }
  if (!shortened) return undefined;
  const kept = new Set(result);
  return clean.find((line) => hasWords(line) && !kept.has(line));
}

/** Where a conflict was, added lines may be its resolution, so that their number says nothing. */
function firstDropped(
  removed: readonly string[],
  added: readonly string[],
  isAtSeam: boolean,
): string | undefined {
  const missing = removed.filter((line) => hasWords(line) && !isCovered(line, added));
  const isAdapted = !isAtSeam && removed.length <= added.length;
  return isAdapted ? undefined : missing[0];
}

/** A line of a side that is left out, where nothing new was written that may have taken it in. */
function findLeftOut(
  { sides, common, known }: Pick<MergedText, "sides" | "common"> & { readonly known: ReadonlySet<string> },
  result: readonly string[],
): string | undefined {
  const kept = new Set(result);
  if (result.some((line) => hasWords(line) && !known.has(line))) return undefined;
  const before = new Set(common);
  return sides.find(
    (line) => hasWords(line) && !before.has(line) && !kept.has(line) && !isCovered(line, result),
  );
}

function isWithin(few: readonly string[], many: readonly string[]): boolean {
  let at = 0;
  for (const line of many) if (line === few[at]) at += 1;
  return at === few.length;
}

function wordsOf(line: string): readonly string[] {
  return line.match(/[\p{L}\p{N}_]+/gu) ?? [];
}

function hasWords(line: string): boolean {
  return wordsOf(line).length > 0;
}

/** Another line has all words of this one. */
function isCovered(line: string, others: readonly string[]): boolean {
  const words = wordsOf(line);
  return others.some((other) => {
    const there = new Set(wordsOf(other));
    return words.every((word) => there.has(word));
  });
}

function shown(line: string): string {
  const text = line.trim();
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
