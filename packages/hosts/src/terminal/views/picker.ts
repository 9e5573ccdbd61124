import { fuzzyFilter } from "@earendil-works/pi-tui/dist/fuzzy.js";
import type { KeyPress } from "../input/key-press.ts";
import { LineInput } from "../questions/line-input.ts";
import type { Frame } from "../screen/inline-screen.ts";
import { cleanText, cutRow, emptyRow, type Row, span, spreadRow, textWidth } from "../screen/row.ts";
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
  /** A line that is asked for first, such as a name; what it says before anything is typed. */
  readonly asks?: (item: PickerItem | undefined) => { readonly label: string; readonly text?: string };
  /** It needs no item. */
  readonly isGlobal?: boolean;
  /** What it does to the chosen item; "reload" asks for the items again. What it throws is shown. */
  readonly run: (item: PickerItem, text: string) => Promise<"reload" | undefined>;
}

export interface PickerOptions {
  readonly title: string;
  readonly items: readonly PickerItem[];
  readonly reload?: () => Promise<readonly PickerItem[]>;
  readonly choose: (item: PickerItem) => void;
  /** What Enter does instead where it needs a line first. */
  readonly write?: (item: PickerItem) => PickerKey | undefined;
  /** What Enter does, in a word. */
  readonly enter?: string;
  /** It is there again after Enter. */
  readonly staysOpen?: boolean;
  /** Keys with Ctrl beside Enter, since letters narrow the list. */
  readonly keys?: readonly PickerKey[];
  readonly empty?: string;
  readonly changed: () => void;
  /** Begins with this item. */
  readonly selected?: string;
  /** Begins with the last item. */
  readonly atEnd?: boolean;
}

/** A key that waits for a line. */
interface Asking {
  readonly key: PickerKey;
  readonly item: PickerItem;
  readonly line: LineInput;
}

const filterHint = "type to narrow";
const minListWidth = 79;

/** In a wide window details are beside their labels, not at the other end of it. */
function listWidth(items: readonly PickerItem[], room: number): number {
  const longest = items.map(
    ({ label, detail }) => textWidth(label) + (detail === undefined ? 0 : textWidth(detail) + 4),
  );
  return Math.min(room, Math.max(minListWidth, ...longest.map((size) => size + 2)));
}

/** A list to choose from; typing narrows it. */
export class Picker implements View {
  readonly #options: PickerOptions;
  #items: readonly PickerItem[];
  #query = "";
  #selected = 0;
  #asking: Asking | undefined;
  #message = "";
  #loads = 0;

  constructor(options: PickerOptions) {
    this.#options = options;
    this.#items = options.items;
    if (options.atEnd === true) this.#selected = Math.max(0, options.items.length - 1);
    const at = options.items.findIndex(({ id }) => id === options.selected);
    if (at !== -1) this.#selected = at;
  }

  frame(columns: number, rows: number): Frame {
    const found = this.#found();
    const asked = this.#asking?.line.view(columns);
    const bottom = this.#bottomRows(columns);
    // What is asked for is below the list, where the eyes are.
    const line = asked === undefined ? [] : [emptyRow, ...asked.rows];
    const height = Math.max(1, rows - 2 - bottom.length - line.length);
    const width = listWidth(this.#items, columns - 1);
    const first = Math.max(0, Math.min(this.#selected - Math.floor(height / 2), found.length - height));
    const list = found.slice(first, first + height).map(({ label, detail }, at): Row => {
      const isSelected = first + at === this.#selected;
      const left = [
        span(isSelected ? "› " : "  ", colours.accent),
        span(label, combine(isSelected ? bold : plain, isSelected ? inverse : plain)),
      ];
      const right = detail === undefined ? [] : [span(detail, dim)];
      const room = width - 1 - (detail === undefined ? 0 : textWidth(detail) + 1);
      return spreadRow(cutRow(left, Math.max(20, room)), right, width);
    });
    const none: readonly Row[] =
      found.length === 0
        ? [[span(this.#query === "" ? (this.#options.empty ?? "nothing fits") : "nothing fits", dim)]]
        : [];
    const padding = Array.from({ length: Math.max(0, height - list.length - none.length) }, (): Row => []);
    const typing = asked?.cursor ?? { row: 0, column: 0 };
    return {
      rows: [
        titleRow(this.#options.title, columns),
        [span("> ", colours.accent), this.#query === "" ? span(filterHint, dim) : span(this.#query)],
        ...list,
        ...none,
        ...line,
        ...padding,
        ...bottom,
      ],
      cursor:
        asked === undefined
          ? { row: 1, column: 2 + textWidth(cleanText(this.#query)) }
          : { row: 3 + list.length + none.length + typing.row, column: typing.column },
    };
  }

  #bottomRows(columns: number): readonly Row[] {
    if (this.#message !== "") return [cutRow([span(this.#message, colours.warning)], columns - 1)];
    if (this.#asking !== undefined) return [];
    const isEmpty = this.#items.length === 0;
    const keys = [
      ...(isEmpty ? [] : [`enter ${this.#options.enter ?? "choose"}`]),
      ...(this.#options.keys ?? [])
        .filter(({ isGlobal }) => !isEmpty || isGlobal === true)
        .map(({ key, label }) => `${key} ${label}`),
      "esc back",
    ];
    const rows: string[] = [];
    for (const key of keys) {
      const row = rows.at(-1);
      if (row === undefined || row.length + key.length + 3 > columns - 1) rows.push(key);
      else rows[rows.length - 1] = `${row} · ${key}`;
    }
    return rows.map((text) => cutRow([span(text, dim)], columns - 1));
  }

  press(key: KeyPress): "stay" | "close" {
    const found = this.#found();
    const item = found[this.#selected];
    this.#message = "";
    if (this.#asking !== undefined) return this.#write(key, this.#asking);
    if (key.name === "escape" || key.name === "ctrl+c") return "close";
    const extra = (this.#options.keys ?? []).find((one) => one.key === key.name);
    if (extra !== undefined) {
      this.#begin(extra, item);
      return "stay";
    }
    if (key.name === "enter") {
      if (item === undefined) return "stay";
      const writing = this.#options.write?.(item);
      if (writing !== undefined) {
        this.#begin(writing, item);
        return "stay";
      }
      this.#options.choose(item);
      return this.#options.staysOpen === true ? "stay" : "close";
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
    if (this.#asking !== undefined) this.#asking.line.paste(text);
    else this.#narrow(this.#query + text.split("\n")[0]);
  }

  /** Asks for the items again. */
  async reload(): Promise<void> {
    try {
      await this.#load();
    } catch (error) {
      this.#message = error instanceof Error ? error.message : String(error);
    } finally {
      this.#options.changed();
    }
  }

  async #load(): Promise<void> {
    if (this.#options.reload === undefined) return;
    this.#loads += 1;
    const own = this.#loads;
    const items = await this.#options.reload();
    // What was asked for later is newer.
    if (own !== this.#loads) return;
    this.#items = items;
    this.#selected = Math.min(this.#selected, Math.max(0, this.#items.length - 1));
  }

  #begin(key: PickerKey, item: PickerItem | undefined): void {
    if (item === undefined && key.isGlobal !== true) return;
    const chosen = item ?? { id: "", label: "" };
    const asks = key.asks?.(item);
    if (asks === undefined) void this.#run(key, chosen, "");
    else
      this.#asking = { key, item: chosen, line: new LineInput(asks.label, asks.text, { enter: "takes it" }) };
  }

  #write(press: KeyPress, { key, item, line }: Asking): "stay" {
    const state = line.press(press);
    if (state !== "editing") this.#asking = undefined;
    if (state === "done" && line.text !== "") void this.#run(key, item, line.text);
    return "stay";
  }

  async #run(key: PickerKey, item: PickerItem, text: string): Promise<void> {
    try {
      if ((await key.run(item, text)) === "reload") await this.#load();
    } catch (error) {
      this.#message = error instanceof Error ? error.message : String(error);
    } finally {
      this.#options.changed();
    }
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
    const wanted = this.#query.toLowerCase();
    const exact = this.#items.filter(
      ({ label, id }) => label.toLowerCase().includes(wanted) || id.toLowerCase().startsWith(wanted),
    );
    return exact.length > 0 ? exact : fuzzyFilter([...this.#items], this.#query, ({ label }) => label);
  }
}
