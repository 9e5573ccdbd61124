import { plural } from "../../shared/format.ts";
import { cutRow, type Row, span } from "../screen/row.ts";
import { bold, colours, dim, type Style } from "../screen/style.ts";
import type { FileDiff } from "../session/terminal-session.ts";

export interface DiffOptions {
  readonly width: number;
  /** More lines than this are left out and counted. */
  readonly maxLines: number;
  readonly indent?: number;
}

/** A change of a file: line numbers, what goes and what comes. */
export function diffRows({ hunks }: FileDiff, { width, maxLines, indent = 2 }: DiffOptions): readonly Row[] {
  const lines = hunks.flatMap((hunk, at) => [
    ...(at === 0 ? [] : [{ number: undefined, kind: " ", text: "⋯" }]),
    ...numbered(hunk),
  ]);
  const digits = String(Math.max(1, ...lines.map(({ number = 0 }) => number))).length;
  const shown = lines
    .slice(0, maxLines)
    .map(({ number, kind, text }) =>
      cutRow(
        [
          span(" ".repeat(indent)),
          span(`${String(number ?? "").padStart(digits)} `, dim),
          span(`${kind} ${text}`, styleOf(kind)),
        ],
        width,
      ),
    );
  const left = lines.length - shown.length;
  if (left === 0) return shown;
  return [...shown, [span(`${" ".repeat(indent)}… ${plural(left, "more line")} (ctrl+o shows all)`, dim)]];
}

export function diffCounts({ hunks }: FileDiff): { readonly added: number; readonly removed: number } {
  const lines = hunks.flatMap((hunk) => hunk.lines);
  return {
    added: lines.filter((line) => line.startsWith("+")).length,
    removed: lines.filter((line) => line.startsWith("-")).length,
  };
}

interface DiffLine {
  readonly number: number | undefined;
  readonly kind: string;
  readonly text: string;
}

function numbered({ oldStart, newStart, lines }: FileDiff["hunks"][number]): readonly DiffLine[] {
  let oldLine = oldStart;
  let newLine = newStart;
  return lines.flatMap((line): DiffLine[] => {
    const kind = line[0] ?? " ";
    const text = line.slice(1);
    if (kind === "-") return [{ number: oldLine++, kind, text }];
    if (kind === "+") return [{ number: newLine++, kind, text }];
    if (kind !== " ") return [];
    oldLine += 1;
    return [{ number: newLine++, kind, text }];
  });
}

function styleOf(kind: string): Style {
  if (kind === "+") return colours.added | bold;
  return kind === "-" ? colours.removed : dim;
}
