import type { KeyPress } from "../input/key-press.ts";
import { type Row, span } from "../screen/row.ts";
import { bold, colours, dim } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import type { FormField, FormOption, FormQuestion } from "../session/terminal-session.ts";
import { ChoiceList } from "./choice-list.ts";
import { LineInput } from "./line-input.ts";
import { answered, type Panel, type PanelOutcome, type PanelView, stay } from "./panel.ts";

/** Questions with choices, one after the other; the person can always answer in their own words. */
export class FormPanel implements Panel {
  readonly #question: FormQuestion;
  readonly #answers = new Map<string, string>();
  #at = 0;
  #ticked = new Set<number>();
  #list: ChoiceList;
  #line: LineInput | undefined;
  /** The option whose text is being written. */
  #wanted: FormOption | undefined;
  #text: string | undefined;
  /** Whether the window has no room for all of the question. */
  #isCut = false;

  constructor(question: FormQuestion) {
    this.#question = question;
    this.#list = this.#newList();
    const [field] = question.fields;
    const opened = field?.options.findIndex(({ input }) => input?.isOpen === true) ?? -1;
    if (field !== undefined && opened !== -1) this.#choose(opened, field);
  }

  get isWriting(): boolean {
    return this.#line !== undefined;
  }

  view(width: number, height: number): PanelView {
    const field = this.#field();
    if (field === undefined) return { rows: [] };
    const { fields, path } = this.#question;
    const count = fields.length > 1 ? ` (${this.#at + 1} of ${fields.length})` : "";
    const title: Row = [
      span("▲ ", colours.warning),
      span(path.join(" › "), bold),
      span(` asks: ${field.header}${count}`, dim),
    ];
    const text = [
      ...wrapRow([span(field.question, bold)], width, { first: [span("  ")] }),
      ...(field.details ?? []).flatMap((line) => wrapRow([span(line)], width, { first: [span("  ")] })),
    ];
    const choices = [
      ...field.options.map(({ label, description }, at) => ({
        label: [span(label)],
        hint: description,
        ...(field.multiple ? { box: this.#ticked.has(at) } : {}),
      })),
      ...(this.#question.isChoice === true
        ? []
        : [{ label: [span("something else", dim)], hint: "in your own words" }]),
      ...(field.multiple ? [{ label: [span("done")] }] : []),
    ];
    const view = this.#list.view({ title, text, choices, line: this.#line?.view(width) }, width, height);
    this.#isCut = view.isCut;
    return view;
  }

  takes(key: KeyPress): boolean {
    if (this.#list.takes(key) || (key.name === "v" && this.#isCut)) return true;
    const field = this.#field();
    if (field !== undefined && optionOf(key, field) !== undefined) return true;
    return key.name === "space" && this.#list.selected >= 0;
  }

  press(key: KeyPress): PanelOutcome {
    const field = this.#field();
    if (field === undefined) return stay;
    if (this.#line !== undefined) return this.#write(key, this.#line, field);
    if (key.name === "escape") return answered({ type: "deny" });
    if (key.name === "tab") return { type: "leave" };
    if (key.name === "v" && this.#isCut)
      return { type: "show", title: "The question", text: wholeText(field) };
    const at = this.#list.selected;
    const named = optionOf(key, field);
    const listed = key.name === "space" && at >= 0 ? at : this.#list.press(key);
    const chosen = named ?? listed;
    if (chosen === undefined)
      return key.text === undefined || key.name === "space" ? stay : { type: "typed" };
    return this.#choose(chosen, field);
  }

  paste(text: string): void {
    this.#line?.paste(text);
  }

  takesSecret(text: string): boolean {
    const field = this.#field();
    const at = field?.options.findIndex(({ input }) => input?.isSecret === true) ?? -1;
    if (field === undefined || at === -1) return false;
    if (this.#line === undefined) this.#choose(at, field);
    this.#line?.paste(text.trim());
    return true;
  }

  #choose(index: number, field: FormField): PanelOutcome {
    const option = field.options[index];
    if (index === field.options.length && this.#question.isChoice !== true) {
      this.#line = new LineInput("your answer");
      return stay;
    }
    if (option === undefined) return this.#give(field, this.#tickedLabels(field));
    if (option.input !== undefined) {
      const { label, isSecret } = option.input;
      this.#wanted = option;
      this.#line = new LineInput(label, "", isSecret === undefined ? {} : { isSecret });
      return stay;
    }
    if (!field.multiple) return this.#give(field, option.label);
    if (!this.#ticked.delete(index)) this.#ticked.add(index);
    this.#list.select(index);
    return stay;
  }

  #write(key: KeyPress, line: LineInput, field: FormField): PanelOutcome {
    const state = line.press(key);
    if (state === "editing") return stay;
    const wanted = this.#wanted;
    this.#line = undefined;
    this.#wanted = undefined;
    if (state === "cancelled" || line.text === "") return stay;
    if (wanted !== undefined) {
      this.#text = line.text;
      return this.#give(field, wanted.label);
    }
    const others = this.#tickedLabels(field);
    return this.#give(field, others === "" ? line.text : `${others}, ${line.text}`);
  }

  #tickedLabels({ options }: FormField): string {
    return options
      .filter((_, at) => this.#ticked.has(at))
      .map(({ label }) => label)
      .join(", ");
  }

  #give({ question }: FormField, answer: string): PanelOutcome {
    this.#answers.set(question, answer);
    this.#at += 1;
    this.#ticked = new Set();
    this.#list = this.#newList();
    return this.#field() === undefined
      ? answered({
          type: "fields",
          answers: Object.fromEntries(this.#answers),
          ...(this.#text === undefined ? {} : { text: this.#text }),
        })
      : stay;
  }

  #newList(): ChoiceList {
    const { options = [], multiple = false } = this.#field() ?? {};
    const own = this.#question.isChoice === true ? 0 : 1;
    return new ChoiceList(() => options.length + own + (multiple ? 1 : 0));
  }

  #field(): FormField | undefined {
    return this.#question.fields[this.#at];
  }
}

function optionOf({ name }: KeyPress, { options }: FormField): number | undefined {
  const at = options.findIndex(({ key }) => key === name);
  return at === -1 ? undefined : at;
}

function wholeText({ question, details = [], options }: FormField): string {
  const choices = options.map(({ label, description }, at) => `${at + 1} ${label}  ${description}`.trimEnd());
  return [question, ...details, "", ...choices].join("\n");
}
