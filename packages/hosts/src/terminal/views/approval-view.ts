import type { KeyPress } from "../input/key-press.ts";
import { PermissionPanel } from "../questions/permission-panel.ts";
import type { Frame } from "../screen/inline-screen.ts";
import { cutRow, type Row, span } from "../screen/row.ts";
import { colours, dim } from "../screen/style.ts";
import type { ParkedQuestion, QuestionAnswer } from "../session/terminal-session.ts";
import type { RowContext } from "../text/row-context.ts";
import { textRows, titleRow } from "./pager.ts";
import { Scroll } from "./scroll.ts";
import type { View } from "./view.ts";

export interface ApprovalViewOptions {
  readonly parked: ParkedQuestion;
  readonly context: () => RowContext;
  readonly answer: (answer: QuestionAnswer) => Promise<void>;
  /** Closes this view. */
  readonly done: (view: View) => void;
  readonly changed: () => void;
}

/** One question of the inbox in full, with the choices below it. */
export class ApprovalView implements View {
  readonly #options: ApprovalViewOptions;
  readonly #scroll = new Scroll({ follow: false });
  readonly #panel: PermissionPanel;
  #message = "";
  #isSent = false;

  constructor(options: ApprovalViewOptions) {
    this.#options = options;
    const { context } = options;
    const { question, count, scopes } = options.parked;
    this.#panel = new PermissionPanel(question, { count, scopes, context, onEscape: "leave" });
  }

  frame(columns: number, rows: number): Frame {
    const width = Math.max(10, columns - 1);
    const panel = this.#panel.view(width, Math.max(6, rows - 6));
    const footer =
      this.#message === ""
        ? span("press a number · pgup pgdn scroll · esc back without an answer", dim)
        : span(this.#message, colours.error);
    const height = Math.max(1, rows - 2 - panel.rows.length - 1);
    const body = this.#scroll.window(textRows(this.#options.parked.text, width), height);
    const padding = Array.from({ length: height - body.length }, (): Row => []);
    const above = [titleRow("A question that waits", columns), ...body, ...padding, []];
    const all = [...above, ...panel.rows, cutRow([footer], width)];
    const cursor =
      panel.cursor === undefined
        ? undefined
        : { row: above.length + panel.cursor.row, column: panel.cursor.column };
    return { rows: all.slice(0, Math.max(rows, 1)), cursor };
  }

  press(key: KeyPress): "stay" | "close" {
    if (this.#isSent) return "stay";
    if (!this.#panel.isWriting && (key.name === "ctrl+c" || key.name === "q")) return "close";
    if (!this.#panel.isWriting && (key.name === "pageUp" || key.name === "pageDown")) {
      this.#scroll.press(key);
      return "stay";
    }
    const outcome = this.#panel.press(key);
    if (outcome.type === "leave") return "close";
    if (outcome.type === "answer") void this.#send(outcome.answer);
    return "stay";
  }

  paste(text: string): void {
    this.#panel.paste(text);
  }

  async #send(answer: QuestionAnswer): Promise<void> {
    this.#isSent = true;
    try {
      await this.#options.answer(answer);
      this.#options.done(this);
    } catch (error) {
      this.#isSent = false;
      this.#message = error instanceof Error ? error.message : String(error);
    }
    this.#options.changed();
  }
}
