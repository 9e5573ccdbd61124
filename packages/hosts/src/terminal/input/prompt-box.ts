import { firstLine, plural } from "../../shared/format.ts";
import { cleanText, cutRow, type Row, span } from "../screen/row.ts";
import { bold, colours, dim, type Style } from "../screen/style.ts";
import { type Draft, draftOf, emptyDraft } from "./draft.ts";
import { Editor } from "./editor.ts";
import { type CompletionSources, findOffer, type Offer, offerRows } from "./find-offer.ts";
import type { KeyPress } from "./key-press.ts";
import { VimKeys } from "./vim-keys.ts";

const maxEntries = 500;

/** Earlier prompts, newest first; going back keeps the draft, coming forward again gives it back. */
class PromptHistory {
  #entries: string[] = [];
  #at = -1;
  #isLoaded = false;
  #draft: Draft = emptyDraft;

  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  /** What was sent in earlier sessions; what was sent in this one stays newer. */
  load(entries: readonly string[]): void {
    this.#isLoaded = true;
    this.#entries = [...new Set([...this.#entries, ...entries])].slice(0, maxEntries);
  }

  add(text: string): void {
    this.#entries = [text, ...this.#entries.filter((entry) => entry !== text)].slice(0, maxEntries);
    this.#at = -1;
  }

  get isBrowsing(): boolean {
    return this.#at >= 0;
  }

  older(current: Draft): Draft | undefined {
    const entry = this.#entries[this.#at + 1];
    if (entry === undefined) return undefined;
    if (this.#at === -1) this.#draft = current;
    this.#at += 1;
    return draftOf(entry);
  }

  newer(): Draft | undefined {
    if (this.#at < 0) return undefined;
    this.#at -= 1;
    const entry = this.#entries[this.#at];
    return entry === undefined ? this.#draft : draftOf(entry);
  }

  leave(): void {
    this.#at = -1;
  }

  /** The newest entry that holds the words, after `skip` others that do. */
  search(words: string, skip: number): string | undefined {
    const wanted = words.toLowerCase();
    if (wanted === "") return undefined;
    return this.#entries.filter((entry) => entry.toLowerCase().includes(wanted))[skip];
  }
}

export interface PromptView {
  readonly rows: readonly Row[];
  readonly cursor: { readonly row: number; readonly column: number };
}

/** What became of a key: it was used, it sends the draft, or it means nothing here. */
export type PromptOutcome = "used" | "send" | "ignored";

/** Where a person writes: the editor with its history, its search and what it offers to complete. */
export class PromptBox {
  readonly editor = new Editor();
  readonly history = new PromptHistory();
  readonly #sources: CompletionSources;
  #vim: VimKeys | undefined;
  #offer: Offer | undefined;
  #selected = 0;
  #dismissed = "";
  #layoutWidth = 80;
  #search: { query: string; skip: number; readonly draft: Draft } | undefined;

  constructor(sources: CompletionSources) {
    this.#sources = sources;
  }

  get isEmpty(): boolean {
    return this.editor.isEmpty;
  }

  /** What keys are to the draft, where it is edited in the manner of vi. */
  get vimMode(): "insert" | "normal" | undefined {
    if (this.#vim === undefined) return undefined;
    return this.#vim.isInserting ? "insert" : "normal";
  }

  setVimKeys(isOn: boolean): void {
    if (isOn) this.#vim ??= new VimKeys(this.editor);
    else this.#vim = undefined;
  }

  /** Whether Escape leaves inserting, or a started command. */
  get takesEscape(): boolean {
    return this.#vim !== undefined && (this.#vim.isInserting || this.#vim.typed !== "");
  }

  get isSearching(): boolean {
    return this.#search !== undefined;
  }

  get isOffering(): boolean {
    return this.#offer !== undefined;
  }

  /** Whether the cursor is in the last line. */
  get isAtEnd(): boolean {
    const { lines, row } = this.editor.layout(this.#layoutWidth);
    return row === lines.length - 1;
  }

  set(draft: Draft): void {
    this.editor.set(draft);
    this.#vim?.beginInserting();
    this.history.leave();
    this.refresh();
  }

  paste(text: string): void {
    this.#search = undefined;
    this.editor.paste(text);
    this.#offer = undefined;
  }

  insertImage(chip: string): void {
    this.editor.insertImage(chip);
    this.#offer = undefined;
  }

  press(key: KeyPress): PromptOutcome {
    if (this.#search !== undefined) return this.#pressSearch(key, this.#search);
    if (key.name === "ctrl+r") {
      this.#search = { query: "", skip: 0, draft: this.editor.draft };
      return "used";
    }
    const offered = this.#offer === undefined ? undefined : this.#pressOffer(key, this.#offer);
    if (offered !== undefined) return offered;
    if (key.name === "enter") return this.#enter();
    if (this.#vim?.press(key) === true) {
      this.history.leave();
      this.refresh();
      return "used";
    }
    const arrow = this.vimMode === "normal" ? vimArrows.get(key.name) : undefined;
    if (arrow !== undefined) return this.#browse(arrow) ? "used" : "ignored";
    if ((key.name === "up" || key.name === "down") && this.#browse(key.name)) return "used";
    const isUsed = this.editor.press(key);
    if (!isUsed) return "ignored";
    if (key.name !== "up" && key.name !== "down") this.history.leave();
    this.refresh();
    return "used";
  }

  /** Looks again at what can be offered, as after files were loaded. */
  refresh(): void {
    const { text, cursor } = this.editor;
    const found = text === this.#dismissed ? undefined : findOffer(text, cursor, this.#sources);
    if (found?.kind !== this.#offer?.kind || found?.items[this.#selected] === undefined) this.#selected = 0;
    else if (found.items.length !== this.#offer?.items.length) this.#selected = 0;
    this.#offer = found;
  }

  view(width: number, maxRows: number): PromptView {
    if (this.#search !== undefined) return this.#searchView(width, this.#search);
    const { text } = this.editor;
    const mark = marks.get(text[0] ?? "") ?? defaultMark;
    this.#layoutWidth = Math.max(4, width - 3);
    const { lines, row, column } = this.editor.layout(this.#layoutWidth);
    const first = Math.max(0, row - maxRows + 1);
    const shown = lines.slice(first, first + maxRows);
    const rows = shown.map(
      ({ start, end }, at): Row => [
        first + at === 0 ? span("> ", mark) : span("  "),
        span(text.slice(start, end)),
      ],
    );
    const hidden = lines.length - shown.length;
    const more: readonly Row[] = hidden > 0 ? [[span(`  … ${plural(hidden, "more line")}`, dim)]] : [];
    const offer = this.#offer === undefined ? [] : offerRows(this.#offer, this.#selected, width);
    return { rows: [...rows, ...more, ...offer], cursor: { row: row - first, column: column + 2 } };
  }

  #enter(): PromptOutcome {
    const { text, cursor } = this.editor;
    if (text[cursor - 1] === "\\") {
      this.editor.replace(cursor - 1, cursor, "\n");
      return "used";
    }
    return "send";
  }

  #browse(name: "up" | "down"): boolean {
    const { lines, row } = this.editor.layout(this.#layoutWidth);
    const isAtEdge = name === "up" ? row === 0 : row === lines.length - 1;
    if (!isAtEdge || (name === "down" && !this.history.isBrowsing)) return false;
    const draft = name === "up" ? this.history.older(this.editor.draft) : this.history.newer();
    if (draft === undefined) return false;
    this.editor.set(draft, name === "up" ? 0 : draft.text.length);
    this.#offer = undefined;
    return true;
  }

  /** Undefined when the key is for the editor after all. */
  #pressOffer(key: KeyPress, offer: Offer): PromptOutcome | undefined {
    const count = offer.items.length;
    if (key.name === "up" || key.name === "down") {
      this.#selected = (this.#selected + (key.name === "down" ? 1 : count - 1)) % count;
      return "used";
    }
    if (key.name === "escape") {
      this.#dismissed = this.editor.text;
      this.#offer = undefined;
      return "used";
    }
    if (key.name !== "tab" && key.name !== "enter") return undefined;
    const value = offer.items[this.#selected]?.value ?? "";
    const isWhole = this.editor.text.slice(offer.start, offer.end) === `/${value}`;
    if (offer.kind === "command")
      this.editor.replace(offer.start, offer.end, isWhole ? `/${value}` : `/${value} `);
    else this.editor.replace(offer.start, offer.end, `${value} `);
    this.#offer = undefined;
    return offer.kind === "command" && key.name === "enter" ? "send" : "used";
  }

  #pressSearch(key: KeyPress, search: { query: string; skip: number; readonly draft: Draft }): PromptOutcome {
    const found = this.history.search(search.query, search.skip);
    if (key.name === "escape" || key.name === "ctrl+c" || key.name === "ctrl+g") {
      this.#search = undefined;
      this.editor.set(search.draft);
    } else if (key.name === "ctrl+r") {
      if (this.history.search(search.query, search.skip + 1) !== undefined) search.skip += 1;
    } else if (key.name === "backspace") {
      search.query = search.query.slice(0, -1);
      search.skip = 0;
    } else if (key.text !== undefined) {
      search.query += key.text;
      search.skip = 0;
    } else {
      this.#search = undefined;
      if (found !== undefined) this.editor.set(draftOf(found));
    }
    return "used";
  }

  #searchView(width: number, { query, skip }: { readonly query: string; readonly skip: number }): PromptView {
    const found = this.history.search(query, skip);
    const missing = query === "" ? "" : "nothing found";
    const label = "search: ";
    return {
      rows: [
        cutRow(
          [
            span("> ", colours.accent),
            span(firstLine(found ?? "")),
            span(found === undefined ? missing : "", dim),
          ],
          width,
        ),
        cutRow(
          [span(label, dim), span(query, bold), span("   enter takes it · ctrl+r older · esc back", dim)],
          width,
        ),
      ],
      cursor: { row: 1, column: label.length + cleanText(query).length },
    };
  }
}

/** In the first and the last line these go to earlier prompts. */
const vimArrows: ReadonlyMap<string, "up" | "down"> = new Map([
  ["j", "down"],
  ["k", "up"],
]);

const defaultMark: Style = colours.accent;
const marks: ReadonlyMap<string, Style> = new Map([
  ["!", colours.warning],
  ["#", colours.link],
]);
