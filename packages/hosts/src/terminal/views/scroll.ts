import type { KeyPress } from "../input/key-press.ts";
import { type Row, span } from "../screen/row.ts";
import { dim } from "../screen/style.ts";

/** Which part of many rows is seen. At the end it stays at the end, also when rows are added. */
export class Scroll {
  #top = 0;
  #isFollowing: boolean;
  #height = 1;
  #count = 0;

  constructor(options: { readonly follow: boolean }) {
    this.#isFollowing = options.follow;
  }

  window(rows: readonly Row[], height: number): readonly Row[] {
    this.#height = Math.max(1, height);
    this.#count = rows.length;
    const last = Math.max(0, rows.length - this.#height);
    this.#top = this.#isFollowing ? last : Math.min(this.#top, last);
    return rows.slice(this.#top, this.#top + this.#height);
  }

  /** True when the key moved the window. */
  press({ name }: KeyPress): boolean {
    const by = steps.get(name);
    if (by === undefined) return false;
    const last = Math.max(0, this.#count - this.#height);
    const distance =
      typeof by === "number"
        ? by
        : { page: this.#height - 1, back: 1 - this.#height, top: -last, end: last }[by];
    this.#top = Math.max(0, Math.min(last, this.#top + distance));
    this.#isFollowing = this.#top === last;
    return true;
  }

  /** Where the window is, for the edge of a view. */
  position(): Row {
    if (this.#count <= this.#height) return [];
    const share = Math.round((Math.min(this.#count, this.#top + this.#height) / this.#count) * 100);
    return [span(`${share} %`, dim)];
  }
}

const steps = new Map<string, number | "page" | "back" | "top" | "end">([
  ["up", -1],
  ["k", -1],
  ["down", 1],
  ["j", 1],
  ["pageUp", "back"],
  ["pageDown", "page"],
  ["space", "page"],
  ["ctrl+u", "back"],
  ["ctrl+d", "page"],
  ["home", "top"],
  ["g", "top"],
  ["end", "end"],
  ["G", "end"],
]);
