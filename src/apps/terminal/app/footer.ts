import { type Row, rowWidth, span } from "../screen/row.ts";
import { colours, dim, type Style } from "../screen/style.ts";
import type { Status } from "../session/terminal-session.ts";
import { formatCost, plural } from "../text/format.ts";

export interface FooterFacts {
  readonly status: Partial<Status>;
  readonly agents: number;
  readonly questions: number;
  readonly isBusy: boolean;
  /** Said instead of the keys, such as what a second Ctrl+C would do. */
  readonly hint: string;
}

/** Model, mode, window, cost, agents; what is least missed goes first where there is no room. */
export function footerRow({ status, agents, questions, isBusy, hint }: FooterFacts, width: number): Row {
  const { model, mode, contextFill, costUsd } = status;
  const parts: (readonly [text: string, rank: number, style?: Style])[] = [
    ...(model === undefined ? [] : [[model, 2] as const]),
    ...(mode === undefined ? [] : [[mode, 1, modeStyles.get(mode) ?? dim] as const]),
    ...(contextFill === undefined || contextFill === 0
      ? []
      : [
          [
            `context ${Math.round(contextFill * 100)} %`,
            3,
            contextFill > 0.8 ? colours.warning : dim,
          ] as const,
        ]),
    ...(costUsd === undefined || costUsd === 0 ? [] : [[formatCost(costUsd), 4] as const]),
    ...(agents === 0 ? [] : [[plural(agents, "agent"), 3] as const]),
    ...(questions === 0 ? [] : [[plural(questions, "question"), 0, colours.warning] as const]),
    ...(hint === "" ? keyHints(agents, isBusy) : [[hint, 0, colours.warning] as const]),
  ];
  for (let rank = 6; rank >= 0; rank -= 1) {
    const row = joined(parts.filter(([, own]) => own <= rank));
    if (rowWidth(row) <= width) return row;
  }
  return [];
}

function keyHints(agents: number, isBusy: boolean): readonly (readonly [text: string, rank: number])[] {
  return [...(agents > 0 || isBusy ? [["ctrl+b background", 6] as const] : []), ["? keys", 5] as const];
}

function joined(parts: readonly (readonly [text: string, rank: number, style?: Style])[]): Row {
  return parts.flatMap(([text, , style = dim], at) => [span(at === 0 ? " " : " · ", dim), span(text, style)]);
}

const modeStyles: ReadonlyMap<string, Style> = new Map([
  ["acceptEdits", colours.good],
  ["plan", colours.link],
  ["bypassPermissions", colours.error],
]);
