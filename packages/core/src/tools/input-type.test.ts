import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import * as t from "./input-type.ts";

const drop = (value: unknown): unknown => (value === null || value === "" ? undefined : value);
const isEven = ({ length }: { readonly length: number }): boolean => length % 2 === 0;
const even = { message: "an even number" };

/** Types of both kinds, written in the same words. */
const pairs: Readonly<Record<string, readonly [t.InputType<unknown>, z.ZodType]>> = {
  text: [t.string().min(1).max(3).describe("d"), z.string().min(1).max(3).describe("d")],
  "trimmed text": [t.string().trim().min(1), z.string().trim().min(1)],
  pattern: [t.string().regex(/^a+$/).optional(), z.string().regex(/^a+$/).optional()],
  number: [t.number().min(-2).max(5), z.number().min(-2).max(5)],
  "positive number": [t.number().positive().optional(), z.number().positive().optional()],
  flag: [t.boolean().optional().describe("d"), z.boolean().optional().describe("d")],
  word: [t.oneOf(["a", "b"]).optional(), z.enum(["a", "b"]).optional()],
  list: [t.array(t.string().min(1)).min(1).max(3), z.array(z.string().min(1)).min(1).max(3)],
  "refined list": [
    t.array(t.string().min(1)).refine(isEven, even),
    z.array(z.string().min(1)).refine(isEven, even),
  ],
  union: [t.union([t.string(), t.array(t.string())]), z.union([z.string(), z.array(z.string())])],
  "number with an absent value": [
    t.preprocess(drop, t.number().optional()).describe("d"),
    z.preprocess(drop, z.number().optional()).describe("d"),
  ],
  "text that is made": [
    t.preprocess((value) => value ?? "", t.string()),
    z.preprocess((value) => value ?? "", z.string()),
  ],
  default: [t.string().default("x").describe("d"), z.string().default("x").describe("d")],
  anything: [t.unknown().optional().describe("d"), z.unknown().optional().describe("d")],
  "object in an object": [
    t.object({ a: t.object({ b: t.string() }), c: t.number().optional() }),
    z.object({ a: z.object({ b: z.string() }), c: z.number().optional() }),
  ],
  "refined object": [
    t.object({ a: t.string().optional() }).refine(({ a }) => a !== undefined, { message: "give a" }),
    z.object({ a: z.string().optional() }).refine(({ a }) => a !== undefined, { message: "give a" }),
  ],
};

const leaf = fc.oneof(
  fc.constantFrom(undefined, null, true, "", "a", "aa", " b ", "abcd", "3", 0, 1, 1.5, -7, 9),
  fc.string({ maxLength: 4 }),
);
const value = fc.oneof(
  leaf,
  fc.array(leaf, { maxLength: 4 }),
  fc.dictionary(
    fc.constantFrom("a", "b", "c", "__proto__"),
    fc.oneof(leaf, fc.dictionary(fc.constant("b"), leaf)),
  ),
);

describe("types of tool inputs", () => {
  for (const [name, [own, theirs]] of Object.entries(pairs)) {
    it(`accept, change and refuse what zod does: ${name} [TLS-1]`, () => {
      fc.assert(
        fc.property(value, (given) => {
          const types = { own: t.object({ field: own }), theirs: z.object({ field: theirs }) };
          // A field that has this value, and one that is absent.
          for (const input of [{ field: given }, ...(given === undefined ? [{}] : [])]) {
            const [reading, expected] = [types.own.safeParse(input), types.theirs.safeParse(input)];
            expect(reading.success ? reading : { success: false }).toEqual(
              expected.success ? expected : { success: false },
            );
          }
        }),
      );
    });

    it(`show a model the JSON Schema that zod would show: ${name}`, () => {
      const { $schema: _, ...expected } = z.toJSONSchema(z.object({ field: theirs }), { io: "input" });
      expect(t.object({ field: own }).jsonSchema).toEqual(expected);
    });
  }

  it("take numbers as texts and texts as numbers", () => {
    const type = t.object({ id: t.coerce.string(), most: t.coerce.number().int().positive().optional() });
    expect(type.safeParse({ id: 5, most: " 3 " })).toEqual({ success: true, data: { id: "5", most: 3 } });
    expect(messagesOf(type.safeParse({ most: "many" }))).toEqual([
      "id: Invalid input: expected string, received undefined",
      "most: Invalid input: expected number, received NaN",
    ]);
    expect(messagesOf(type.safeParse({ id: {}, most: 1.5 }))).toEqual([
      "id: Invalid input: expected string, received object",
      "most: Invalid input: expected int, received number",
    ]);
  });

  it("report of a whole number that cannot be exact that it is too large or too small [TLS-1]", () => {
    const type = t.object({ most: t.coerce.number().int().positive() });
    expect(messagesOf(type.safeParse({ most: 1e20 }))).toEqual([
      "most: Too big: expected int to be <=9007199254740991",
    ]);
    expect(messagesOf(type.safeParse({ most: "-1e20" }))).toEqual([
      "most: Too small: expected int to be >=-9007199254740991",
    ]);
  });

  it("report what is wrong where, all of it together", () => {
    const type = t.object({
      name: t.string().min(1).max(3).regex(/^a/),
      word: t.oneOf(["a", "b"]),
      many: t.array(t.number().max(3)).min(3),
      either: t.union([t.string(), t.array(t.string())]),
    });
    expect(messagesOf(type.safeParse({ name: "", word: "c", many: [9, "x"], either: 4 }))).toEqual([
      "name: Too small: expected string to have >=1 characters",
      "name: Invalid string: must match pattern /^a/",
      'word: Invalid option: expected one of "a"|"b"',
      "many.0: Too big: expected number to be <=3",
      "many.1: Invalid input: expected number, received string",
      "either: Invalid input",
    ]);
    expect(messagesOf(type.safeParse([]))).toEqual([": Invalid input: expected object, received array"]);
  });

  it("keep keys of an open object, but for its prototype", () => {
    const given: unknown = JSON.parse('{"__proto__":{"a":1},"constructor":"x"}');
    const reading = t.record(t.unknown()).safeParse(given);
    expect(reading).toEqual({ success: true, data: { constructor: "x" } });
  });
});

function messagesOf(reading: ReturnType<t.InputCheck["safeParse"]>): readonly string[] {
  if (reading.success) return [];
  return reading.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
}
