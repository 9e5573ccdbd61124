import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { locateBelow } from "./locate-below.ts";

const hooks = `  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: one
    - matcher: Edit
      hooks:
        - type: command
          command: two
        - type: wrong
  Stop:
  - hooks:
    - command: three`.split("\n");

describe("finding a path in lines of YAML [DEF-7]", () => {
  test.each<[(string | number)[], number, string]>([
    [["PreToolUse"], 0, "PreToolUse"],
    [["PreToolUse", 0, "hooks", 0, "command"], 4, "command"],
    [["PreToolUse", 1], 5, "matcher: Edit"],
    [["PreToolUse", 1, "hooks", 0, "command"], 8, "command"],
    [["PreToolUse", 1, "hooks", 1], 9, "type: wrong"],
    [["PreToolUse", 1, "hooks", 1, "command"], 9, "type: wrong"],
    [["Stop", 0, "hooks", 0, "command"], 12, "command"],
  ])("%j is on line %i", (path, line, text) => {
    const place = locateBelow(hooks, path);
    expect(place?.line).toBe(line);
    expect(hooks[line]?.slice(place?.column, (place?.column ?? 0) + (place?.length ?? 0))).toBe(text);
  });

  test("what is not there has no place", () => {
    expect(locateBelow(hooks, ["PostToolUse", 0])).toBeUndefined();
    expect(locateBelow([], ["Stop"])).toBeUndefined();
    expect(locateBelow(["{a: [1]}"], [0])).toBeUndefined();
  });

  test("any lines and any path give a place inside the lines or none", () => {
    const line = fc.string({ unit: fc.constantFrom(..."ab:- \t"), maxLength: 12 });
    const path = fc.array(fc.oneof(fc.constantFrom("a", "b"), fc.nat(3)), { maxLength: 5 });
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), path, (lines, segments) => {
        const place = locateBelow(lines, segments);
        if (place !== undefined) expect(lines[place.line]).toBeDefined();
      }),
    );
  });
});
