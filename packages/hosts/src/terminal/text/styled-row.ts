import { stripVTControlCharacters } from "node:util";
import { type Row, type Span, span } from "../screen/row.ts";
import { bold, colours, combine, dim, italic, plain, type Style, underline } from "../screen/style.ts";

/** A row of a text with the styles that its escape sequences ask for, as far as the terminal's own 16 colours go; all others are left out. */
export function styledRow(text: string, base: Style): Row {
  let style = base;
  const spans: Span[] = [];
  for (const [at, part] of text.split(/\u001b\[([\d;]*)m/).entries()) {
    if (at % 2 === 1) style = changed(style, part, base);
    else {
      const own = stripVTControlCharacters(part);
      if (own !== "") spans.push(span(own, style));
    }
  }
  return spans;
}

function changed(style: Style, parameters: string, base: Style): Style {
  const codes = parameters.split(";").map(Number);
  let now = style;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 38 || code === 48) {
      // A colour of 256, or of red, green and blue.
      const own = code === 38 && codes[at + 1] === 5 ? (codes[at + 2] ?? 16) : 16;
      if (own < 16) now = inColour(now, own % 8);
      at += codes[at + 1] === 5 ? 2 : 4;
    } else if (code === 0) now = base;
    else if (code === 22) now &= ~(bold | dim);
    else if (code === 39) now &= ~0xff;
    else if (code >= 30 && code <= 37) now = inColour(now, code - 30);
    else if (code >= 90 && code <= 97) now = inColour(now, code - 90);
    else now |= attributes.get(code) ?? 0;
  }
  return now;
}

/** What is coloured is not dim as well. */
function inColour(style: Style, colour: number): Style {
  return combine(style & ~dim & ~0xff, byCode[colour] ?? plain);
}

const attributes: ReadonlyMap<number, Style> = new Map([
  [1, bold],
  [2, dim],
  [3, italic],
  [4, underline],
]);

/** Black and white are the colour of the text, so that they can be read on every background. */
const byCode: readonly Style[] = [
  plain,
  colours.red,
  colours.green,
  colours.yellow,
  colours.blue,
  colours.purple,
  colours.cyan,
  plain,
];
