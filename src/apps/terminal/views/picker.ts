import { fuzzyFilter } from "@earendil-works/pi-tui/dist/fuzzy.js";
import type { KeyPress } from "../input/key.ts";
import type { Frame } from "../screen/inline-screen.ts";
import { cleanText, cutRow, type Row, span, spreadRow, textWidth } from "../screen/row.ts";
import { bold, colours, combine, dim, inverse, plain } from "../screen/style.ts";
import { titleRow } from "./pager.ts";
import type { View } from "./view.ts";

export interface PickerItem {
  readonly id: string;
  readonly label: string;
  readonly detail?: string;
}

export interface PickerKey {
  readonly key: string;
  readonly label: string;
  /** What it does to the chosen item; "reload" asks for the items again. */
  readonly run: (item: PickerItem) => Promise<"reload" | undefined>;
}

export interface PickerOptions {
  readonly title: string;
  readonly items: readonly PickerItem[];
  readonly reload?: () => Promise<readonly PickerItem[]>;
  readonly choose: (item: PickerItem) => void;
  /** Keys with Ctrl beside Enter, since letters narrow the list. */
  readonly keys?: readonly PickerKey[];
  readonly empty?: string;
  readonly changed: () => void;
  /** Begins with the last item. */
  readonly atEnd?: boolean;
}

/** A list to choose from; typing narrows it. */
export class Picker implements View {
  readonly #options: PickerOptions;
  #items: readonly PickerItem[];
  #query = "";
  #selected = 0;

  constructor(options: PickerOptions) {
    this.#options = options;
    this.#items = options.items;
    if (options.atEnd === true) this.#selected = Math.max(0, options.items.length - 1);
  }

  frame(columns: number, rows: number): Frame {
    const found = this.#found();
    const height = Math.max(1, rows - 3);
    const first = Math.max(0, Math.min(this.#selected - Math.floor(height / 2), found.length - height));
    const list = found.slice(first, first + height).map(({ label, detail }, at): Row => {
      const isSelected = first + at === this.#selected;
      const left = [
        span(isSelected ? "› " : "  ", colours.accent),
        span(label, combine(isSelected ? bold : plain, isSelected ? inverse : plain)),
      ];
      const right = detail === undefined ? [] : [span(detail, dim)];
      const room = columns - 2 - (detail === undefined ? 0 : textWidth(detail) + 1);
      return spreadRow(cutRow(left, Math.max(20, room)), right, columns - 1);
    });
    const none: readonly Row[] =
      found.length === 0 ? [[span(this.#options.empty ?? "nothing fits", dim)]] : [];
    const padding = Array.from({ length: Math.max(0, height - list.length - none.length) }, (): Row => []);
    const keys = [
      "enter choose",
      ...(this.#options.keys ?? []).map(({ key, label }) => `${key} ${label}`),
      "esc back",
    ];
    return {
      rows: [
        titleRow(this.#options.title, columns),
        [span("> ", colours.accent), span(this.#query)],
        ...list,
        ...none,
        ...padding,
        cutRow([span(keys.join(" · "), dim)], columns - 1),
      ],
      cursor: { row: 1, column: 2 + textWidth(cleanText(this.#query)) },
    };
  }

  press(key: KeyPress): "stay" | "close" {
    const found = this.#found();
    const item = found[this.#selected];
    if (key.name === "escape" || key.name === "ctrl+c") return "close";
    const extra = (this.#options.keys ?? []).find((one) => one.key === key.name);
    if (extra !== undefined) {
      if (item !== undefined) void this.#run(extra, item);
      return "stay";
    }
    if (key.name === "enter") {
      if (item === undefined) return "stay";
      this.#options.choose(item);
      return "close";
    }
    if (key.name === "up" || key.name === "ctrl+p") this.#move(-1, found.length);
    else if (key.name === "down" || key.name === "ctrl+n") this.#move(1, found.length);
    else if (key.name === "pageUp") this.#move(-10, found.length);
    else if (key.name === "pageDown") this.#move(10, found.length);
    else if (key.name === "backspace") this.#narrow(this.#query.slice(0, -1));
    else if (key.text !== undefined) this.#narrow(this.#query + key.text);
    return "stay";
  }

  paste(text: string): void {
    this.#narrow(this.#query + text.split("\n")[0]);
  }

  async #run(key: PickerKey, item: PickerItem): Promise<void> {
    const wish = await key.run(item);
    if (wish !== "reload" || this.#options.reload === undefined) return;
    this.#items = await this.#options.reload();
    this.#selected = Math.min(this.#selected, Math.max(0, this.#items.length - 1));
    this.#options.changed();
  }

  #narrow(query: string): void {
    this.#query = query;
    this.#selected = 0;
  }

  #move(by: number, count: number): void {
    this.#selected = Math.max(0, Math.min(count - 1, this.#selected + by));
  }

  #found(): readonly PickerItem[] {
    if (this.#query === "") return this.#items;
    return fuzzyFilter([...this.#items], this.#query, ({ label, id }) => `${label} ${id}`);
  }
}
