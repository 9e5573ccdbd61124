import type { KeyPress } from "../input/key.ts";
import { type Row, span } from "../screen/row.ts";
import { bold, colours, dim } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap.ts";
import type { GrantScope, PermissionQuestion } from "../session/terminal-session.ts";
import { diffRows } from "../text/diff-rows.ts";
import { plural } from "../text/format.ts";
import { ChoiceList, type ListedChoice } from "./choice-list.ts";
import { LineInput } from "./line-input.ts";
import { answered, type Panel, type PanelOutcome, type PanelView, stay } from "./panel.ts";

const scopes: readonly { readonly scope: GrantScope; readonly label: string }[] = [
  { scope: "session", label: "in this session" },
  { scope: "agent", label: "for this agent" },
  { scope: "project", label: "in this project, also later" },
];

/** May this call run? Once, always by a narrow rule, not, or not and with a message to the agent. */
export class PermissionPanel implements Panel {
  readonly #question: PermissionQuestion;
  readonly #count: number;
  readonly #list = new ChoiceList(() => 4);
  #scope = 0;
  #rules: readonly string[];
  #input: { readonly kind: "rule" | "message"; readonly line: LineInput } | undefined;

  /** `count` equal questions of several agents are answered together. */
  constructor(question: PermissionQuestion, count: number) {
    this.#question = question;
    this.#count = count;
    this.#rules = question.rules;
  }

  get isWriting(): boolean {
    return this.#input !== undefined;
  }

  view(width: number, height: number): PanelView {
    const { call, diff } = this.#question;
    const head = wrapRow(
      [
        span("▲ ", colours.warning),
        span(this.#question.path.join(" › "), bold),
        span(` asks to use ${call.tool}`),
        ...(this.#count > 1 ? [span(` (${plural(this.#count, "agent")} ask the same)`, dim)] : []),
      ],
      width,
    );
    const below = [
      ...wrapRow([span(this.#question.reason, dim)], width, { first: [span("  ")] }),
      ...this.#list.rows(this.#choices(), width),
    ];
    const input = this.#input?.line.view(width);
    const room = Math.max(3, height - head.length - below.length - (input?.rows.length ?? 0));
    const subject =
      diff === undefined
        ? this.#subjectRows(width, room)
        : diffRows(diff, { width, maxLines: room - 1, indent: 4 });
    const above = [...head, ...subject, ...below];
    if (input === undefined) return { rows: above };
    const cursor =
      input.cursor === undefined
        ? undefined
        : { row: above.length + input.cursor.row, column: input.cursor.column };
    return { rows: [...above, ...input.rows], cursor };
  }

  press(key: KeyPress): PanelOutcome {
    if (this.#input !== undefined) return this.#write(key, this.#input);
    if (key.name === "escape") return answered({ type: "deny" });
    if (key.name === "tab") return { type: "leave" };
    if (key.name === "left" || key.name === "right") {
      this.#scope = (this.#scope + (key.name === "right" ? 1 : scopes.length - 1)) % scopes.length;
      this.#list.select(1);
      return stay;
    }
    if (key.name === "e" && this.#rules.length > 0) {
      this.#input = { kind: "rule", line: new LineInput("the rule to store", this.#rules.join(", ")) };
      return stay;
    }
    const chosen = this.#list.press(key);
    if (chosen !== undefined) return this.#choose(chosen);
    return key.text === undefined || key.name === "space" ? stay : { type: "typed" };
  }

  paste(text: string): void {
    this.#input?.line.paste(text);
  }

  #choose(index: number): PanelOutcome {
    if (index === 0) return answered({ type: "allow" });
    if (index === 1) {
      const { scope } = scopes[this.#scope] ?? { scope: "session" as const };
      return answered({ type: "allow-always", scope, rules: this.#rules });
    }
    if (index === 2) return answered({ type: "deny" });
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
    if (rules.length > 0) this.#rules = rules;
    this.#list.select(1);
    return stay;
  }

  #choices(): readonly ListedChoice[] {
    const rules = this.#rules.length === 0 ? "exactly this call" : this.#rules.join(", ");
    const { label } = scopes[this.#scope] ?? { label: "" };
    const hint = `‹ ${label} ›  ←→ where${this.#rules.length === 0 ? "" : " · e edits the rule"}`;
    return [
      { label: [span("yes")] },
      { label: [span("yes, and do not ask again for "), span(rules, bold)], hint },
      { label: [span("no")], hint: "esc" },
      { label: [span("no, and say what to do instead")] },
    ];
  }

  #subjectRows(width: number, room: number): readonly Row[] {
    const rows = this.#question.subject
      .split("\n")
      .flatMap((line) => wrapRow([span(line)], width, { first: [span("    ")] }));
    if (rows.length <= room) return rows;
    return [...rows.slice(0, room - 1), [span(`    … ${plural(rows.length - room + 1, "more line")}`, dim)]];
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
