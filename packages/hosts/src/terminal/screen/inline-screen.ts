import type { Row } from "./row.ts";
import { type PaintedRow, RowPainter } from "./row-painter.ts";
import type { Palette } from "./style.ts";

/** What is to be seen below the finished text, and where the cursor is in it; without a cursor it is hidden. */
export interface Frame {
  /** Each must be narrower than the window. */
  readonly rows: readonly Row[];
  readonly cursor?: { readonly row: number; readonly column: number } | undefined;
}

export interface ScreenOptions {
  readonly write: (bytes: string) => void;
  readonly columns: () => number;
  readonly rows: () => number;
  readonly palette: Palette;
  /** Whether the terminal wraps old lines anew when it becomes narrower; most do. */
  readonly reflows?: boolean;
  /** Whether the cursor then moves down by all lines that were added, those below it included, as in xterm.js. */
  readonly movesCursorByAll?: boolean;
}

const beginSync = "\u001b[?2026h";
const endSync = "\u001b[?2026l";
const hideCursor = "\u001b[?25l";
const showCursor = "\u001b[?25h";
/** Erases from the start of the line on. In the first cell of the window tmux would take it for a clear and keep what was there. */
const eraseBelow = "\u001b[K\u001b[C\u001b[J\r";

/**
 * A screen inside the terminal's own scrollback. Finished rows are written once and belong to the terminal from then on;
 * only the live rows below them are kept, compared and painted over. Nothing above them is ever touched, and the whole
 * screen is never cleared.
 */
export class InlineScreen {
  readonly #options: ScreenOptions;
  #painter: RowPainter;
  #finished: Row[] = [];
  #shown: readonly PaintedRow[] = [];
  /** Row of the live part in which the cursor is. */
  #at = 0;
  #column = -1;
  /** Columns of the window when the live part was painted; 0 before the first frame. */
  #width = 0;
  /** Rows of the window then. */
  #height = 0;
  #isHidden = false;

  constructor(options: ScreenOptions) {
    this.#options = options;
    this.#painter = new RowPainter(options.palette);
  }

  /** Rows to be written above the live part with the next frame, for good. One may be longer than the window. */
  finish(rows: readonly Row[]): void {
    this.#finished.push(...rows);
  }

  draw({ rows, cursor }: Frame): void {
    const columns = this.#options.columns();
    const height = this.#options.rows();
    const isReshaped = this.#width !== columns || height < this.#height;
    let out = this.#width !== 0 && isReshaped ? this.#erase() : "";
    this.#width = columns;
    this.#height = height;
    const done = this.#finished.map((one) => this.#painter.paint(one));
    const live = rows.map((one) => this.#painter.paint(one));
    this.#finished = [];
    out += this.#write([...done, ...live], done.length > 0);
    if (live.length > 0 && this.#at < done.length) {
      // Whatever erases the live part later begins in it, not in what is finished.
      out += this.#moveTo(done.length);
    } else if (live.length === 0 && done.length > 0) {
      // Nothing lives below: the next frame begins on a line of its own.
      out += `${this.#moveTo(done.length - 1)}\r\n`;
      this.#at = done.length;
    }
    this.#shown = live;
    this.#at -= done.length;
    this.#send(out, cursor);
  }

  /** Takes the live part away and leaves the cursor, visible, where it began. */
  clear(): void {
    const out = this.#shown.length === 0 ? "" : this.#erase();
    const cursor = this.#isHidden ? showCursor : "";
    this.#isHidden = false;
    this.forget();
    if (out + cursor !== "") this.#options.write(out + cursor);
  }

  /** What is live is painted anew in other colours. */
  repaint(): void {
    this.clear();
    this.#painter = new RowPainter(this.#options.palette);
  }

  /** The next frame is painted where the cursor is then, as if nothing had been shown before. */
  forget(): void {
    this.#shown = [];
    this.#at = 0;
    this.#column = -1;
    this.#width = 0;
  }

  /**
   * Finished rows are printed together with everything below them. The terminal may have wrapped the live part anew by the time
   * these bytes reach it; then they are still followed by as many lines as the rows take at its width, which is what the
   * next frame counts. Rows pushed between those that are shown would be followed by fewer, and be erased with them.
   */
  #write(target: readonly PaintedRow[], hasFinished: boolean): string {
    if (target.length === 0) return this.#shown.length === 0 ? "" : this.#erase();
    const isPrinted = hasFinished || this.#shown.length === 0 || target.length > this.#options.rows();
    return isPrinted ? this.#print(target) : this.#patch(target);
  }

  #print(target: readonly PaintedRow[]): string {
    const start = this.#shown.length === 0 ? `\r${eraseBelow}` : this.#erase();
    this.#at = target.length - 1;
    return start + target.map(({ bytes }) => bytes).join("\r\n");
  }

  /** Brings the shown rows to the wanted ones: room is made or taken in one place, then rows that differ are painted. */
  #patch(target: readonly PaintedRow[]): string {
    const shown = this.#shown;
    // How many rows at both ends stay as they are.
    const most = Math.min(shown.length, target.length);
    let start = 0;
    while (start < most && shown[start]?.bytes === target[start]?.bytes) start += 1;
    let end = 0;
    while (
      end < most - start &&
      shown[shown.length - 1 - end]?.bytes === target[target.length - 1 - end]?.bytes
    )
      end += 1;
    const added = target.length - shown.length;
    let out = "";
    let before: readonly (PaintedRow | undefined)[] = shown;
    if (added > 0) {
      out += this.#moveTo(shown.length - 1) + "\r\n".repeat(added);
      this.#at += added;
      if (end > 0) out += `${this.#moveTo(shown.length - end)}\u001b[${added}L`;
      const room = Array.from({ length: added }, () => undefined);
      before = [...shown.slice(0, shown.length - end), ...room, ...shown.slice(shown.length - end)];
    } else if (added < 0) {
      const first = target.length - end;
      out += `${this.#moveTo(first)}\u001b[${-added}M`;
      before = [...shown.slice(0, first), ...shown.slice(first - added)];
    }
    for (let index = start; index < target.length - end; index += 1) {
      const wanted = target[index];
      if (wanted === undefined || before[index]?.bytes === wanted.bytes) continue;
      out += this.#moveTo(index) + this.#painter.change(before[index], wanted);
    }
    return out;
  }

  /** Back to the first live row, and everything from there on erased. */
  #erase(): string {
    const columns = this.#options.columns();
    const above =
      (this.#options.reflows ?? true) && this.#width !== columns ? this.#rowsAbove(columns) : this.#at;
    this.#shown = [];
    this.#at = 0;
    return `\r${above > 0 ? `\u001b[${above}A` : ""}${eraseBelow}`;
  }

  /** After the terminal has wrapped the rows above the cursor anew, they may take more lines than before. */
  #rowsAbove(columns: number): number {
    const linesOf = ({ width }: PaintedRow): number => Math.max(1, Math.ceil(width / Math.max(1, columns)));
    const count = (rows: readonly PaintedRow[]): number => rows.reduce((sum, one) => sum + linesOf(one), 0);
    if (this.#options.movesCursorByAll === true) {
      // Such a terminal drops what is below the cursor when it loses rows. Too little is erased rather than too much.
      const lost = Math.max(0, this.#height - this.#options.rows());
      const left = this.#shown.slice(0, Math.max(this.#at + 1, this.#shown.length - lost));
      return this.#at + count(left) - left.length;
    }
    return count(this.#shown.slice(0, this.#at)) + Math.floor(Math.max(0, this.#column) / columns);
  }

  /** Down by line feeds: where the terminal has fewer rows by now, they scroll, and the rows stay one below the other. */
  #moveTo(target: number): string {
    const distance = target - this.#at;
    this.#at = target;
    if (distance === 0) return "";
    return distance > 0 ? "\n".repeat(distance) : `\u001b[${-distance}A`;
  }

  #send(changes: string, cursor: Frame["cursor"]): void {
    const isVisible = cursor !== undefined;
    const isMoved = isVisible && (cursor.row !== this.#at || cursor.column !== this.#column);
    if (changes === "" && !isMoved && isVisible !== this.#isHidden) return;
    const isHiddenMeanwhile = changes !== "" && !this.#isHidden && isVisible;
    const before = isHiddenMeanwhile || (!isVisible && !this.#isHidden) ? hideCursor : "";
    const after = isHiddenMeanwhile || (isVisible && this.#isHidden) ? showCursor : "";
    this.#isHidden = !isVisible;
    this.#column = cursor?.column ?? -1;
    const right = isVisible && cursor.column > 0 ? `\u001b[${cursor.column}C` : "";
    const place = isVisible ? `${this.#moveTo(cursor.row)}\r${right}` : "";
    this.#options.write(`${beginSync}${before}${changes}${place}${after}${endSync}`);
  }
}
