import { graphemes } from "../screen/row.ts";
import { chipRanges, type Draft, emptyDraft, expandDraft, withImage, withPaste } from "./draft.ts";
import type { KeyPress } from "./key-press.ts";
import { columnOf, indexAt, type LayoutLine, layoutLines, wordEnd, wordStart } from "./layout-lines.ts";

interface Snapshot {
  readonly draft: Draft;
  readonly cursor: number;
}

const maxUndo = 200;

/** The text a person writes, with the keys of a shell's line editor over any number of lines. */
export class Editor {
  #draft: Draft = emptyDraft;
  #cursor = 0;
  #width = 80;
  #undo: Snapshot[] = [];
  readonly #killed: string[] = [];
  #lastEdit: "type" | "kill" | "yank" | "other" = "other";
  /** The column that moving up and down keeps to. */
  #column: number | undefined;

  get draft(): Draft {
    return this.#draft;
  }

  get text(): string {
    return this.#draft.text;
  }

  get cursor(): number {
    return this.#cursor;
  }

  get isEmpty(): boolean {
    return this.#draft.text === "";
  }

  expanded(): string {
    return expandDraft(this.#draft);
  }

  set(draft: Draft, cursor: number = draft.text.length): void {
    if (draft.text !== this.text) this.#save("other");
    this.#draft = draft;
    this.#moveTo(cursor);
  }

  clear(): void {
    this.set(emptyDraft);
  }

  insert(text: string): void {
    const isWord = /^[\p{L}\p{N}]$/u.test(text);
    if (!isWord || this.#lastEdit !== "type") this.#save(isWord ? "type" : "other");
    this.#replace(this.#cursor, this.#cursor, text);
  }

  paste(text: string): void {
    this.#save("other");
    const { draft, cursor } = withPaste(this.#draft, this.#cursor, text);
    this.#draft = draft;
    this.#moveTo(cursor);
  }

  insertImage(chip: string): void {
    this.#save("other");
    const { draft, cursor } = withImage(this.#draft, this.#cursor, chip);
    this.#draft = draft;
    this.#moveTo(cursor);
  }

  /** Replaces a part of the text, as a completion does. */
  replace(start: number, end: number, text: string): void {
    this.#save("other");
    this.#replace(this.#outOfChip(start, true), this.#outOfChip(end, false), text);
  }

  /** Puts the cursor there; what was pasted is one character to it. */
  moveTo(index: number): void {
    this.#lastEdit = "other";
    this.#moveTo(this.#outOfChip(index, true));
  }

  /** Lines as they are in a window of this width; moving up and down keeps to them. */
  layout(width: number): {
    readonly lines: readonly LayoutLine[];
    readonly row: number;
    readonly column: number;
  } {
    this.#width = width;
    const lines = layoutLines(this.text, width);
    const row = this.#rowIn(lines);
    return { lines, row, column: columnOf(this.text.slice(lines[row]?.start ?? 0, this.#cursor)) };
  }

  /** False where the key means nothing to an editor, or the cursor cannot go further that way. */
  press({ name, text }: KeyPress): boolean {
    const command = commands.get(name);
    if (command !== undefined) return this.#run(command);
    if (text === undefined) return false;
    this.insert(text);
    return true;
  }

  #run(command: Command): boolean {
    switch (command) {
      case "up":
      case "down":
        return this.#moveRow(command === "up" ? -1 : 1);
      case "undo":
        return this.#undoLast();
      case "yank":
        this.#yank();
        return true;
      case "yank-pop":
        return this.#yankPop();
      case "newline":
        this.insert("\n");
        return true;
      case "delete-back":
        return this.#remove(this.#before(), this.#cursor);
      case "delete-forward":
        return this.#remove(this.#cursor, this.#after());
      case "kill-word-back":
        return this.#kill(wordStart(this.text, this.#cursor), this.#cursor);
      case "kill-word-forward":
        return this.#kill(this.#cursor, wordEnd(this.text, this.#cursor));
      case "kill-to-start":
        return this.#kill(this.#lineStart(), this.#cursor);
      case "kill-to-end":
        return this.#kill(this.#cursor, this.#lineEnd() === this.#cursor ? this.#after() : this.#lineEnd());
      default:
        return this.#move(command);
    }
  }

  #move(command: Exclude<Command, EditCommand>): boolean {
    const targets: Record<typeof command, () => number> = {
      left: () => this.#before(),
      right: () => this.#after(),
      "word-left": () => wordStart(this.text, this.#cursor),
      "word-right": () => wordEnd(this.text, this.#cursor),
      "line-start": () => this.#lineStart(),
      "line-end": () => this.#lineEnd(),
    };
    const target = this.#outOfChip(targets[command](), command.includes("left"));
    this.#lastEdit = "other";
    if (target === this.#cursor) return false;
    this.#moveTo(target);
    return true;
  }

  #moveRow(by: number): boolean {
    const { lines, row, column } = this.layout(this.#width);
    const line = lines[row + by];
    if (line === undefined) return false;
    const wanted = this.#column ?? column;
    const text = this.text.slice(line.start, line.end);
    const isWrapped = lines[row + by + 1]?.start === line.end;
    const index = Math.min(indexAt(text, wanted), isWrapped ? Math.max(0, text.length - 1) : text.length);
    this.#moveTo(this.#outOfChip(line.start + index, true));
    this.#column = wanted;
    this.#lastEdit = "other";
    return true;
  }

  #rowIn(lines: readonly LayoutLine[]): number {
    const next = lines.findIndex(({ start }) => start > this.#cursor);
    return next === -1 ? lines.length - 1 : next - 1;
  }

  #remove(start: number, end: number): boolean {
    if (start === end) return false;
    this.#save("other");
    this.#replace(start, end, "");
    return true;
  }

  #kill(from: number, to: number): boolean {
    const start = this.#outOfChip(from, true);
    const end = this.#outOfChip(to, false);
    if (start === end) return false;
    const text = this.text.slice(start, end);
    const joins = this.#lastEdit === "kill";
    this.#save("kill");
    if (joins) {
      const last = this.#killed.pop() ?? "";
      this.#killed.push(end === this.#cursor ? text + last : last + text);
    } else this.#killed.push(text);
    this.#replace(start, end, "");
    this.#lastEdit = "kill";
    return true;
  }

  #yank(): void {
    const text = this.#killed.at(-1);
    if (text === undefined) return;
    this.#save("yank");
    this.#replace(this.#cursor, this.#cursor, text);
    this.#lastEdit = "yank";
  }

  #yankPop(): boolean {
    const last = this.#killed.at(-1);
    if (this.#lastEdit !== "yank" || last === undefined || this.#killed.length < 2) return false;
    this.#replace(this.#cursor - last.length, this.#cursor, "");
    this.#killed.unshift(this.#killed.pop() ?? "");
    const text = this.#killed.at(-1) ?? "";
    this.#replace(this.#cursor, this.#cursor, text);
    this.#lastEdit = "yank";
    return true;
  }

  #undoLast(): boolean {
    const last = this.#undo.pop();
    if (last === undefined) return false;
    this.#draft = last.draft;
    this.#moveTo(last.cursor);
    this.#lastEdit = "other";
    return true;
  }

  #save(edit: "type" | "kill" | "yank" | "other"): void {
    this.#undo.push({ draft: this.#draft, cursor: this.#cursor });
    if (this.#undo.length > maxUndo) this.#undo.shift();
    this.#lastEdit = edit;
  }

  #replace(start: number, end: number, text: string): void {
    const old = this.text;
    this.#draft = { ...this.#draft, text: old.slice(0, start) + text + old.slice(end) };
    this.#moveTo(start + text.length);
  }

  #moveTo(index: number): void {
    this.#cursor = Math.max(0, Math.min(index, this.text.length));
    this.#column = undefined;
  }

  #before(): number {
    const chip = chipRanges(this.#draft).find(({ end }) => end === this.#cursor);
    if (chip !== undefined) return chip.start;
    // Looking at a few characters is enough: none is composed of more.
    const near = this.text.slice(Math.max(0, this.#cursor - 40), this.#cursor);
    return this.#cursor - (graphemes(near).at(-1)?.length ?? 0);
  }

  #after(): number {
    const chip = chipRanges(this.#draft).find(({ start }) => start === this.#cursor);
    if (chip !== undefined) return chip.end;
    return this.#cursor + (graphemes(this.text.slice(this.#cursor, this.#cursor + 40))[0]?.length ?? 0);
  }

  /** An index inside a chip is moved to one of its ends. */
  #outOfChip(index: number, toStart: boolean): number {
    const chip = chipRanges(this.#draft).find(({ start, end }) => start < index && index < end);
    if (chip === undefined) return index;
    return toStart ? chip.start : chip.end;
  }

  #lineStart(): number {
    return this.text.lastIndexOf("\n", this.#cursor - 1) + 1;
  }

  #lineEnd(): number {
    const end = this.text.indexOf("\n", this.#cursor);
    return end === -1 ? this.text.length : end;
  }
}

type EditCommand =
  | "up"
  | "down"
  | "undo"
  | "yank"
  | "yank-pop"
  | "newline"
  | "delete-back"
  | "delete-forward"
  | "kill-word-back"
  | "kill-word-forward"
  | "kill-to-start"
  | "kill-to-end";
type Command = EditCommand | "left" | "right" | "word-left" | "word-right" | "line-start" | "line-end";

const commands: ReadonlyMap<string, Command> = new Map([
  ["up", "up"],
  ["down", "down"],
  ["left", "left"],
  ["right", "right"],
  ["ctrl+f", "right"],
  ["alt+left", "word-left"],
  ["ctrl+left", "word-left"],
  ["alt+b", "word-left"],
  ["alt+right", "word-right"],
  ["ctrl+right", "word-right"],
  ["alt+f", "word-right"],
  ["home", "line-start"],
  ["ctrl+a", "line-start"],
  ["end", "line-end"],
  ["ctrl+e", "line-end"],
  ["backspace", "delete-back"],
  ["shift+backspace", "delete-back"],
  ["ctrl+h", "delete-back"],
  ["delete", "delete-forward"],
  ["ctrl+d", "delete-forward"],
  ["ctrl+w", "kill-word-back"],
  ["alt+backspace", "kill-word-back"],
  ["ctrl+backspace", "kill-word-back"],
  ["alt+d", "kill-word-forward"],
  ["alt+delete", "kill-word-forward"],
  ["ctrl+u", "kill-to-start"],
  ["ctrl+k", "kill-to-end"],
  ["ctrl+y", "yank"],
  ["alt+y", "yank-pop"],
  ["ctrl+-", "undo"],
  ["ctrl+_", "undo"],
  ["shift+enter", "newline"],
  ["alt+enter", "newline"],
  ["ctrl+enter", "newline"],
  ["ctrl+j", "newline"],
]);
