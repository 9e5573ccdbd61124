import { expect, test } from "vitest";
import { createPageCache } from "./create-web-fetch-tool.ts";

const page = (text: string) => ({ url: "u", status: 200, mediaType: "text/plain", bytes: 1, text });

test("a page is forgotten when its time is over", () => {
  let time = 0;
  const cache = createPageCache(() => time, { keepMs: 10 });
  cache.set("a", page("a"));
  time = 9;
  expect(cache.get("a")?.text).toBe("a");
  time = 10;
  expect(cache.get("a")).toBeUndefined();
});

test("the oldest pages give way when there are too many, or too much of them", () => {
  const cache = createPageCache(() => 0, { maxPages: 2, maxCharacters: 10 });
  for (const name of ["a", "b", "c"]) cache.set(name, page(name));
  expect(["a", "b", "c"].map((name) => cache.get(name)?.text)).toEqual([undefined, "b", "c"]);
  cache.set("d", page("d".repeat(10)));
  expect(["b", "c", "d"].map((name) => cache.get(name) !== undefined)).toEqual([false, false, true]);
  cache.set("e", page("e".repeat(11)));
  expect([cache.get("d") !== undefined, cache.get("e")]).toEqual([true, undefined]);
});

test("a page that is set again counts once", () => {
  const cache = createPageCache(() => 0, { maxCharacters: 10 });
  for (let count = 0; count < 5; count += 1) cache.set("a", page("aaaa"));
  cache.set("b", page("bbbb"));
  expect([cache.get("a")?.text, cache.get("b")?.text]).toEqual(["aaaa", "bbbb"]);
});
