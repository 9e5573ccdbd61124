import { cutRow, emptyRow, padRow, type Row, rowWidth, span } from "../screen/row.ts";
import { bold, colours, dim, plain } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import type { StartFacts } from "../session/terminal-session.ts";

const labelWidth = 9;

/** One screen at the first start, two lines at each later one. */
export function startRows(
  facts: StartFacts,
  { width, hint }: { readonly width: number; readonly hint: string },
): readonly Row[] {
  const { isFirst, version, folder, model, access, trust, mode } = facts;
  const name: Row = [span("retinue", bold), span(` ${version}`, dim)];
  const styleOf = ({ isGood }: { readonly isGood: boolean }) => (isGood ? dim : colours.warning);
  if (!isFirst || width < 50) {
    const end: Row = [span(`  ${trust.short ?? trust.text}`, styleOf(trust))];
    // What the folder may do is what the line is for; of a long path the end is kept.
    const room = Math.max(20, width - rowWidth(end) - rowWidth(name) - 2);
    const short = folder.length <= room ? folder : `…${folder.slice(1 - room)}`;
    return [
      cutRow([...name, span(`  ${short}`), ...end], width),
      cutRow([span(model === "" ? "" : `${model}  `), span(access.text, styleOf(access))], width),
    ];
  }
  const fact = (label: string, text: Row): readonly Row[] =>
    wrapRow(text, width, {
      first: padRow([span(label, dim)], labelWidth),
      rest: [span(" ".repeat(labelWidth))],
    });
  const shade = (one: { readonly isGood: boolean }) => (one.isGood ? plain : colours.warning);
  return [
    name,
    emptyRow,
    ...fact("folder", [span(folder)]),
    ...fact("model", [span(model === "" ? "" : `${model}, `), span(access.text, shade(access))]),
    ...fact("trust", [span(trust.text, shade(trust))]),
    ...fact("mode", [span(`${mode}: ${modeTexts.get(mode) ?? "as you asked"} · shift+tab`)]),
    emptyRow,
    ...fact("try", [span("what does this project do?", bold)]),
    ...fact("", [span("have three agents look for bugs, missing tests and stale docs", bold)]),
    ...fact("", [span("!git log -3", bold), span("  runs a command, and the agent reads it", dim)]),
    emptyRow,
    [span(hint, dim)],
  ];
}

/** What each permission mode means, in a few words. */
export const modeTexts: ReadonlyMap<string, string> = new Map([
  ["default", "reads freely, asks before it edits or runs"],
  ["acceptEdits", "edits this folder freely, asks before it runs"],
  ["plan", "only reads, and ends with a plan"],
  ["dontAsk", "never asks; what no rule allows is refused"],
  ["bypassPermissions", "allows everything that no rule denies"],
]);
