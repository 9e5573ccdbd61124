import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PlainHeaders } from "./plain-headers.ts";

const names = fc.constantFrom(
  "accept",
  "Accept",
  "x-api-key",
  "X-API-Key",
  "retry-after",
  "bad name",
  "",
  "ü",
);
const values = fc.oneof(
  fc.constantFrom(
    "a",
    "",
    "  spaced \t",
    "a,b",
    "caf\u00e9",
    "line\nbreak",
    "\u20ac",
    "nul\0",
    "\r\ntrimmed\r\n",
  ),
  fc.string({ maxLength: 5 }),
);
const steps = fc.array(fc.tuple(fc.constantFrom("append", "set", "get"), names, values), {
  maxLength: 8,
});

describe("headers without the built-in client", () => {
  test("do what the built-in class does, errors too [MDL-3]", () => {
    fc.assert(
      fc.property(steps, (calls) => {
        const seen = [new Headers(), new PlainHeaders()].map((headers) => [
          ...calls.map(([call, name, value]) => {
            try {
              return String(Reflect.apply(Reflect.get(headers, call), headers, [name, value]));
            } catch (error) {
              return (error as Error).name;
            }
          }),
          [...headers],
        ]);
        expect(seen[1]).toEqual(seen[0]);
      }),
      { numRuns: 300 },
    );
  });

  test("are made of a record, of pairs and of other headers [MDL-3]", () => {
    const pairs = [
      ["B", "2"],
      ["a", "1"],
      ["b", "3"],
    ] as [string, string][];
    const expected = [
      ["a", "1"],
      ["b", "2, 3"],
    ];
    expect([...new PlainHeaders(pairs)]).toEqual(expected);
    expect([...new PlainHeaders(new Headers(pairs))]).toEqual(expected);
    expect([...new PlainHeaders(new PlainHeaders(pairs))]).toEqual(expected);
    expect([...new PlainHeaders({ A: "1" })]).toEqual([["a", "1"]]);
  });

  test("an invalid value, which may be a key, is not shown [MDL-3]", () => {
    expect(() => new PlainHeaders({ "x-api-key": "sk-secret\nx" })).toThrow(
      "The value of the header x-api-key contains a line break or a character that headers cannot carry.",
    );
  });
});
