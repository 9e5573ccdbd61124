import { describe, expect, it } from "vitest";
import { placeOfEntry } from "./lint-definition.ts";

const key = { line: 1, column: 1, length: 5 };

describe("placeOfEntry", () => {
  it.each([
    ["tools: Read, Grep", "Grep", { line: 1, column: 14, length: 4 }],
    ["tools: NotebookEdit, Edit", "Edit", { line: 1, column: 22, length: 4 }],
    ["tools: Bash(git *), Bash", "Bash", { line: 1, column: 21, length: 4 }],
    ["tools:\n  - Read\n  - Grep\nmodel: x", "Grep", { line: 3, column: 5, length: 4 }],
    ["tools:\n- Read\n- Grep", "Grep", { line: 3, column: 3, length: 4 }],
    ["tools: [\n  Read,\n  Grep\n]", "Grep", { line: 3, column: 3, length: 4 }],
    ['tools: ["Read", "Grep"]', "Grep", { line: 1, column: 18, length: 4 }],
  ])("finds the entry of %j that is %s", (text, entry, place) => {
    expect(placeOfEntry(text, key, entry)).toEqual(place);
  });

  it.each([
    ["tools: Read\nmodel: Grep", "Grep"],
    ["tools: Read", ""],
    ["tools: Bash(a,b)", "Bash(a, b)"],
  ])("does not look beyond the field, nor guess: %j %j", (text, entry) => {
    expect(placeOfEntry(text, key, entry)).toBeUndefined();
  });
});
