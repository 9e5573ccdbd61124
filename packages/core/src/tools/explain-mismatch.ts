import { takeStart } from "./limit-text.ts";
import { toLf } from "./replace-ranges.ts";

/** Why a text was not found in a file, with the lines that come nearest, so that the next try can be right. */
export function explainMismatch(text: string, wanted: string): string {
  const lines = toLf(text).split("\n");
  const target = toLf(wanted).split("\n");
  const numbered = target.filter((line) => line !== "");
  if (numbered.length > 0 && numbered.every((line) => /^\s*\d+(\t|\u2192)/.test(line))) {
    return "It begins each line with a line number, as Read shows them; leave the numbers and the tab out.";
  }
  for (const { alike, difference } of nearMisses) {
    const at = findLines(lines, target, alike);
    if (at !== undefined) {
      return `It is there at line ${at + 1}, but with ${difference}. The file has:\n${showLines(lines, at, target.length)}`;
    }
  }
  if (!wanted.includes("\n") && wanted.includes("\\n")) {
    return "It contains a backslash and an n where a line break may be meant; give real line breaks.";
  }
  const best = maxAlike(lines, target);
  if (best === undefined) return "Nothing in the file is like it. Read the file again.";
  return `The most similar lines in the file are:\n${showLines(lines, best, target.length)}`;
}

interface NearMiss {
  readonly difference: string;
  /** Two lines are the same in this view when they become the same text. */
  readonly alike: (line: string) => string;
}

const straighten = (line: string): string =>
  line
    .replace(/[\u2018\u2019\u201a\u201b]/g, "'")
    .replace(/[\u201c\u201d\u201e\u201f]/g, '"')
    .replace(/[\u2010-\u2015]/g, "-")
    .replace(/[\u00a0\u2000-\u200a\u202f]/g, " ");

const nearMisses: readonly NearMiss[] = [
  { difference: "other spaces at the ends of lines", alike: (line) => line.trimEnd() },
  { difference: "another indentation (tabs or spaces)", alike: (line) => line.trim() },
  {
    difference: "other quotes, dashes or spaces (typographic or plain)",
    alike: (line) => straighten(line).trim(),
  },
  { difference: "other capital letters", alike: (line) => straighten(line).trim().toLowerCase() },
  { difference: "other spaces inside the lines", alike: (line) => straighten(line).replace(/\s+/g, "") },
];

/** The first and last wanted lines may begin and end in the middle of a line of the file. */
function findLines(
  lines: readonly string[],
  target: readonly string[],
  alike: (line: string) => string,
): number | undefined {
  const wanted = target.map(alike);
  const [first = "", ...rest] = wanted;
  const last = rest.pop();
  if (wanted.join("") === "" || lines.length > maxLines) return undefined;
  for (let at = 0; at + wanted.length <= lines.length; at += 1) {
    const line = alike(lines[at] ?? "");
    if (last === undefined) {
      if (line.includes(first)) return at;
      continue;
    }
    const fits =
      line.endsWith(first) &&
      rest.every((part, index) => alike(lines[at + 1 + index] ?? "") === part) &&
      alike(lines[at + wanted.length - 1] ?? "").startsWith(last);
    if (fits) return at;
  }
  return undefined;
}

/** By the pairs of letters that the longest wanted line shares with each line of the file. */
function maxAlike(lines: readonly string[], target: readonly string[]): number | undefined {
  const longest = target.reduce(
    (best, line, index) => (line.trim().length > (target[best] ?? "").trim().length ? index : best),
    0,
  );
  const wanted = pairsOf(target[longest] ?? "");
  if (wanted.size === 0) return undefined;
  let best: { at: number; share: number } | undefined;
  for (const [at, line] of lines.slice(0, maxLines).entries()) {
    const pairs = pairsOf(line);
    let shared = 0;
    for (const pair of pairs) if (wanted.has(pair)) shared += 1;
    const share = (2 * shared) / (pairs.size + wanted.size);
    if (share > (best?.share ?? leastShare)) best = { at, share };
  }
  return best === undefined ? undefined : Math.max(0, best.at - longest);
}

function pairsOf(line: string): Set<string> {
  const text = line.trim().slice(0, 200);
  const pairs = new Set<string>();
  for (let at = 0; at + 1 < text.length; at += 1) pairs.add(text.slice(at, at + 2));
  return pairs;
}

function showLines(lines: readonly string[], at: number, count: number): string {
  const shown = lines.slice(at, at + Math.min(Math.max(count, 1), 10));
  return shown.map((line, index) => `${at + index + 1}\t${takeStart(line, 300)}`).join("\n");
}

const maxLines = 50_000;
const leastShare = 0.4;
