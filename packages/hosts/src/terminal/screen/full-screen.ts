import type { Frame } from "./inline-screen.ts";
import { cutRow } from "./row.ts";
import { RowPainter } from "./row-painter.ts";
import type { Palette } from "./style.ts";

export interface FullScreenOptions {
  readonly write: (bytes: string) => void;
  readonly columns: () => number;
  readonly rows: () => number;
  readonly palette: Palette;
}

/** The alternate screen: all its rows are ours, and only those that changed are written. */
export class FullScreen {
  readonly #options: FullScreenOptions;
  #painter: RowPainter;
  #shown: string[] = [];
  #size = "";

  constructor(options: FullScreenOptions) {
    this.#options = options;
    this.#painter = new RowPainter(options.palette);
  }

  /** The next frame is painted whole, as after entering the alternate screen. */
  forget(): void {
    this.#shown = [];
    this.#size = "";
  }

  /** The next frame is painted whole, in other colours. */
  repaint(): void {
    this.forget();
    this.#painter = new RowPainter(this.#options.palette);
  }

  draw({ rows, cursor }: Frame): void {
    const columns = this.#options.columns();
    const height = this.#options.rows();
    const size = `${columns}x${height}`;
    let out = "";
    if (size !== this.#size) {
      this.#shown = [];
      this.#size = size;
      for (let at = 0; at < height; at += 1) out += `\u001b[${at + 1};1H\u001b[K`;
    }
    for (let at = 0; at < height; at += 1) {
      const wanted = rows[at];
      const bytes = wanted === undefined ? "" : this.#painter.paint(cutRow(wanted, columns)).bytes;
      if ((this.#shown[at] ?? "") === bytes) continue;
      out += `\u001b[${at + 1};1H\u001b[K${bytes}`;
      this.#shown[at] = bytes;
    }
    const place =
      cursor === undefined ? "\u001b[?25l" : `\u001b[${cursor.row + 1};${cursor.column + 1}H\u001b[?25h`;
    this.#options.write(`\u001b[?2026h\u001b[?25l${out}${place}\u001b[?2026l`);
  }
}
