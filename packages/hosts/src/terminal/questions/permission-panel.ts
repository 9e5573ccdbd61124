import { plural } from "../../shared/format.ts";
import type { KeyPress } from "../input/key-press.ts";
import { cutRow, type Row, span } from "../screen/row.ts";
import { bold, colours, dim } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import type { GrantScope, PermissionQuestion } from "../session/terminal-session.ts";
import { diffRows } from "../text/diff-rows.ts";
import { plainContext, type RowContext } from "../text/row-context.ts";
import { ChoiceList, type ListedChoice, numberStyle } from "./choice-list.ts";
import { LineInput } from "./line-input.ts";
import { answered, type Panel, type PanelOutcome, type PanelView, stay } from "./panel.ts";

const liveScopes: readonly GrantScope[] = ["session", "agent", "project"];

const scopeLabels: Readonly<Record<GrantScope, string>> = {
  session: "in this session",
  agent: "for this agent",
  tree: "for this agent and those below it",
  project: "in this project, also later",
};

const shortLabels = { yes: "yes", always: "always", no: "no", message: "no+why" } as const;

type PermissionChoice = "yes" | "always" | "no" | "message";

export interface PermissionPanelOptions {
  /** So many equal questions of several agents are answered together. */
  readonly count: number;
  /** How far a yes can reach; without any it is for the call alone. */
  readonly scopes?: readonly GrantScope[];
  /** What Esc means. */
  readonly onEscape?: "no" | "leave";
  /** How the change of a file is shown. */
  readonly context?: () => RowContext;
}

/** May this call run? Once, always by a narrow rule, not, or not and with a message to the agent. */
export class PermissionPanel implements Panel {
  readonly #question: PermissionQuestion;
  readonly #count: number;
  readonly #scopes: readonly GrantScope[];
  readonly #kinds: readonly PermissionChoice[];
  readonly #list: ChoiceList;
  readonly #onEscape: "no" | "leave";
  readonly #context: () => RowContext;
  #scope = 0;
  #rules: readonly string[];
  #input: { readonly kind: "rule" | "message"; readonly line: LineInput } | undefined;

  constructor(
    question: PermissionQuestion,
    { count, scopes = liveScopes, onEscape = "no", context = () => plainContext(80) }: PermissionPanelOptions,
  ) {
    this.#question = question;
    this.#count = count;
    this.#scopes = scopes;
    this.#onEscape = onEscape;
    this.#context = context;
    this.#rules = question.rules;
    const isOnce = scopes.length === 0 || question.starts !== undefined;
    this.#kinds = isOnce ? ["yes", "no", "message"] : ["yes", "always", "no", "message"];
    this.#list = new ChoiceList(() => this.#kinds.length);
  }

  get isWriting(): boolean {
    return this.#input !== undefined;
  }

  /** What is to be read before the answer takes more than a few rows. */
  get hasDiff(): boolean {
    return this.#question.diff !== undefined;
  }

  view(width: number, height: number): PanelView {
    const { call, diff, starts } = this.#question;
    const head = wrapRow(
      [
        span("▲ ", colours.warning),
        span(this.#question.path.join(" › "), bold),
        span(
          starts === undefined ? ` asks to use ${call.tool}` : ` wants to start ${plural(starts, "agent")}`,
        ),
        ...(this.#count > 1 ? [span(` (${plural(this.#count, "agent")} ask the same)`, dim)] : []),
      ],
      width,
    );
    const below = [
      ...wrapRow([span(this.#question.reason, dim)], width, { first: [span("  ")] }),
      ...this.#list.rows(this.#choices(), width),
    ];
    const input = this.#input?.line.view(width);
    const written = input?.rows.length ?? 0;
    const room = Math.max(3, height - head.length - below.length - written);
    const subject =
      diff === undefined
        ? this.#subjectRows(width, room)
        : [
            cutRow([span(`    ${this.#context().fileName(diff.path)}`, bold)], width),
            ...diffRows(
              diff,
              { ...this.#context(), width },
              { maxRows: Math.max(1, room - 2), indent: 4, wholeKey: "v" },
            ),
          ];
    const whole = [...head, ...subject, ...below];
    const above = whole.length + written > height ? this.#shortRows(head, width, height - written) : whole;
    if (input === undefined) return { rows: above };
    const cursor =
      input.cursor === undefined
        ? undefined
        : { row: above.length + input.cursor.row, column: input.cursor.column };
    return { rows: [...above, ...input.rows], cursor };
  }

  /** Where there is no room for all: who asks, what would run, and the choices, a line each or all in one. */
  #shortRows(head: readonly Row[], width: number, height: number): readonly Row[] {
    const choices = this.#list.rows(this.#choices(), 1000).map((one) => cutRow(one, width));
    const isRoomy = height >= choices.length + 3;
    const below = isRoomy
      ? choices
      : [
          cutRow(
            this.#kinds.flatMap((kind, at) => [
              span(`${at === 0 ? "" : " "}${at + 1}`, numberStyle),
              span(` ${shortLabels[kind]}`),
            ]),
            width,
          ),
        ];
    const above = head.slice(0, 1).map((one) => cutRow(one, width));
    const room = Math.max(1, height - above.length - below.length);
    return [...above, ...this.#subjectRows(width, room, "  "), ...below].slice(-Math.max(2, height));
  }

  takes(key: KeyPress): boolean {
    if (key.name === "e") return this.#editsRules();
    return this.#list.takes(key) || key.name === "v";
  }

  press(key: KeyPress): PanelOutcome {
    if (this.#input !== undefined) return this.#write(key, this.#input);
    if (key.name === "tab" || (key.name === "escape" && this.#onEscape === "leave")) return { type: "leave" };
    if (key.name === "escape") return answered({ type: "deny" });
    const isAlways = this.#kinds.includes("always");
    if (isAlways && (key.name === "left" || key.name === "right")) {
      const { length } = this.#scopes;
      this.#scope = (this.#scope + (key.name === "right" ? 1 : length - 1)) % length;
      this.#list.select(1);
      return stay;
    }
    if (key.name === "e" && this.#editsRules()) {
      this.#input = {
        kind: "rule",
        line: new LineInput("the rule to store", this.#rules.join(", "), { enter: "takes it" }),
      };
      return stay;
    }
    if (key.name === "v") return { type: "show", title: "What would run", text: this.#wholeText() };
    const chosen = this.#list.press(key);
    if (chosen !== undefined) return this.#choose(chosen);
    return key.text === undefined || key.name === "space" ? stay : { type: "typed" };
  }

  paste(text: string): void {
    this.#input?.line.paste(text);
  }

  #editsRules(): boolean {
    return this.#kinds.includes("always") && this.#rules.length > 0;
  }

  #choose(index: number): PanelOutcome {
    const kind = this.#kinds[index];
    if (kind === "yes") return answered({ type: "allow" });
    if (kind === "always")
      return answered({ type: "allow-always", scope: this.#scopeNow(), rules: this.#rules });
    if (kind === "no") return answered({ type: "deny" });
    this.#input = { kind: "message", line: new LineInput("what should it do instead?") };
    return stay;
  }

  #write(
    key: KeyPress,
    { kind, line }: { readonly kind: "rule" | "message"; readonly line: LineInput },
  ): PanelOutcome {
    const state = line.press(key);
    if (state === "editing") return stay;
    this.#input = undefined;
    if (state === "cancelled") return stay;
    if (kind === "message")
      return answered(line.text === "" ? { type: "deny" } : { type: "deny", message: line.text });
    const rules = splitRules(line.text);
    const wrong = rules.map(this.#question.checkRule).find((reason) => reason !== undefined);
    if (wrong !== undefined) {
      this.#input = {
        kind,
        line: new LineInput(`this is no rule: ${wrong}`, line.text, { enter: "takes it" }),
      };
      return stay;
    }
    if (rules.length > 0) this.#rules = rules;
    this.#list.select(1);
    return stay;
  }

  #choices(): readonly ListedChoice[] {
    const rules = this.#rules.length === 0 ? "exactly this call" : this.#rules.join(", ");
    const label = scopeLabels[this.#scopeNow()];
    const hint = `‹ ${label} ›  ←→ where${this.#rules.length === 0 ? "" : " · e edits the rule"}`;
    const choices: Readonly<Record<PermissionChoice, ListedChoice>> = {
      yes: { label: [span("yes")] },
      always: {
        label: [span("yes, and do not ask again for "), span(rules, bold)],
        hint,
        isHintWhole: true,
      },
      no: { label: [span("no")], ...(this.#onEscape === "no" ? { hint: "esc" } : {}) },
      message: { label: [span("no, and say what to do instead")] },
    };
    return this.#kinds.map((kind) => choices[kind]);
  }

  #scopeNow(): GrantScope {
    return this.#scopes[this.#scope] ?? "session";
  }

  #subjectRows(width: number, room: number, indent = "    "): readonly Row[] {
    const rows = this.#question.subject
      .split("\n")
      .flatMap((line) => wrapRow([span(line)], width, { first: [span(indent)] }));
    if (rows.length <= room) return rows;
    if (room === 1) return [[...cutRow(rows[0] ?? [], width - 8), span(" … v all", dim)]];
    const left = plural(rows.length - room + 1, "more line");
    const more = width < 40 ? `${indent}… v: all lines` : `${indent}… ${left}, v shows all`;
    return [...rows.slice(0, room - 1), cutRow([span(more, dim)], width)];
  }

  #wholeText(): string {
    const { subject, diff } = this.#question;
    if (diff === undefined) return subject;
    return [diff.path, ...diff.hunks.flatMap(({ lines }) => ["", ...lines])].join("\n");
  }
}

/** Rules are parted by commas outside of parentheses. */
function splitRules(text: string): readonly string[] {
  const rules: string[] = [];
  let depth = 0;
  let current = "";
  for (const sign of text) {
    if (sign === "(") depth += 1;
    if (sign === ")") depth -= 1;
    if (sign === "," && depth <= 0) {
      rules.push(current);
      current = "";
    } else current += sign;
  }
  return [...rules, current].map((rule) => rule.trim()).filter((rule) => rule !== "");
}
