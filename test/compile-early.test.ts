import { describe, expect, test } from "vitest";
import { parenthesize } from "../scripts/compile-early.ts";

/** Every function, or those whose text begins like this. */
function early(text: string, begins?: string): string {
  return parenthesize(text, (place) => {
    const [start = 0, end = 0] = place.split("-").map(Number);
    return begins === undefined || text.slice(start, end).startsWith(begins);
  });
}

describe("functions that a start calls are compiled together with their file", () => {
  test.each([
    ["const f=x=>x+1;", "const f=(x=>x+1);"],
    ["const f=function(){};", "const f=(function(){});"],
    ["g();function g(){return 1}", "var g=(function(){return 1});g();;"],
    ["async function g(){}", "var g=(async function(){});;"],
    ["function*g(){}", "var g=(function*(){});;"],
    [
      "function f(a=()=>1){return b();function b(){return a}}",
      "var f=(function(a=(()=>1)){var b=(function(){return a});return b();;});;",
    ],
    // What cannot be in parentheses, or gains nothing.
    ["class A{m(){return 1}get x(){return 2}}", "class A{m(){return 1}get x(){return 2}}"],
    ["const o={m(){return()=>1}};", "const o={m(){return(()=>1)}};"],
    ["const f=async()=>1;", "const f=async()=>1;"],
    ["if(a){function f(){}}", "if(a){function f(){}}"],
    ["export function f(){}", "export function f(){}"],
  ])("%s", (text, expected) => {
    expect(early(text)).toBe(expected);
  });

  test("the others stay as they are", () => {
    expect(early("const f=x=>x;const g=y=>y;", "y")).toBe("const f=x=>x;const g=(y=>y);");
    expect(early("f();function f(){return g()}function g(){}", "function g")).toBe(
      "var g=(function(){});f();function f(){return g()};",
    );
  });

  test("what a module does stays the same", async () => {
    const text = `
      const first = twice(two());
      function two() { return 2; }
      function twice(x) { return inner(x); function inner(y) { return y * 2; } }
      const names = [two.name, twice.name, ((a) => a).name];
      class Point { constructor(x) { this.x = x; } sum(y = () => 1) { const z = () => this.x + y(); return z(); } }
      function Old(x) { this.x = x; }
      Old.prototype.double = function () { return this.x * 2; };
      async function later() { const one = await (async () => 1)(); return one + 1; }
      function* count() { yield* [1, 2]; }
      export const results = [first, names, new Point(3).sum(), new Old(4).double(), await later(), [...count()]];
    `;
    const resultsOf = async (code: string): Promise<unknown> =>
      (await import(`data:text/javascript,${encodeURIComponent(code)}`)).results;
    const changed = early(text);
    expect(changed).not.toBe(text);
    expect(await resultsOf(changed)).toEqual(await resultsOf(text));
  });
});
