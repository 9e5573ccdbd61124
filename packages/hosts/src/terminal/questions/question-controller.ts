import { firstLine, plural } from "../../shared/format.ts";
import type { KeyPress } from "../input/key-press.ts";
import { cutRow, type Row, span } from "../screen/row.ts";
import { bold, colours, dim } from "../screen/style.ts";
import type { Question, QuestionAnswer } from "../session/terminal-session.ts";
import { BackgroundPanel } from "./background-panel.ts";
import { FormPanel } from "./form-panel.ts";
import type { Panel, PanelView } from "./panel.ts";
import { PermissionPanel } from "./permission-panel.ts";
import { PlanPanel } from "./plan-panel.ts";

export interface QuestionControllerOptions {
  readonly now: () => number;
  readonly answer: (questionId: string, answer: QuestionAnswer) => void;
  /** Opens a text in the person's editor; undefined when it came back unchanged. */
  readonly edit: (text: string) => Promise<string | undefined>;
  /** Shows a text on a page of its own. */
  readonly show: (title: string, text: string) => void;
}

/** A key that comes this soon after a panel was opened was not meant for it. */
export const guardMs = 300;

interface OpenPanel {
  readonly panel: Panel;
  readonly questions: readonly Question[];
  guardedUntil: number;
}

/**
 * Questions wait here. A new one is only a line: the keys stay with the draft until the person opens it on purpose, and
 * even then no key counts that was already on its way.
 */
export class QuestionController {
  readonly #options: QuestionControllerOptions;
  readonly #waiting = new Map<string, Question>();
  #open: OpenPanel | undefined;

  constructor(options: QuestionControllerOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#waiting.size;
  }

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** Ids of agents that wait for an answer. */
  asking(): ReadonlySet<string> {
    return new Set([...this.#waiting.values()].flatMap(({ agentId }) => agentId ?? []));
  }

  ask(question: Question): void {
    this.#waiting.set(question.id, question);
  }

  close(questionId: string): void {
    this.#waiting.delete(questionId);
    const questions = this.#open?.questions.filter(({ id }) => id !== questionId) ?? [];
    if (this.#open !== undefined && questions.length === 0) this.#open = undefined;
  }

  /** Opens the question that waits longest, together with those that are equal to it. */
  open(): boolean {
    const [first] = this.#waiting.values();
    if (first === undefined) return false;
    const equal = this.#equalTo(first);
    this.#open = {
      panel: this.#panelFor(first, equal.length),
      questions: equal,
      guardedUntil: this.#options.now() + guardMs,
    };
    return true;
  }

  #equalTo(first: Question): readonly Question[] {
    return [...this.#waiting.values()].filter((other) => keyOf(other) === keyOf(first));
  }

  leave(): void {
    this.#open = undefined;
  }

  /** True when the key was for the question; false when it belongs to the draft, to which the focus then returns. */
  press(key: KeyPress): boolean {
    const open = this.#open;
    if (open === undefined) return false;
    const now = this.#options.now();
    const isText = key.text !== undefined && !/^[\d\s]$/.test(key.text);
    if (now < open.guardedUntil) {
      // The one that continues typing did not mean the question; a repeated key keeps the guard up.
      if (isText) this.#open = undefined;
      open.guardedUntil = now + guardMs;
      return !isText;
    }
    const outcome = open.panel.press(key);
    if (outcome.type === "answer") this.#give(open.questions, outcome.answer);
    if (outcome.type === "leave") this.#open = undefined;
    if (outcome.type === "show") this.#options.show(outcome.title, outcome.text);
    if (outcome.type !== "typed") return true;
    this.#open = undefined;
    return false;
  }

  /** True when the text was for the question. */
  paste(text: string): boolean {
    if (this.#open?.panel.isWriting !== true) {
      this.#open = undefined;
      return false;
    }
    this.#open.panel.paste(text);
    return true;
  }

  /** In `height` rows; a question whose choices need more may take `maxHeight`. */
  view(width: number, height: number, maxHeight = height): PanelView {
    const panel = this.#open?.panel;
    if (panel !== undefined) return panel.view(width, panel instanceof PermissionPanel ? height : maxHeight);
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
    this.#open = undefined;
    for (const { id } of questions) {
      this.#waiting.delete(id);
      this.#options.answer(id, answer);
    }
    // The one that is answering continues to the next; the guard holds for it anew.
    if (this.#waiting.size > 0) this.open();
  }

  #panelFor(question: Question, count: number): Panel {
    switch (question.kind) {
      case "permission":
        return new PermissionPanel(question, { count });
      case "background":
        return new BackgroundPanel(question);
      case "form":
        return new FormPanel(question);
      case "plan":
        return new PlanPanel(question, this.#options.edit);
    }
  }
}

function headline(question: Question): string {
  switch (question.kind) {
    case "permission":
      return `asks: ${question.call.tool} ${firstLine(question.subject)}`;
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
