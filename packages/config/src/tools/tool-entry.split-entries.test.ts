import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rejoinEntries, splitEntries } from "./tool-entry.ts";

describe("splitEntries [DEF-3]", () => {
  test.each<[string, string[]]>([
    ["Read, Write", ["Read", "Write"]],
    ["Read,Write,", ["Read", "Write"]],
    ["Task(worker, researcher), Read", ["Task(worker, researcher)", "Read"]],
    ["Bash(echo (a, b)), Read", ["Bash(echo (a, b))", "Read"]],
    ["*", ["*"]],
    ["", []],
    [" , ,", []],
  ])("a comma inside parentheses does not split %j", (text, expected) => {
    expect(splitEntries(text)).toEqual(expected);
  });

  test.each<[string, string[]]>([
    ["Read Grep Glob", ["Read", "Grep", "Glob"]],
    ["Bash(git diff *) Read", ["Bash(git diff *)", "Read"]],
    ["read bash", ["read", "bash"]],
    ["Read mcp__docs__search", ["Read", "mcp__docs__search"]],
    ["All tools", ["All tools"]],
    ["everything except Bash", ["everything except Bash"]],
    ["Read Grep, Glob", ["Read Grep", "Glob"]],
  ])("spaces split only where every piece looks like a tool name %j", (text, expected) => {
    expect(splitEntries(text)).toEqual(expected);
  });

  test.each<[string, string[]]>([
    ["[Read, Write]", ["Read", "Write"]],
    ['["Read", "Write"]', ["Read", "Write"]],
    ["`Read`, `Write`", ["Read", "Write"]],
    ["'Read, Write'", ["Read", "Write"]],
    ["[Read, Write", ["Read", "Write"]],
    ["- Read\n- Write\n", ["Read", "Write"]],
    ["- Read - Grep", ["Read", "Grep"]],
    ["Read -, Write -", ["Read", "Write"]],
    ['"a, b", c', ["a, b", "c"]],
  ])("the notation around an entry is not part of it %j", (text, expected) => {
    expect(splitEntries(text)).toEqual(expected);
  });

  test.each<[string, string[]]>([
    ["Bash(rm *, Write", ["Bash(rm *", "Write"]],
    ["Bash rm *), Write", ["Bash rm *)", "Write"]],
    ["Bash(echo don't), Read", ["Bash(echo don't)", "Read"]],
    ["Bash(echo \\(), Read", ["Bash(echo \\()", "Read"]],
  ])("a parenthesis or quote that never closes swallows nothing %j", (text, expected) => {
    expect(splitEntries(text)).toEqual(expected);
  });

  test("a list of entries joined by commas comes back as it was", () => {
    const name = fc.stringMatching(/^(?:[A-Z][a-zA-Z]{0,8}|mcp__[a-z]{1,6}__[a-z_-]{0,5}[a-z])$/);
    const specifier = fc.stringMatching(/^[a-z][a-z :*,"'.-]{0,12}$/);
    const entry = fc.oneof(
      name,
      fc.tuple(name, specifier).map(([tool, scope]) => `${tool}(${scope})`),
    );
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 8 }), (entries) => {
        expect(splitEntries(entries.join(", "))).toEqual(entries);
      }),
    );
  });

  test("any text can be split, and no entry keeps spaces around it", () => {
    const text = fc.string({ unit: fc.constantFrom(..."Rd(),\"'`[]-* \n\\"), maxLength: 60 });
    fc.assert(
      fc.property(fc.oneof(text, fc.string()), (written) => {
        for (const entry of splitEntries(written)) expect(entry).toBe(entry.trim());
      }),
    );
  });

  test.each(["(", ")", '"a,', "' ", "[", "- ", "\\"])("a long run of %j is split in linear time", (unit) => {
    expect(() => splitEntries(unit.repeat(200_000))).not.toThrow();
    expect(() => rejoinEntries(Array.from({ length: 50_000 }, () => unit))).not.toThrow();
  });
});

describe("rejoinEntries [DEF-3]", () => {
  test.each<[string[], string[]]>([
    [["Bash(git add:*", "git commit:*)"], ["Bash(git add:*, git commit:*)"]],
    [
      ["Read", "Task(a", " b", "c)", "Edit"],
      ["Read", "Task(a, b, c)", "Edit"],
    ],
    [
      ["Read", "Write"],
      ["Read", "Write"],
    ],
    [
      ["Bash(rm", "Task(a", "b)", "Read"],
      ["Bash(rm", "Task(a, b)", "Read"],
    ],
    [
      ["", "`Read`", "x)"],
      ["Read", "x)"],
    ],
    [[], []],
  ])("pieces are joined until their parentheses close %j", (list, expected) => {
    expect(rejoinEntries(list)).toEqual(expected);
  });
});
