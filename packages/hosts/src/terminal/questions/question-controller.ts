import { firstLine, plural } from "../../shared/format.ts";
import type { KeyPress } from "../input/key-press.ts";
import { cutRow, type Row, span } from "../screen/row.ts";
import { bold, colours, dim } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import type { BackgroundQuestion, Question, QuestionAnswer } from "../session/terminal-session.ts";
import type { RowContext } from "../text/row-context.ts";
import { ChoiceList, numberStyle } from "./choice-list.ts";
import { FormPanel } from "./form-panel.ts";
import { answered, type Panel, type PanelOutcome, type PanelView, stay } from "./panel.ts";
import { PermissionPanel } from "./permission-panel.ts";
import { PlanPanel } from "./plan-panel.ts";

export interface QuestionControllerOptions {
  readonly now: () => number;
  /** Runs the work after so many milliseconds and all keys that have come by then, unless what it returns is called before. */
  readonly later: (milliseconds: number, work: () => void) => () => void;
  readonly answer: (question: Question, answer: QuestionAnswer) => void;
  /** Gives a key to the draft that was taken for an answer and was none. */
  readonly typed: (key: KeyPress) => void;
  /** Something changed that no key has caused. */
  readonly changed: () => void;
  /** Opens a text in the person's editor; undefined when it came back unchanged. */
  readonly edit: (text: string) => Promise<string | undefined>;
  /** Shows a text on a page of its own. */
  readonly show: (title: string, text: string) => void;
  readonly context?: () => RowContext;
}

/** A key that comes this soon after a panel was opened on purpose was not meant for it. */
export const guardMs = 300;

/** A key that comes this soon after a question has opened by itself was not meant for it. */
export const unaskedGuardMs = 600;

/** Keys with less between them are typing: none of them answers a question that has opened by itself. */
export const burstMs = 250;

interface OpenPanel {
  readonly panel: Panel;
  readonly questions: readonly Question[];
  /** It opened by itself, and no key was meant for it yet: what is typed still goes to the draft. */
  isUnasked: boolean;
  /** What keys are to it now: nothing until it has been on the screen for a moment. */
  state: "unseen" | "guarded" | "ready";
}

interface HeldKey {
  readonly key: KeyPress;
  readonly cancel: () => void;
}

/**
 * Questions wait here. One that comes while nothing is typed opens by itself, and one key answers it; what is typed goes to the
 * draft all the same. While there is a draft a question is only a line, until the person opens it on purpose. In both cases
 * no key counts that was already on its way.
 */
export class QuestionController {
  readonly #options: QuestionControllerOptions;
  readonly #waiting = new Map<string, Question>();
  #open: OpenPanel | undefined;
  /** A key that answers unless another one follows it. */
  #held: HeldKey | undefined;
  #endGuard = (): void => undefined;
  #lastKeyAt = Number.NEGATIVE_INFINITY;

  constructor(options: QuestionControllerOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#waiting.size;
  }

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** Whether keys belong to an open question, and not to the draft. */
  get hasFocus(): boolean {
    return this.#open?.isUnasked === false;
  }

  /** What keys do now, for the last line; nothing while they are still to be taken for typing. */
  get hint(): string {
    const open = this.#open;
    if (open?.state !== "ready" || open.panel.isWriting) return "";
    return open.isUnasked ? "press a number · or keep typing" : "press a number · tab back to the draft";
  }

  /** Whether the main agent waits for an answer, or to start what was asked about. */
  get isMainAsking(): boolean {
    return [...this.#waiting.values()].some(({ path }) => path.length === 1 && path[0] === "main");
  }

  /** Ids of agents that wait for an answer. */
  asking(): ReadonlySet<string> {
    return new Set([...this.#waiting.values()].flatMap(({ agentId }) => agentId ?? []));
  }

  ask(question: Question): void {
    this.#waiting.set(question.id, question);
    const open = this.#open;
    // What no key was meant for yet is asked anew for all of them.
    if (open?.isUnasked !== true || !open.questions.some((one) => keyOf(one) === keyOf(question))) return;
    this.#dropHeld();
    this.#openFirst({ isUnasked: true });
  }

  /** Gives the question back where it was not answered here. */
  close(questionId: string): Question | undefined {
    const closed = this.#waiting.get(questionId);
    this.#waiting.delete(questionId);
    const questions = this.#open?.questions.filter(({ id }) => id !== questionId) ?? [];
    if (this.#open !== undefined && questions.length === 0) this.leave();
    return closed;
  }

  /** Opens the question that waits longest, together with those that are equal to it. */
  open(): boolean {
    return this.#openFirst({ isUnasked: false });
  }

  /** The same for a person who types nothing now; a question that is open stays. */
  openUnasked(): void {
    if (this.#open === undefined) this.#openFirst({ isUnasked: true });
  }

  #openFirst({ isUnasked }: Pick<OpenPanel, "isUnasked">): boolean {
    const [first] = this.#waiting.values();
    if (first === undefined) return false;
    const equal = this.#equalTo(first);
    this.#endGuard();
    const open: OpenPanel = {
      panel: this.#panelFor(first, equal.length),
      questions: equal,
      isUnasked,
      state: "unseen",
    };
    this.#open = open;
    // The person has just been writing in this field.
    if (open.panel.isWriting) this.#focus(open);
    else if (!isUnasked) this.#guard(open, guardMs);
    return true;
  }

  /** Keys that were on their way do not count; the end of that is seen. */
  #guard(open: OpenPanel, milliseconds: number): void {
    this.#endGuard();
    open.state = "guarded";
    this.#endGuard = this.#options.later(milliseconds, () => {
      open.state = "ready";
      this.#options.changed();
    });
  }

  #equalTo(first: Question): readonly Question[] {
    return [...this.#waiting.values()].filter((other) => keyOf(other) === keyOf(first));
  }

  leave(): void {
    this.#held?.cancel();
    this.#held = undefined;
    this.#endGuard();
    this.#open = undefined;
  }

  /** True when the key was for the question; false when it belongs to the draft, to which the focus then returns. */
  press(key: KeyPress): boolean {
    const open = this.#open;
    if (open === undefined) return false;
    return open.isUnasked ? this.#pressUnasked(key, open) : this.#pressFocused(key, open);
  }

  #pressFocused(key: KeyPress, open: OpenPanel): boolean {
    const isText = key.text !== undefined && !/^[\d\s]$/.test(key.text);
    if (open.state === "ready") return this.#handOver(key, open);
    // A user who continues typing did not mean the question; a repeated key keeps the guard up.
    if (isText) this.leave();
    else this.#guard(open, guardMs);
    return !isText;
  }

  /** What is typed goes to the draft; a single key that means something to the question is for the question. */
  #pressUnasked(key: KeyPress, open: OpenPanel): boolean {
    const now = this.#options.now();
    const isQuiet = now - this.#lastKeyAt >= burstMs;
    this.#lastKeyAt = now;
    if (key.name === "tab") {
      this.#dropHeld();
      open.isUnasked = false;
      this.#guard(open, guardMs);
      return true;
    }
    const isShown = open.state === "ready";
    if (key.text !== undefined) {
      const isMeant = isShown && isQuiet && open.panel.takes(key);
      if (isMeant) this.#hold(key, open);
      else this.#backToDraft();
      return isMeant;
    }
    if (!panelKeys.has(key.name)) return false;
    if (this.#held !== undefined) this.#backToDraft();
    else if (isShown && isQuiet) {
      // Moving to a choice is not yet choosing it: an enter in the same burst does not count.
      this.#handOver(key, open);
      open.isUnasked = !open.panel.isWriting;
    }
    return true;
  }

  #hold(key: KeyPress, open: OpenPanel): void {
    const cancel = this.#options.later(burstMs, () => {
      this.#held = undefined;
      open.isUnasked = false;
      this.#handOver(key, open);
      this.#options.changed();
    });
    this.#held = { key, cancel };
  }

  /** The question is a line again, and what was held is typed. */
  #backToDraft(): void {
    this.#dropHeld();
    this.leave();
  }

  #dropHeld(): void {
    const held = this.#held;
    held?.cancel();
    this.#held = undefined;
    if (held !== undefined) this.#options.typed(held.key);
  }

  #handOver(key: KeyPress, open: OpenPanel): boolean {
    const outcome = open.panel.press(key);
    if (outcome.type === "answer") this.#give(open.questions, outcome.answer);
    if (outcome.type === "leave") this.leave();
    if (outcome.type === "show") this.#options.show(outcome.title, outcome.text);
    if (outcome.type !== "typed") return true;
    this.leave();
    return false;
  }

  /**
   * A key that is pasted, or was written in the place of a message, fills the field that waits for one, also of a question that is
   * only a line: it is never shown and never sent to a model.
   */
  takeSecret(text: string): boolean {
    const wasOpen = this.#open !== undefined;
    if (!looksLikeKey.test(text) || (!wasOpen && !this.open())) return false;
    const open = this.#open;
    if (open?.panel.takesSecret?.(text) !== true) {
      if (!wasOpen) this.leave();
      return false;
    }
    this.#dropHeld();
    this.#focus(open);
    return true;
  }

  #focus(open: OpenPanel): void {
    this.#endGuard();
    open.isUnasked = false;
    open.state = "ready";
  }

  /** True when the text was for the question. */
  paste(text: string): boolean {
    if (this.#open !== undefined && this.takeSecret(text)) return true;
    if (this.#open?.panel.isWriting !== true) {
      this.#backToDraft();
      return false;
    }
    this.#open.panel.paste(text);
    return true;
  }

  /** In `height` rows; a question whose choices need more may take `maxHeight`. */
  view(width: number, height: number, maxHeight = height): PanelView {
    const open = this.#open;
    if (open !== undefined) {
      const { panel } = open;
      if (open.state === "unseen") this.#guard(open, unaskedGuardMs);
      const isShort = panel instanceof PermissionPanel && !panel.hasDiff;
      const view = panel.view(width, isShort ? height : maxHeight);
      return open.state === "ready" ? view : { ...view, rows: view.rows.map(withoutNumbers) };
    }
    const [first] = this.#waiting.values();
    if (first === undefined) return { rows: [] };
    const equal = this.#equalTo(first).length;
    const left = this.#waiting.size - equal;
    const others = `${equal > 1 ? ` (${plural(equal, "agent")} ask the same)` : ""}${left > 0 ? ` and ${plural(left, "more question")}` : ""}`;
    const row: Row = [
      span("▲ ", colours.warning),
      span(first.path.join(" › "), bold),
      span(` ${headline(first)}${others}`),
    ];
    const hint = width < 40 ? "  tab" : "  tab to answer";
    return { rows: [[...cutRow(row, width - hint.length), span(hint, dim)]] };
  }

  #give(questions: readonly Question[], answer: QuestionAnswer): void {
    this.leave();
    for (const question of questions) {
      this.#waiting.delete(question.id);
      this.#options.answer(question, answer);
    }
    // A user who is answering continues to the next; the guard holds for it anew.
    if (this.#waiting.size > 0) this.open();
  }

  #panelFor(question: Question, count: number): Panel {
    switch (question.kind) {
      case "permission": {
        const { context } = this.#options;
        return new PermissionPanel(question, { count, context });
      }
      case "background":
        return new BackgroundPanel(question);
      case "form":
        return new FormPanel(question);
      case "plan":
        return new PlanPanel(question, this.#options.edit);
    }
  }
}

/** A single long word of letters, digits and a few signs; paths and addresses have others. */
const looksLikeKey = /^\s*(?=sk-|\S*\d)[\w.-]{16,}\s*$/;

/** Numbers that cannot be pressed yet step back. */
function withoutNumbers(row: Row): Row {
  return row.map((one) => (one.style === numberStyle ? { ...one, style: dim } : one));
}

/** Keys without a text that a question takes. */
const panelKeys: ReadonlySet<string> = new Set([
  "enter",
  "escape",
  "up",
  "down",
  "left",
  "right",
  "ctrl+n",
  "ctrl+p",
]);

function headline(question: Question): string {
  switch (question.kind) {
    case "permission":
      return question.starts === undefined
        ? `asks: ${question.call.tool} ${firstLine(question.subject)}`
        : `wants to start ${firstLine(question.subject)}`;
    case "background":
      return `asks what ${question.agent} may use in the background`;
    case "form":
      return `asks: ${question.fields[0]?.question ?? ""}`;
    case "plan":
      return "has a plan to carry out";
  }
}

/** Equal calls of several agents get one answer; anything else is a question of its own. */
function keyOf(question: Question): string {
  if (question.kind !== "permission") return question.id;
  const { call, subject, diff, rules } = question;
  return JSON.stringify([call.tool, subject, diff?.hunks, rules]);
}

/** What an agent may use in the background: asked once before it starts, because it cannot ask then. */
class BackgroundPanel implements Panel {
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
