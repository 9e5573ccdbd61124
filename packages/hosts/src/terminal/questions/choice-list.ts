import type { KeyPress } from "../input/key-press.ts";
import { cutRow, type Row, rowWidth, span } from "../screen/row.ts";
import { bold, colours, combine, dim, inverse, plain } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import type { PanelView } from "./panel.ts";

export interface ListedChoice {
  readonly label: Row;
  /** Instead of the label where there is little room. */
  readonly short?: string;
  readonly hint?: string;
  /** The hint is not torn: where it does not fit beside the label, it begins a row. */
  readonly isHintWhole?: boolean;
  /** A box that is ticked or not, before the label. */
  readonly box?: boolean;
}

export interface ChoicePanel {
  /** Who asks; the rest of it is cut off first. */
  readonly title: Row;
  /** What is asked, a row or more. */
  readonly text: readonly Row[];
  readonly choices: readonly ListedChoice[];
  /** What is being written instead of a choice. */
  readonly line?: PanelView | undefined;
}

/** The numbers of choices, so that they can be shown as what cannot be pressed yet. */
export const numberStyle = combine(bold, colours.accent);

/** Choices with numbers. None is chosen at first, so that a key that was meant for something else chooses nothing. */
export class ChoiceList {
  #selected = -1;
  readonly #count: () => number;

  constructor(count: () => number) {
    this.#count = count;
  }

  get selected(): number {
    return this.#selected;
  }

  select(index: number): void {
    this.#selected = index;
  }

  /** Whether a digit is the number of a choice. */
  takes({ name }: KeyPress): boolean {
    return /^[1-9]$/.test(name) && Number(name) <= this.#count();
  }

  /** The number of a choice that was made, or undefined; arrows only move. */
  press(key: KeyPress): number | undefined {
    const { name } = key;
    const count = this.#count();
    if (this.takes(key)) return Number(name) - 1;
    if (name === "down" || name === "ctrl+n") this.#selected = (this.#selected + 1) % count;
    if (name === "up" || name === "ctrl+p")
      this.#selected = this.#selected <= 0 ? count - 1 : this.#selected - 1;
    return name === "enter" && this.#selected >= 0 ? this.#selected : undefined;
  }

  rows(choices: readonly ListedChoice[], width: number): readonly Row[] {
    return choices.flatMap(({ label, hint, box, isHintWhole }, at) => {
      const isSelected = at === this.#selected;
      const mark = isSelected ? inverse : plain;
      const number = span(`${isSelected ? "›" : " "} ${at + 1} `, numberStyle);
      const tick = box === undefined ? [] : [span(box ? "[x] " : "[ ] ", dim)];
      const text = label.map((one) => ({ ...one, style: combine(one.style, mark) }));
      const more = hint === undefined || hint === "" ? [] : [span(`  ${hint}`, dim)];
      const margins = { first: [number], rest: [span("    ")] };
      const one = [...tick, ...text, ...more];
      if (isHintWhole !== true || rowWidth(one) + 4 <= width) return wrapRow(one, width, margins);
      return [
        ...wrapRow([...tick, ...text], width, margins),
        ...wrapRow([span(hint ?? "", dim)], width, { first: [span("    ")], rest: [span("    ")] }),
      ];
    });
  }

  /**
   * A question with its choices in at most so many rows. Where there is no room for all, title and choices take one row
   * each, and of more choices than fit those around the selected one are shown; `isCut` says that the text is cut too.
   */
  view(panel: ChoicePanel, width: number, height: number): PanelView & { readonly isCut: boolean } {
    const { title, text, choices, line } = panel;
    const written = writtenRows(line, Math.max(2, height - 2));
    const whole = [...wrapRow(title, width), ...text, ...this.rows(choices, width)];
    if (whole.length + written.rows.length <= height) return { ...belowOf(whole, written), isCut: false };
    // Who writes an answer has chosen already.
    const list = line === undefined ? this.#shortRows(choices, width) : [];
    const room = Math.max(2, height - written.rows.length - 1);
    const asked = Math.max(1, room - Math.min(list.length, Math.ceil(room / 2)));
    const isCut = text.length > asked;
    const more = span(width < 40 ? " … v: all" : " … v shows all of it", dim);
    const last = [...cutRow(text[asked - 1] ?? [], width - more.text.length), more];
    const shown = isCut ? [...text.slice(0, asked - 1), last] : text;
    const above = [cutRow(title, width), ...shown];
    return { ...belowOf([...above, ...this.#around(list, room - shown.length)], written), isCut };
  }

  #shortRows(choices: readonly ListedChoice[], width: number): readonly Row[] {
    const own = choices.map(({ label, short, hint = "", ...rest }) => {
      const used = rowWidth(label) + (rest.box === undefined ? 4 : 8);
      const isLong = used > width;
      return {
        ...rest,
        label: isLong && short !== undefined ? [span(short)] : label,
        // A few letters of a hint say nothing.
        ...(width - used < Math.min(hint.length + 2, minHint) ? {} : { hint }),
      };
    });
    return this.rows(own, 1000).map((one) => cutRow(one, width));
  }

  /** Rows around the selected one, with the number of those that are not shown. */
  #around(rows: readonly Row[], room: number): readonly Row[] {
    if (rows.length <= room) return rows;
    const start = Math.min(Math.max(0, this.#selected - Math.floor(room / 2)), rows.length - room);
    const shown = rows.slice(start, start + room);
    if (room < 3) return shown;
    const left = rows.length - start - room;
    return shown.map((one, at) => {
      if (at === 0 && start > 0) return [span(`  ↑ ${start + 1} more`, dim)];
      return at === room - 1 && left > 0 ? [span(`  ↓ ${left + 1} more`, dim)] : one;
    });
  }
}

const minHint = 16;

/** Of a text that is longer than the room, the rows up to the cursor. */
function writtenRows(line: PanelView | undefined, room: number): PanelView {
  if (line?.cursor === undefined) return { rows: [] };
  const start = Math.max(0, line.cursor.row + 1 - room);
  return {
    rows: line.rows.slice(start, start + room),
    cursor: { row: line.cursor.row - start, column: line.cursor.column },
  };
}

function belowOf(above: readonly Row[], { rows, cursor }: PanelView): PanelView {
  if (cursor === undefined) return { rows: above };
  return {
    rows: [...above, ...rows],
    cursor: { row: above.length + cursor.row, column: cursor.column },
  };
}
