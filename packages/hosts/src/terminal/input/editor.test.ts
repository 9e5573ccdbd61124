import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { draftOf, expandDraft } from "./draft.ts";
import { Editor } from "./editor.ts";
import { readKey } from "./key-press.ts";

function typed(editor: Editor, ...sequences: readonly string[]): Editor {
  for (const sequence of sequences) {
    const key = readKey(sequence);
    if (key !== undefined) editor.press(key);
  }
  return editor;
}

describe("keys", () => {
  test.each([
    ["\r", "enter"],
    ["\n", "ctrl+j"],
    ["\u001b\r", "alt+enter"],
    ["\u001b[13;2u", "shift+enter"],
    ["\u001b[27;2;13~", "shift+enter"],
    ["\u001b[13;28;13;1;16;1_", "shift+enter"],
    ["\u001b[Z", "shift+tab"],
    ["\u001b[27u", "escape"],
    ["\u001b[99;5u", "ctrl+c"],
    ["\u0002", "ctrl+b"],
    ["\u001b[98;5u", "ctrl+b"],
    ["\u001b[66;48;2;1;8;1_", "ctrl+b"],
    ["\u001bOA", "up"],
    ["é", "é"],
    ["日", "日"],
    ["\u001b[65;30;65;1;16;1_", "A"],
  ])("%j is %s", (sequence, name) => {
    expect(readKey(sequence)?.name).toBe(name);
  });

  test.each([
    "\u001b[?62;22c",
    "\u001b[I",
    "\u001b]11;rgb:00/00/00\u0007",
    "\u001b[65;30;65;0;16;1_",
  ])("%j is no key", (sequence) => {
    expect(readKey(sequence)).toBeUndefined();
  });
});

describe("the editor", () => {
  test("edits over several lines with the keys of a shell", () => {
    const editor = typed(new Editor(), ..."first line", "\n", ..."second", "\u001b[A", "\u0001", ..."the ");
    expect(editor.text).toBe("the first line\nsecond");
    typed(editor, "\u000b");
    expect(editor.text).toBe("the \nsecond");
    typed(editor, "\u0019");
    expect(editor.text).toBe("the first line\nsecond");
  });

  test("moves and deletes by what a person sees as one character", () => {
    const editor = typed(new Editor(), ..."a", "👩‍💻", "é", "\u007f");
    expect(editor.text).toBe("a👩‍💻");
    expect(typed(editor, "\u007f").text).toBe("a");
  });

  test("shows a large paste as a chip that is one character to the editor and whole when sent", () => {
    const pasted = Array.from({ length: 10_000 }, (_, at) => `\tline ${at}`).join("\r\n");
    const editor = new Editor();
    typed(editor, "x", " ");
    editor.paste(pasted);
    typed(editor, "!");
    expect(editor.text).toBe("x [pasted #1: 10,000 lines]!");
    expect(editor.expanded()).toBe(`x ${pasted.replaceAll("\r\n", "\n")}!`);
    typed(editor, "\u007f", "\u007f");
    expect(editor.text).toBe("x ");
    typed(editor, "\u001f");
    expect(editor.expanded()).toContain("line 9999");
  });

  test("up and down keep their column over short and wrapped lines", () => {
    const editor = new Editor();
    editor.set(draftOf("abcdefgh\nxy\nabcdefgh ijkl"), 6);
    editor.layout(10);
    typed(editor, "\u001b[B");
    expect(editor.cursor).toBe(11);
    typed(editor, "\u001b[B");
    expect(editor.cursor).toBe(18);
    typed(editor, "\u001b[B");
    expect(editor.text.slice(editor.cursor)).toBe("");
    expect(editor.press({ name: "down" })).toBe(false);
  });

  test("undo takes back a word, a kill and a paste", () => {
    const editor = typed(new Editor(), ..."one two", "\u0017", "\u001f");
    expect(editor.text).toBe("one two");
    expect(typed(editor, "\u001f").text).toBe("one ");
  });

  test("what is pasted reaches the model without control characters, whatever it is", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(..."a\t\n\r\u001b[0;5u\u0000\u0007\u007f\u009b日") }),
        (text) => {
          const editor = new Editor();
          editor.paste(text);
          expect(expandDraft(editor.draft)).not.toMatch(/[^\P{Cc}\n\t]/u);
        },
      ),
    );
  });

  test("the layout holds every character once, whatever the width", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 2, max: 20 }), (text, width) => {
        const editor = new Editor();
        editor.set({ text, pastes: new Map() });
        const { lines } = editor.layout(width);
        const shown = lines.map(({ start, end }) => text.slice(start, end)).join("");
        expect(shown).toBe(text.replaceAll("\n", ""));
      }),
    );
  });
});
