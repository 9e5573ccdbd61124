/** Where a motion leads, from a cursor in a text of lines. */
export interface VimTarget {
  readonly to: number;
  /** The character at the end belongs to what an operator takes. */
  readonly isInclusive?: boolean;
  /** An operator takes whole lines. */
  readonly isByLine?: boolean;
}

export function lineStart(text: string, at: number): number {
  return text.lastIndexOf("\n", at - 1) + 1;
}

export function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end === -1 ? text.length : end;
}

/** The motions that need no more than their name. Undefined where it cannot go. */
export function findTarget(motion: string, text: string, at: number, count: number): VimTarget | undefined {
  switch (motion) {
    case "h":
      return { to: Math.max(lineStart(text, at), at - count) };
    case "l":
    case " ":
      return { to: Math.min(lineEnd(text, at), at + count) };
    case "0":
      return { to: lineStart(text, at) };
    case "^":
      return { to: firstWord(text, at) };
    case "$":
      return { to: Math.max(lineStart(text, at), lineEnd(text, at) - 1), isInclusive: true };
    case "gg":
      return { to: firstWord(text, 0), isByLine: true };
    case "G":
      return { to: firstWord(text, lineStart(text, text.length)), isByLine: true };
    case "j":
    case "k":
      return otherLine(text, at, motion === "j" ? count : -count);
    case "w":
    case "W":
      return { to: repeat(count, at, (from) => nextWord(text, from, motion === "W")) };
    case "b":
    case "B":
      return { to: repeat(count, at, (from) => wordBefore(text, from, motion === "B")) };
    case "e":
    case "E":
      return { to: repeat(count, at, (from) => wordEnd(text, from, motion === "E")), isInclusive: true };
    default:
      return undefined;
  }
}

/** `f`, `F`, `t` and `T` with a character, in the line of the cursor. */
export function findCharacter(
  kind: string,
  sign: string,
  text: string,
  at: number,
  count: number,
): VimTarget | undefined {
  const isForward = kind === "f" || kind === "t";
  const [start, end] = [lineStart(text, at), lineEnd(text, at)];
  // Till stops before a character, so the one beside the cursor is passed over when it is repeated.
  let found = at;
  for (let left = count; left > 0; left -= 1) {
    found = isForward ? text.indexOf(sign, found + 1) : text.lastIndexOf(sign, found - 1);
    if (found < start || found >= end || (found === 0 && at === 0)) return undefined;
  }
  if (kind === "t") return { to: found - 1, isInclusive: true };
  if (kind === "T") return { to: found + 1 };
  return { to: found, isInclusive: isForward };
}

const pairs: ReadonlyMap<string, readonly [open: string, close: string]> = new Map(
  (["()b", "[]", "{}B", "<>"] as const).flatMap((names) =>
    Array.from(names, (name) => [name, [names.charAt(0), names.charAt(1)]] as const),
  ),
);

/** What `iw`, `a"`, `i(` and the like stand for: from and to, without the last. */
export function findObject(
  isWhole: boolean,
  name: string,
  text: string,
  at: number,
): readonly [number, number] | undefined {
  if (name === "w" || name === "W") return wordAround(text, at, { isWhole, isBig: name === "W" });
  const pair = pairs.get(name);
  if (pair !== undefined) return between(text, at, pair, isWhole);
  return /^["'`]$/.test(name) ? quoted(text, at, name, isWhole) : undefined;
}

function firstWord(text: string, at: number): number {
  const start = lineStart(text, at);
  const blank = /^[^\S\n]*/.exec(text.slice(start))?.[0].length ?? 0;
  return Math.min(start + blank, lineEnd(text, at));
}

function otherLine(text: string, at: number, by: number): VimTarget | undefined {
  const lines = text.split("\n");
  const row = text.slice(0, at).split("\n").length - 1;
  const wanted = Math.max(0, Math.min(lines.length - 1, row + by));
  if (wanted === row) return undefined;
  const start = lines.slice(0, wanted).reduce((sum, line) => sum + line.length + 1, 0);
  const column = at - lineStart(text, at);
  return { to: start + Math.min(column, lines[wanted]?.length ?? 0), isByLine: true };
}

function repeat(count: number, at: number, step: (from: number) => number): number {
  let to = at;
  for (let left = count; left > 0; left -= 1) to = step(to);
  return to;
}

type Kind = "space" | "word" | "other";

function kindAt(text: string, at: number, isBig: boolean): Kind {
  const sign = text[at] ?? " ";
  if (/\s/.test(sign)) return "space";
  return isBig || /[\p{L}\p{N}\p{M}_]/u.test(sign) ? "word" : "other";
}

function nextWord(text: string, from: number, isBig: boolean): number {
  const kind = kindAt(text, from, isBig);
  let at = from;
  while (at < text.length && kind !== "space" && kindAt(text, at, isBig) === kind) at += 1;
  while (at < text.length && kindAt(text, at, isBig) === "space") at += 1;
  return at;
}

function wordBefore(text: string, from: number, isBig: boolean): number {
  let at = from;
  while (at > 0 && kindAt(text, at - 1, isBig) === "space") at -= 1;
  const kind = kindAt(text, at - 1, isBig);
  while (at > 0 && kindAt(text, at - 1, isBig) === kind) at -= 1;
  return at;
}

function wordEnd(text: string, from: number, isBig: boolean): number {
  let at = Math.min(text.length, from + 1);
  while (at < text.length && kindAt(text, at, isBig) === "space") at += 1;
  const kind = kindAt(text, at, isBig);
  while (at + 1 < text.length && kindAt(text, at + 1, isBig) === kind) at += 1;
  return Math.min(at, Math.max(0, text.length - 1));
}

function wordAround(
  text: string,
  at: number,
  { isWhole, isBig }: { readonly isWhole: boolean; readonly isBig: boolean },
): readonly [number, number] {
  const kind = kindAt(text, at, isBig);
  const [first, last] = [lineStart(text, at), lineEnd(text, at)];
  let [start, end] = [at, at];
  while (start > first && kindAt(text, start - 1, isBig) === kind) start -= 1;
  while (end < last && kindAt(text, end, isBig) === kind) end += 1;
  if (!isWhole || kind === "space") return [start, end];
  const behind = end;
  while (end < last && kindAt(text, end, isBig) === "space") end += 1;
  if (end > behind) return [start, end];
  while (start > first && kindAt(text, start - 1, isBig) === "space") start -= 1;
  return [start, end];
}

function between(
  text: string,
  at: number,
  [open, close]: readonly [string, string],
  isWhole: boolean,
): readonly [number, number] | undefined {
  let depth = 0;
  let start = at;
  for (; start >= 0; start -= 1) {
    if (text[start] === close && start !== at) depth += 1;
    if (text[start] === open) {
      if (depth === 0) break;
      depth -= 1;
    }
  }
  if (start < 0) return undefined;
  let end = start + 1;
  for (depth = 0; end < text.length; end += 1) {
    if (text[end] === open) depth += 1;
    if (text[end] === close) {
      if (depth === 0) return isWhole ? [start, end + 1] : [start + 1, end];
      depth -= 1;
    }
  }
  return undefined;
}

/** The quotes of the line that the cursor is in, or the next ones. */
function quoted(
  text: string,
  at: number,
  sign: string,
  isWhole: boolean,
): readonly [number, number] | undefined {
  const last = lineEnd(text, at);
  let open = text.indexOf(sign, lineStart(text, at));
  while (open !== -1 && open < last) {
    const close = text.indexOf(sign, open + 1);
    if (close === -1 || close >= last) return undefined;
    if (close >= at) return isWhole ? [open, close + 1] : [open + 1, close];
    open = text.indexOf(sign, close + 1);
  }
  return undefined;
}
