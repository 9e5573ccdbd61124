import { expect, test } from "vitest";
import { describeDamage, findDamage } from "./transcript-damage.ts";

const line = (uuid: string, parentUuid: string | null) => ({ uuid, parentUuid });

test("a whole transcript has no damage, also one whose first line follows another file [TRN-2]", () => {
  const values = [line("b", "elsewhere"), line("c", "b"), { type: "retinue-plan" }, line("d", "c")];
  const damage = findDamage({ values, broken: 0, torn: false });
  expect(damage).toEqual({ broken: 0, missing: 0, torn: false });
  expect(describeDamage("x", damage)).toBeUndefined();
});

test("lines that others follow and that are not there are missing [TRN-2]", () => {
  const values = [line("a", null), line("d", "c"), line("e", "c"), line("g", "f")];
  expect(findDamage({ values, broken: 0, torn: false })).toEqual({ broken: 0, missing: 2, torn: false });
});

test("a line that cannot be read is the one that is missed", () => {
  const values = [line("a", null), line("c", "b")];
  const damage = findDamage({ values, broken: 1, torn: false });
  expect(damage).toEqual({ broken: 1, missing: 0, torn: false });
  expect(describeDamage("x", damage)).toBe(
    "The transcript x is damaged: 1 line cannot be read. The conversation continues without the lost lines.",
  );
});

test("all of it is reported in one sentence", () => {
  expect(describeDamage("x", { broken: 2, missing: 3, torn: true })).toContain(
    "2 lines cannot be read, at least 3 lines are missing, the last line was cut off.",
  );
});
