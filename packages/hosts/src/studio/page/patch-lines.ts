import type { PatchHunk } from "@retinue/core/inspection/conversation-fold.ts";
import { type ComponentChild, h } from "preact";

export interface PatchLine {
  readonly sign: string;
  /** Of the file before for what is removed, else of the file after. */
  readonly number?: number;
  readonly text: string;
}

/** The lines of a change with their numbers in the file. */
export function patchLines(
  hunks: readonly Pick<PatchHunk, "lines" | "oldStart" | "newStart">[],
): readonly PatchLine[] {
  return hunks.flatMap(({ lines, oldStart, newStart }) => {
    let [before, after] = [oldStart, newStart];
    return lines.map((line) => {
      const sign = line.slice(0, 1);
      const number = sign === "-" ? before : after;
      if (sign !== "+") before += 1;
      if (sign !== "-") after += 1;
      return { sign, number, text: line.slice(1) };
    });
  });
}

export function countLines(lines: readonly Pick<PatchLine, "sign">[], wanted: "+" | "-"): number {
  return lines.filter(({ sign }) => sign === wanted).length;
}

const signs: Readonly<Record<string, readonly [string, string]>> = { "+": ["a", "+"], "-": ["r", "−"] };

/** A change, line by line; colour is not all that distinguishes added from removed. */
export function PatchView({ file, lines }: { file: string; lines: readonly PatchLine[] }): ComponentChild {
  return h(
    "div",
    { class: "diff", role: "group", "aria-label": `Changes of ${file}`, tabIndex: 0 },
    lines.map(({ sign, number, text }, at) => {
      const [name, shown] = signs[sign] ?? ["", " "];
      return h("div", { key: at, class: name }, h("i", {}, number), h("span", {}, shown), h("pre", {}, text));
    }),
  );
}
