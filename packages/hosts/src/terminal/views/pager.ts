import type { KeyPress } from "../input/key-press.ts";
import type { Frame } from "../screen/inline-screen.ts";
import { cutRow, type Row, span, spreadRow } from "../screen/row.ts";
import { bold, dim, inverse } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import { Scroll } from "./scroll.ts";
import type { View } from "./view.ts";

export interface PagerOptions {
  readonly title: string;
  readonly rows: (width: number) => readonly Row[];
  /** Begins at the end and stays there. */
  readonly follow?: boolean;
}

/** A page that can be scrolled. */
export class Pager implements View {
  readonly #options: PagerOptions;
  readonly #scroll: Scroll;
  #made: { readonly width: number; readonly rows: readonly Row[] } | undefined;

  constructor(options: PagerOptions) {
    this.#options = options;
    this.#scroll = new Scroll({ follow: options.follow ?? false });
  }

  frame(columns: number, rows: number): Frame {
    const body = this.#scroll.window(this.#rows(columns - 1), rows - 2);
    const padding = Array.from({ length: Math.max(0, rows - 2 - body.length) }, (): Row => []);
    const keys = [span("↑↓ scroll · esc back", dim)];
    return {
      rows: [
        titleRow(this.#options.title, columns),
        ...body,
        ...padding,
        spreadRow(keys, this.#scroll.position(), columns - 1),
      ],
    };
  }

  #rows(width: number): readonly Row[] {
    if (this.#made?.width !== width) this.#made = { width, rows: this.#options.rows(width) };
    return this.#made.rows;
  }

  press(key: KeyPress): "stay" | "close" {
    if (closingKeys.has(key.name)) return "close";
    this.#scroll.press(key);
    return "stay";
  }
}

export const closingKeys: ReadonlySet<string> = new Set(["escape", "q", "ctrl+c", "ctrl+o", "?", "enter"]);

export function titleRow(title: string, columns: number): Row {
  const text = cutRow([span(` ${title} `, bold | inverse)], columns - 1);
  return text;
}

/** Plain text of several lines as rows; a line that is too long continues below its first word. */
export function textRows(text: string, width: number): readonly Row[] {
  return text
    .trimEnd()
    .split("\n")
    .flatMap((line) => {
      const text = line.trimStart();
      const indent = [span(line.slice(0, line.length - text.length).slice(0, Math.floor(width / 2)))];
      return wrapRow([span(text)], width, { first: indent });
    });
}
