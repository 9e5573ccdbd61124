import type { KeyPress } from "../input/key-press.ts";
import { span } from "../screen/row.ts";
import { bold, colours, dim } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import type { BackgroundQuestion } from "../session/terminal-session.ts";
import { ChoiceList } from "./choice-list.ts";
import { answered, type Panel, type PanelOutcome, type PanelView, stay } from "./panel.ts";

/** What an agent may use in the background: asked once before it starts, because it cannot ask then. */
export class BackgroundPanel implements Panel {
  readonly isWriting = false;
  readonly #question: BackgroundQuestion;
  readonly #granted: Set<string>;
  readonly #list: ChoiceList;

  constructor(question: BackgroundQuestion) {
    this.#question = question;
    this.#granted = new Set(question.tools);
    this.#list = new ChoiceList(() => question.tools.length + 2);
  }

  view(width: number, height: number): PanelView {
    const { path, agent, description, tools } = this.#question;
    const title = [
      span("▲ ", colours.warning),
      span(path.join(" › "), bold),
      span(` starts ${agent} in the background: ${description}`),
    ];
    const text = wrapRow(
      [span("It can ask for nothing later. What may it use without asking?", dim)],
      width,
      {
        first: [span("  ")],
      },
    );
    const choices = [
      ...tools.map((tool) => ({ label: [span(tool)], box: this.#granted.has(tool) })),
      { label: [span("start it with what is ticked")], short: "start with [x]" },
      { label: [span("start it with nothing of this")], short: "with nothing", hint: "esc" },
    ];
    return this.#list.view({ title, text, choices }, width, height);
  }

  takes(key: KeyPress): boolean {
    return this.#list.takes(key) || (key.name === "space" && this.#list.selected >= 0);
  }

  press(key: KeyPress): PanelOutcome {
    const { tools } = this.#question;
    if (key.name === "escape") return answered({ type: "grant", tools: [] });
    if (key.name === "tab") return { type: "leave" };
    const at = this.#list.selected;
    const chosen = key.name === "space" && at >= 0 && at < tools.length ? at : this.#list.press(key);
    const tool = chosen === undefined ? undefined : tools[chosen];
    if (tool !== undefined) {
      if (!this.#granted.delete(tool)) this.#granted.add(tool);
      return stay;
    }
    if (chosen === tools.length)
      return answered({ type: "grant", tools: tools.filter((one) => this.#granted.has(one)) });
    if (chosen === tools.length + 1) return answered({ type: "grant", tools: [] });
    return key.text === undefined || key.name === "space" ? stay : { type: "typed" };
  }

  paste(): void {}
}
