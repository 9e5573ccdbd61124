import { expect, test } from "vitest";
import { rowText } from "../screen/row.ts";
import { Picker, type PickerItem } from "./picker.ts";

const items: readonly PickerItem[] = [
  { id: "a", label: "sonnet", detail: "claude-sonnet-5" },
  { id: "b", label: "haiku", detail: "claude-haiku-5-5" },
];

function shown(given: readonly PickerItem[], columns: number, press: readonly string[] = []): string[] {
  const picker = new Picker({
    title: "Models",
    items: given,
    choose: () => undefined,
    changed: () => undefined,
    empty: "None.",
    keys: [
      {
        key: "ctrl+n",
        label: "add",
        isGlobal: true,
        asks: () => ({ label: "its name" }),
        run: async () => undefined,
      },
      { key: "ctrl+x", label: "remove", run: async () => undefined },
    ],
  });
  for (const name of press) picker.press({ name });
  return picker.frame(columns, 20).rows.map((row) => rowText(row).trimEnd());
}

test("in a wide window details stay near their labels, in a narrow one nothing is wider than it [CLI-4]", () => {
  const wide = shown(items, 200);
  expect(wide[2]?.length).toBe(79);
  expect(wide[2]).toMatch(/^› sonnet +claude-sonnet-5$/);
  for (const row of shown(items, 40)) expect(row.length).toBeLessThan(40);
});

test("keys that need an item are not shown where there is none, and the list says that typing narrows it", () => {
  expect(shown(items, 80).at(-1)).toBe("enter choose · ctrl+n add · ctrl+x remove · esc back");
  const empty = shown([], 80);
  expect(empty.at(-1)).toBe("ctrl+n add · esc back");
  expect(empty.slice(1, 3)).toEqual(["> type to narrow", "None."]);
});

test("what is asked for is right below the list, wherever the window ends", () => {
  const rows = shown(items, 80, ["ctrl+n"]);
  expect(rows[5]).toContain("its name");
});
