import type { Paint } from "../../shared/paint.ts";
import { pad, stripControlCharacters, widthOf, wrap } from "../../shared/strip-control-characters.ts";

export interface ShownField {
  readonly label: string;
  readonly value: string;
  /** Where it was written, or that it is the default. */
  readonly origin?: string;
}

/** Label, value and, behind it or below it, where the value came from. A long label has a line of its own. */
export function renderFields(fields: readonly ShownField[], paint: Paint, width: number): string {
  const lines = fields.flatMap(({ label, value, origin }) => {
    const wrapped = wrap(value.split("\n").map(stripControlCharacters).join("\n"), width - labelWidth);
    const tail = origin === undefined ? "" : `(${stripControlCharacters(origin)})`;
    const last = wrapped.at(-1) ?? "";
    const fits = widthOf(last) + widthOf(tail) + labelWidth + 1 <= width;
    const values = fits
      ? [...wrapped.slice(0, -1), `${last} ${paint.dim(tail)}`.trimEnd()]
      : [...wrapped, paint.dim(tail)];
    const indented = values.map((line) => " ".repeat(labelWidth) + line);
    if (label.length + 1 >= labelWidth) return [paint.name(label), ...indented];
    return [paint.name(pad(label, labelWidth)) + (values[0] ?? ""), ...indented.slice(1)];
  });
  return `${lines.join("\n")}\n`;
}

const labelWidth = 17;
