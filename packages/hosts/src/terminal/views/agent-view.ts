import { formatCost, formatDuration, formatTokens } from "../../shared/format.ts";
import type { KeyPress } from "../input/key-press.ts";
import { LineInput } from "../questions/line-input.ts";
import type { Frame } from "../screen/inline-screen.ts";
import { cutRow, type Row, span, spreadRow, textWidth } from "../screen/row.ts";
import { agentColour, bold, combine, dim } from "../screen/style.ts";
import type { AgentEntry, AgentSnapshot } from "../session/terminal-session.ts";
import { isRunning } from "../text/agent-rows.ts";
import type { RowContext } from "../text/row-context.ts";
import { entryRows } from "./entry-rows.ts";
import { Scroll } from "./scroll.ts";
import type { View } from "./view.ts";

export interface AgentViewOptions {
  readonly agent: () => AgentSnapshot | undefined;
  readonly watch: (listener: (entry: AgentEntry) => void) => () => void;
  readonly send: (text: string) => Promise<string>;
  readonly stop: () => void;
  readonly moveToBackground: () => void;
  readonly changed: () => void;
  readonly context: () => RowContext;
  readonly now: () => number;
}

/** The conversation of one agent, live; it can be written to, stopped, resumed and moved to the background. */
export class AgentView implements View {
  readonly #options: AgentViewOptions;
  readonly #entries: AgentEntry[] = [];
  readonly #scroll = new Scroll({ follow: true });
  readonly #forget: () => void;
  #line: LineInput | undefined;
  #hint = "";
  #rows: { readonly width: number; readonly count: number; readonly rows: readonly Row[] } | undefined;

  constructor(options: AgentViewOptions) {
    this.#options = options;
    this.#forget = options.watch((entry) => {
      this.#entries.push(entry);
      options.changed();
    });
  }

  get isMoving(): boolean {
    const agent = this.#options.agent();
    return agent !== undefined && isRunning(agent);
  }

  frame(columns: number, rows: number): Frame {
    const width = columns - 1;
    const agent = this.#options.agent();
    const line = this.#line?.view(width);
    const below = [...(line?.rows ?? []), this.#footer(agent, width)];
    const height = Math.max(1, rows - 2 - below.length);
    const body = this.#scroll.window(this.#body(width), height);
    const padding = Array.from({ length: height - body.length }, (): Row => []);
    const above = [this.#title(agent, width), [], ...body, ...padding];
    return {
      rows: [...above, ...below],
      cursor:
        line?.cursor === undefined
          ? undefined
          : { row: above.length + line.cursor.row, column: line.cursor.column },
    };
  }

  press(key: KeyPress): "stay" | "close" {
    if (this.#line !== undefined) return this.#write(key, this.#line);
    this.#hint = "";
    if (key.name === "escape" || key.name === "q" || key.name === "ctrl+c") return "close";
    if (key.name === "m" || key.name === "r" || key.name === "enter")
      this.#line = new LineInput("message to the agent");
    else if (key.name === "x") this.#options.stop();
    else if (key.name === "b" || key.name === "ctrl+b") this.#options.moveToBackground();
    else this.#scroll.press(key);
    return "stay";
  }

  paste(text: string): void {
    this.#line?.paste(text);
  }

  dispose(): void {
    this.#forget();
  }

  #write(key: KeyPress, line: LineInput): "stay" {
    const state = line.press(key);
    if (state === "editing") return "stay";
    this.#line = undefined;
    if (state === "done" && line.text !== "")
      void this.#options.send(line.text).then((outcome) => {
        this.#hint = outcome;
        this.#options.changed();
      });
    return "stay";
  }

  #body(width: number): readonly Row[] {
    const known = this.#rows;
    if (known?.width === width && known.count === this.#entries.length) return known.rows;
    const rows = entryRows(this.#entries, { ...this.#options.context(), width });
    this.#rows = { width, count: this.#entries.length, rows };
    return rows;
  }

  #title(agent: AgentSnapshot | undefined, width: number): Row {
    if (agent === undefined) return [span("This agent is not known any more.", dim)];
    const { name, colour, description, state, activity, tokens, costUsd, startedAt, endedAt } = agent;
    const facts = [
      activity === "" ? state : activity,
      tokens === 0 ? "" : formatTokens(tokens),
      costUsd === undefined || costUsd === 0 ? "" : formatCost(costUsd),
      formatDuration((endedAt ?? this.#options.now()) - startedAt),
    ].filter((part) => part !== "");
    const left = [span(name, combine(bold, agentColour(colour))), span(`  ${description}`)];
    const right = facts.join(" · ");
    return spreadRow(cutRow(left, Math.max(20, width - textWidth(right) - 2)), [span(right, dim)], width);
  }

  #footer(agent: AgentSnapshot | undefined, width: number): Row {
    if (this.#hint !== "") return cutRow([span(this.#hint, dim)], width);
    const running = agent !== undefined && isRunning(agent);
    const keys = [
      "↑↓ scroll",
      running ? "m message" : "r resume with a message",
      ...(running ? ["x stop"] : []),
      ...(running && !agent.isBackground ? ["b background"] : []),
      "esc back",
    ];
    return spreadRow([span(keys.join(" · "), dim)], this.#scroll.position(), width);
  }
}
