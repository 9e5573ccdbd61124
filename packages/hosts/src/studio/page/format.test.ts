import { expect, test } from "vitest";
import { duration, plainLine, withoutFolder } from "./format.ts";

test("a line of the page has no marks of Markdown, and files of the session are shown from its folder on [STU-1]", () => {
  expect(plainLine("## Found **63 callers** in `src/a.ts`,\n- see [the list](https://x.example)")).toBe(
    "Found 63 callers in src/a.ts, see the list",
  );
  expect(plainLine("2 * 3 * 4 and snake_case")).toBe("2 * 3 * 4 and snake_case");
  expect(withoutFolder("legacy in /home/me/shop/src", "/home/me/shop")).toBe("legacy in src");
  expect(withoutFolder("Read /home/me/shop", "/home/me/shop")).toBe("Read .");
  expect(withoutFolder("Read /etc/hosts", undefined)).toBe("Read /etc/hosts");
});

test.each([
  [0, "0 s"],
  [0.2, "0 s"],
  [40, "40 ms"],
  [11_800, "11.8 s"],
])("%d ms is %s", (milliseconds, text) => {
  expect(duration(milliseconds)).toBe(text);
});
