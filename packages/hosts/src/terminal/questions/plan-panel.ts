import type { KeyPress } from "../input/key-press.ts";
import { cutRow, span } from "../screen/row.ts";
import { bold, colours, dim } from "../screen/style.ts";
import type { PlanQuestion } from "../session/terminal-session.ts";
import { ChoiceList } from "./choice-list.ts";
import { LineInput } from "./line-input.ts";
import { answered, type Panel, type PanelOutcome, type PanelView, stay } from "./panel.ts";

/** A finished plan: carry it out, change it first, or continue planning. The plan itself is in the scrollback above. */
export class PlanPanel implements Panel {
  readonly #question: PlanQuestion;
  readonly #edit: (plan: string) => Promise<string | undefined>;
  readonly #list = new ChoiceList(() => 4);
  #plan: string;
  #line: LineInput | undefined;

  constructor(question: PlanQuestion, edit: (plan: string) => Promise<string | undefined>) {
    this.#question = question;
    this.#plan = question.plan;
    this.#edit = edit;
  }

  get isWriting(): boolean {
    return this.#line !== undefined;
  }

  view(width: number, height: number): PanelView {
    const isEdited = this.#plan !== this.#question.plan;
    const title = [
      span("▲ ", colours.warning),
      span(this.#question.path.join(" › "), bold),
      span(" has a plan to carry out"),
      ...(isEdited ? [span(" (edited)", dim)] : []),
    ];
    const text = [cutRow([span("  v shows the plan", dim)], width)];
    const choices = [
      { label: [span("carry it out, and accept edits in this folder")], short: "yes, edits too" },
      { label: [span("carry it out, and ask before each edit")], short: "yes, ask edits" },
      { label: [span("edit the plan first")], short: "edit the plan", hint: "in $EDITOR" },
      { label: [span("no, and say what is missing")], short: "no, and say why", hint: "esc: no" },
    ];
    return this.#list.view({ title, text, choices, line: this.#line?.view(width) }, width, height);
  }

  takes(key: KeyPress): boolean {
    return this.#list.takes(key) || key.name === "v";
  }

  press(key: KeyPress): PanelOutcome {
    if (this.#line !== undefined) {
      const state = this.#line.press(key);
      if (state === "editing") return stay;
      const message = this.#line.text;
      this.#line = undefined;
      if (state === "cancelled") return stay;
      return answered(message === "" ? { type: "deny" } : { type: "deny", message });
    }
    if (key.name === "escape") return answered({ type: "deny" });
    if (key.name === "tab") return { type: "leave" };
    if (key.name === "v") return { type: "show", title: "The plan", text: this.#plan };
    switch (this.#list.press(key)) {
      case 0:
        return answered({ type: "approve-plan", plan: this.#plan, mode: "acceptEdits" });
      case 1:
        return answered({ type: "approve-plan", plan: this.#plan, mode: "default" });
      case 2:
        void this.#edit(this.#plan).then((plan) => {
          this.#plan = plan ?? this.#plan;
        });
        return stay;
      case 3:
        this.#line = new LineInput("what is missing?");
        return stay;
      default:
        return key.text === undefined || key.name === "space" ? stay : { type: "typed" };
    }
  }

  paste(text: string): void {
    this.#line?.paste(text);
  }
}
