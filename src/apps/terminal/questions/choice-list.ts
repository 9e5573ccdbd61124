import type { KeyPress } from "../input/key-press.ts";
import { type Row, span } from "../screen/row.ts";
import { bold, colours, combine, dim, inverse, plain } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";

export interface ListedChoice {
  readonly label: Row;
  readonly hint?: string;
  /** A box that is ticked or not, before the label. */
  readonly box?: boolean;
}

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

  /** The number of a choice that was made, or undefined; arrows only move. */
  press({ name }: KeyPress): number | undefined {
    const count = this.#count();
    if (/^[1-9]$/.test(name) && Number(name) <= count) return Number(name) - 1;
    if (name === "down" || name === "ctrl+n") this.#selected = (this.#selected + 1) % count;
    if (name === "up" || name === "ctrl+p")
      this.#selected = this.#selected <= 0 ? count - 1 : this.#selected - 1;
    return name === "enter" && this.#selected >= 0 ? this.#selected : undefined;
  }

  rows(choices: readonly ListedChoice[], width: number): readonly Row[] {
    return choices.flatMap(({ label, hint, box }, at) => {
      const isSelected = at === this.#selected;
      const mark = isSelected ? inverse : plain;
      const number = span(`${isSelected ? "›" : " "} ${at + 1} `, combine(bold, colours.accent));
      const tick = box === undefined ? [] : [span(box ? "[x] " : "[ ] ", dim)];
      const text = label.map((one) => ({ ...one, style: combine(one.style, mark) }));
      const more = hint === undefined || hint === "" ? [] : [span(`  ${hint}`, dim)];
      return wrapRow([...tick, ...text, ...more], width, { first: [number], rest: [span("    ")] });
    });
  }
}
