import { describe, expect, test } from "vitest";
import { draftOf } from "./draft.ts";
import { Editor } from "./editor.ts";
import { VimKeys } from "./vim-keys.ts";

/** `|` is the cursor; `<` in the keys is Escape. */
function edit(before: string, keys: string): string {
  const editor = new Editor();
  const vim = new VimKeys(editor);
  editor.set(draftOf(before.replace("|", "")), before.indexOf("|"));
  const press = (sign: string): void => {
    const key = sign === "<" ? { name: "escape" } : { name: sign, text: sign };
    if (!vim.press(key)) editor.press(key);
  };
  press("<");
  editor.moveTo(before.indexOf("|"));
  for (const sign of keys) press(sign);
  return `${editor.text.slice(0, editor.cursor)}|${editor.text.slice(editor.cursor)}`;
}

describe("the keys of vi in the draft [CLI-4]", () => {
  test.each([
    ["|one two three", "w", "one |two three"],
    ["|", "/login", "/login|"],
    ["|", "@a", "@a|"],
    ["o|ne", "/x", "o|e"],
    ["|one, two", "2w", "one, |two"],
    ["|one, two", "W", "one, |two"],
    ["one two |three", "b", "one |two three"],
    ["|one two", "e", "on|e two"],
    ["|one two", "$", "one tw|o"],
    ["  one t|wo", "0", "|  one two"],
    ["  one t|wo", "^", "  |one two"],
    ["one\ntw|o", "gg", "|one\ntwo"],
    ["o|ne\ntwo", "G", "one\n|two"],
    ["o|ne\ntwo", "j", "one\nt|wo"],
    ["|a b c b", "fb", "a |b c b"],
    ["|a b c b", "fb;", "a b c |b"],
    ["a b c |b", "Fb,", "a b c |b"],
    ["|a b c", "tc", "a b| c"],
    ["on|e", "l", "on|e"],
    ["|x", "h", "|x"],
  ])("%j moves by %s to %j", (before, keys, after) => {
    expect(edit(before, keys)).toBe(after);
  });

  test.each([
    ["|one two three", "dw", "|two three"],
    ["|one two three", "d2w", "|three"],
    ["|one two three", "2dw", "|three"],
    ["one |two three", "cwzwei<", "one zwe|i three"],
    ["one t|wo three", "ciwzwei<", "one zwe|i three"],
    ["one t|wo three", "daw", "one |three"],
    ['say "he|llo" now', 'ci"bye<', 'say "by|e" now'],
    ["f(a, |b)", "di(", "f(|)"],
    ["f(a, |b)", "da(", "|f"],
    ["one |two", "D", "one| "],
    ["one |two", "Cthree<", "one thre|e"],
    ["o|ne\ntwo\nthree", "dd", "|two\nthree"],
    ["one\ntwo\nth|ree", "dd", "one\n|two"],
    ["o|ne\ntwo\nthree", "2dd", "|three"],
    ["o|ne\ntwo", "ccnew<", "ne|w\ntwo"],
    ["o|ne\ntwo\nthree", "dj", "|three"],
    ["|one\ntwo", "yyjp", "one\ntwo\n|one"],
    ["|one\ntwo", "yyP", "|one\none\ntwo"],
    ["|one two", "yw$p", "one twoone| "],
    ["o|ne", "x", "o|e"],
    ["on|e", "x", "o|n"],
    ["|one", "3x", "|"],
    ["o|ne", "X", "|ne"],
    ["o|ne", "rN", "o|Ne"],
    ["|one", "~~", "ON|e"],
    ["o|ne\n  two", "J", "one| two"],
    ["o|ne", "ix<", "o|xne"],
    ["o|ne", "ax<", "on|xe"],
    ["o|ne", "Ax<", "one|x"],
    ["o|ne", "Ix<", "|xone"],
    ["o|ne", "ox<", "one\n|x"],
    ["o|ne", "Ox<", "|x\none"],
    ["|one two three", "dw.", "|three"],
    ["|a b a", "cwx<w.", "x |x a"],
    ["|one two", "dwu", "|one two"],
    ["|one two", "dq", "|one two"],
    ["|one two", "d<w", "one |two"],
    ["|one\ntwo", "dw", "|\ntwo"],
  ])("%j becomes by %s %j", (before, keys, after) => {
    expect(edit(before, keys)).toBe(after);
  });

  test("what was pasted is one character to them", () => {
    const editor = new Editor();
    const vim = new VimKeys(editor);
    editor.paste("line\n".repeat(50));
    vim.press({ name: "escape" });
    vim.press({ name: "0", text: "0" });
    expect(editor.cursor).toBe(0);
    for (const sign of "dw") vim.press({ name: sign, text: sign });
    expect(editor.text).toBe("");
  });
});
