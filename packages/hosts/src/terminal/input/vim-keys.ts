import type { Editor } from "./editor.ts";
import type { KeyPress } from "./key-press.ts";
import { findCharacter, findObject, findTarget, lineEnd, lineStart, type VimTarget } from "./vim-motions.ts";

/** One command of normal mode, as it is typed. */
interface VimCommand {
  readonly count: number;
  readonly operator?: string;
  readonly name: string;
  /** The character behind `f`, `r` and the like, or the name of an object. */
  readonly sign: string;
}

const commandPattern =
  /^(?<count>[1-9]\d*)?(?:(?<operator>[dcy])(?<more>[1-9]\d*)?(?:(?<line>[dcy])|(?<object>[ia])(?<what>\S)|(?<motion>gg|[hjklwWbBeE0^$G ;,])|(?<find>[fFtT])(?<at>.))|(?<simple>gg|[hjklwWbBeE0^$G ;,iaIAoOxXDCYpPuJ~sS.])|(?<with>[rfFtT])(?<char>.))$/u;
/** What can still become a command. */
const beginningPattern = /^(?:[1-9]\d*)?(?:[dcy](?:[1-9]\d*)?)?(?:[ia]|[fFtTr]|g)?$/;

/** Short forms, and what they are short for. */
const shortForms: ReadonlyMap<string, readonly [operator: string, motion: string]> = new Map([
  ["x", ["d", "l"]],
  ["X", ["d", "h"]],
  ["D", ["d", "$"]],
  ["C", ["c", "$"]],
  ["s", ["c", "l"]],
  ["S", ["c", "c"]],
  ["Y", ["y", "y"]],
]);

/** Editing in the manner of vi: Escape leaves inserting, letters are commands then. */
export class VimKeys {
  readonly #editor: Editor;
  #isInserting = true;
  #typed = "";
  #register = { text: "", isByLine: false };
  #lastFind: { readonly kind: string; readonly sign: string } | undefined;
  /** The keys of the change that is being made, and of the one before it, for `.`. */
  #recorded: KeyPress[] = [];
  #lastChange: readonly KeyPress[] = [];
  #isRepeating = false;

  constructor(editor: Editor) {
    this.#editor = editor;
  }

  get isInserting(): boolean {
    return this.#isInserting;
  }

  /** A new draft starts with writing. */
  beginInserting(): void {
    this.#isInserting = true;
    this.#typed = "";
  }

  /** Keys that were typed of a command that is not complete. */
  get typed(): string {
    return this.#typed;
  }

  /** False where the key is not for it: then it means what it means without it. */
  press(key: KeyPress): boolean {
    if (this.#isInserting) return this.#insert(key);
    if (key.name === "escape" && this.#typed !== "") {
      this.#typed = "";
      return true;
    }
    if (key.text === undefined) return false;
    // The sign that begins a command, a file or a note begins writing.
    if (this.#typed === "" && this.#editor.text === "" && /^[/@!#]$/.test(key.text)) {
      this.beginInserting();
      return false;
    }
    this.#typed += key.text;
    const command = readCommand(this.#typed);
    if (command === undefined) {
      if (!beginningPattern.test(this.#typed)) this.#typed = "";
      return true;
    }
    const keys = Array.from(this.#typed, (text) => ({ name: text, text }));
    this.#typed = "";
    // At the first and the last line these go to earlier prompts, as the arrows do.
    if (command.operator === undefined && (command.name === "j" || command.name === "k"))
      return this.#moveRows(command);
    this.#carryOut(command, keys);
    return true;
  }

  #insert(key: KeyPress): boolean {
    if (key.name !== "escape") {
      if (this.#recorded.length > 0) this.#recorded.push(key);
      return false;
    }
    this.#isInserting = false;
    if (this.#recorded.length > 0) this.#lastChange = [...this.#recorded, key];
    this.#recorded = [];
    const { text, cursor } = this.#editor;
    if (cursor > lineStart(text, cursor)) this.#editor.press({ name: "left" });
    return true;
  }

  #moveRows({ name, count }: VimCommand): boolean {
    const { text, cursor } = this.#editor;
    const target = findTarget(name, text, cursor, count);
    if (target === undefined) return false;
    this.#moveTo(target.to);
    return true;
  }

  #carryOut(command: VimCommand, keys: readonly KeyPress[]): void {
    if (command.name === ".") {
      this.#repeat();
      return;
    }
    const [operator, name] =
      command.operator === undefined
        ? (shortForms.get(command.name) ?? [undefined, command.name])
        : [command.operator, command.name];
    const before = this.#editor.text;
    if (operator !== undefined) this.#operate({ ...command, operator, name });
    else if (!this.#change(command)) {
      const target = this.#targetOf(command);
      if (target !== undefined) this.#moveTo(target.to);
    }
    if (this.#isInserting) this.#recorded = [...keys];
    else if (this.#editor.text !== before && name !== "u") this.#lastChange = keys;
  }

  #repeat(): void {
    if (this.#isRepeating) return;
    this.#isRepeating = true;
    try {
      for (const key of this.#lastChange) if (!this.press(key)) this.#editor.press(key);
    } finally {
      this.#isRepeating = false;
    }
  }

  #targetOf({ name, sign, count }: VimCommand): VimTarget | undefined {
    const { text, cursor } = this.#editor;
    if (sign !== "") this.#lastFind = { kind: name, sign };
    const isAgain = name === ";" || name === ",";
    const { kind = name, sign: wanted = sign } = isAgain ? (this.#lastFind ?? {}) : {};
    if (wanted === "") return findTarget(name, text, cursor, count);
    return findCharacter(name === "," ? otherCase(kind) : kind, wanted, text, cursor, count);
  }

  /** Takes a part of the text: `d`, `c` and `y` with a motion, an object, or their own letter for whole lines. */
  #operate(command: VimCommand): void {
    const { text } = this.#editor;
    const range = this.#rangeOf(command);
    if (range === undefined) return;
    const { from, to, isByLine } = range;
    this.#register = { text: text.slice(from, to), isByLine };
    const { operator } = command;
    if (operator === "y") {
      this.#moveTo(Math.min(from, this.#editor.cursor));
      return;
    }
    if (isByLine && operator === "d") {
      // The line break goes with the lines; of the last line it is the one before.
      const isLast = to >= text.length;
      this.#editor.replace(isLast ? Math.max(0, from - 1) : from, isLast ? to : to + 1, "");
      this.#moveTo(lineStart(this.#editor.text, Math.min(from, this.#editor.text.length)));
      return;
    }
    this.#editor.replace(from, to, "");
    if (operator === "c") this.#isInserting = true;
    else this.#moveTo(from);
  }

  #rangeOf(command: VimCommand) {
    const { name, sign, count, operator } = command;
    const { text, cursor } = this.#editor;
    if (name === operator) {
      const last = findTarget("j", text, cursor, count - 1)?.to ?? cursor;
      return { from: lineStart(text, cursor), to: lineEnd(text, count > 1 ? last : cursor), isByLine: true };
    }
    if (name === "i" || name === "a") {
      const found = findObject(name === "a", sign, text, cursor);
      return found === undefined ? undefined : { from: found[0], to: found[1], isByLine: false };
    }
    // Changing a word leaves the blank behind it, and a word of one character is one too.
    const isWord = operator === "c" && /^[wW]$/.test(name) && /\S/.test(text[cursor] ?? "");
    const target = isWord
      ? findTarget(name === "w" ? "e" : "E", text, cursor - 1, count)
      : this.#targetOf(command);
    if (target === undefined) return undefined;
    const [from, end] = target.to < cursor ? [target.to, cursor] : [cursor, target.to];
    if (target.isByLine === true)
      return { from: lineStart(text, from), to: lineEnd(text, end), isByLine: true };
    const to = target.isInclusive === true && target.to >= cursor ? Math.min(text.length, end + 1) : end;
    // A word that ends its line is not taken together with the line break.
    const line = lineEnd(text, cursor);
    return { from, to: name === "w" && to > line && cursor < line ? line : to, isByLine: false };
  }

  /** True for what changes the text or begins to write, without an operator. */
  #change({ name, sign, count }: VimCommand): boolean {
    const editor = this.#editor;
    const { text, cursor } = editor;
    const end = lineEnd(text, cursor);
    const begin = (at: number): void => {
      editor.moveTo(at);
      this.#isInserting = true;
    };
    const put = (at: number, added: string, to: number): void => {
      editor.replace(at, at, added);
      this.#moveTo(to);
    };
    switch (name) {
      case "i":
        begin(cursor);
        return true;
      case "a":
        begin(Math.min(end, cursor + 1));
        return true;
      case "I":
        begin(findTarget("^", text, cursor, 1)?.to ?? cursor);
        return true;
      case "A":
        begin(end);
        return true;
      case "o":
        editor.replace(end, end, "\n");
        this.#isInserting = true;
        return true;
      case "O": {
        const start = lineStart(text, cursor);
        editor.replace(start, start, "\n");
        begin(start);
        return true;
      }
      case "u":
        for (let left = count; left > 0; left -= 1) editor.press({ name: "ctrl+_" });
        this.#moveTo(editor.cursor);
        return true;
      case "r":
        if (cursor < end) editor.replace(cursor, Math.min(end, cursor + count), sign.repeat(count));
        this.#moveTo(Math.min(end, cursor + count) - 1);
        return true;
      case "~": {
        const taken = text.slice(cursor, Math.min(end, cursor + count));
        editor.replace(cursor, cursor + taken.length, Array.from(taken, otherCase).join(""));
        this.#moveTo(cursor + taken.length);
        return true;
      }
      case "J":
        if (end < text.length)
          editor.replace(end, end + 1 + (/^[^\S\n]*/.exec(text.slice(end + 1))?.[0].length ?? 0), " ");
        this.#moveTo(end);
        return true;
      case "p":
      case "P": {
        const { text: kept, isByLine } = this.#register;
        const added = isByLine ? kept : kept.repeat(count);
        if (added === "" && !isByLine) return true;
        const start = lineStart(text, cursor);
        if (isByLine && name === "p") put(end, `\n${added}`, end + 1);
        else if (isByLine) put(start, `${added}\n`, start);
        else {
          const at = name === "p" ? Math.min(end, cursor + 1) : cursor;
          put(at, added, at + added.length - 1);
        }
        return true;
      }
      default:
        return false;
    }
  }

  /** In normal mode the cursor is on a character, not behind the last. */
  #moveTo(index: number): void {
    const { text } = this.#editor;
    const at = Math.max(0, Math.min(index, text.length));
    const last = Math.max(lineStart(text, at), lineEnd(text, at) - 1);
    this.#editor.moveTo(Math.min(at, last));
  }
}

function readCommand(typed: string): VimCommand | undefined {
  const found = commandPattern.exec(typed)?.groups;
  if (found === undefined) return undefined;
  const { operator, line, object, what, motion, find, at, simple, char } = found;
  const count = Math.min(maxCount, Number(found["count"] ?? 1) * Number(found["more"] ?? 1));
  if (operator === undefined) return { count, name: simple ?? found["with"] ?? "", sign: char ?? "" };
  if (line !== undefined && line !== operator) return { count: 0, operator, name: "", sign: "" };
  return {
    count,
    operator,
    name: line ?? object ?? motion ?? find ?? "",
    sign: what ?? at ?? "",
  };
}

const maxCount = 1_000;

function otherCase(sign: string): string {
  return sign === sign.toLowerCase() ? sign.toUpperCase() : sign.toLowerCase();
}
