import { draftOf } from "../input/draft.ts";
import { Editor } from "../input/editor.ts";
import type { KeyPress } from "../input/key-press.ts";
import { cutRow, type Row, span } from "../screen/row.ts";
import { colours, dim } from "../screen/style.ts";
import type { PanelView } from "./panel.ts";

/** A small text inside a panel: a rule that is edited, a message to an agent. */
export class LineInput {
  readonly #editor = new Editor();
  readonly #label: string;
  readonly #isSecret: boolean;
  readonly #enter: string;

  /** `enter` is what that key does, in a word or two. */
  constructor(label: string, text = "", { isSecret = false, enter = "sends" } = {}) {
    this.#enter = enter;
    this.#label = label;
    this.#isSecret = isSecret;
    this.#editor.set(draftOf(text));
  }

  get text(): string {
    return this.#editor.expanded().trim();
  }

  /** "done" on Enter, "cancelled" on Escape. */
  press(key: KeyPress): "done" | "cancelled" | "editing" {
    if (key.name === "enter") return "done";
    if (key.name === "escape") return "cancelled";
    this.#editor.press(key);
    return "editing";
  }

  paste(text: string): void {
    this.#editor.paste(text);
  }

  view(width: number): PanelView {
    const { lines, row, column } = this.#editor.layout(Math.max(10, width - 6));
    const head = cutRow(
      [span(`  ${this.#label}`, dim), span(`  enter ${this.#enter} · esc back`, dim)],
      width,
    );
    const body = lines.map(
      ({ start, end }, at): Row => [
        span(at === 0 ? "  › " : "    ", colours.accent),
        span(this.#isSecret ? "•".repeat(end - start) : this.#editor.text.slice(start, end)),
      ],
    );
    return { rows: [head, ...body], cursor: { row: row + 1, column: column + 4 } };
  }
}
