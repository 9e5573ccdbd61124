import { coversPath } from "@retinue/gate/covers-path.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { allowedHere, allowedThere, deniedHere, deniedThere } from "./path-patterns.ts";

const [project, home] = ["/p", "/h"];

/** As the other products see it: stars span folders, and the whole path below the project has to fit. */
function matchesThere(pattern: string, path: string, { mayBeNothing = false } = {}): boolean {
  const below = path.startsWith(`${project}/`) ? path.slice(project.length + 1) : undefined;
  const isPlaced = /^[~/]/.test(pattern);
  if (!isPlaced && below === undefined) return false;
  const expression = pattern
    .replace(/^~/, home)
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("**/", mayBeNothing ? "<span>" : ".*/")
    .replaceAll("*", ".*")
    .replaceAll("?", ".")
    .replaceAll("<span>", "(?:.*/)?");
  return new RegExp(`^${expression}$`, "s").test(isPlaced ? path : (below ?? ""));
}

/** The same as our own rules see it. */
function matchesHere(pattern: string, path: string, list: "allow" | "deny"): boolean {
  const reading = parseRule(`Read(${pattern})`, { list });
  if (reading.type !== "rule") throw new Error(`${pattern} is no rule`);
  const { specifier } = reading.rule;
  if (specifier.type === "whole") return true;
  if (specifier.type !== "path") throw new Error(`${pattern} is no path`);
  const anchor = { root: "/", home, cwd: project, settings: project }[specifier.anchor];
  return coversPath(specifier.pattern, anchor, path, { floats: list === "deny" });
}

/** Several in a row mean what one means. */
const oneSpan = (text: string): string => text.replace(/\*\*(?:\/\*\*)+/g, "**");
const name = fc.constantFrom("a", "b", "ab.ts", "x.ts", ".env", "[a]");
const file = fc
  .tuple(
    fc.constantFrom(`${project}/`, `${project}/`, "/e/", `${home}/`),
    fc.array(name, { minLength: 1, maxLength: 4 }),
  )
  .map(([start, names]) => `${start}${names.join("/")}`);
const piece = fc.constantFrom("a", "b", "*", "**", "*.ts", "a*", "a*b", ".env", "x.ts", "[a]", "?", "*a*");
const pattern = fc
  .tuple(fc.constantFrom("", "", "", "./", "~/"), fc.array(piece, { minLength: 1, maxLength: 4 }))
  .map(([start, pieces]) => oneSpan(`${start}${pieces.join("/")}`));
const absolute = fc
  .array(piece, { minLength: 1, maxLength: 3 })
  .map((pieces) => oneSpan(`/e/${pieces.join("/")}`));

describe("patterns of paths between products", () => {
  test("what denied a path there denies it here [PRT-3]", () => {
    fc.assert(
      fc.property(fc.oneof(pattern, absolute), file, (written, path) => {
        fc.pre(matchesThere(written.replace(/^\.\//, ""), path));
        const here = deniedHere([written]);
        expect(here.some((each) => each === undefined || matchesHere(each, path, "deny"))).toBe(true);
      }),
    );
  });

  test("what allows a path here allowed it there, or a folder of its name [PRT-3]", () => {
    fc.assert(
      fc.property(fc.oneof(pattern, absolute), file, (written, path) => {
        const here = allowedHere(written);
        fc.pre(matchesHere(here, path, "allow"));
        const plain = written.replace(/^\.\//, "");
        const folders = path.split("/").map((_, index, names) => names.slice(0, index + 1).join("/"));
        const isMeant = [plain, plain.replace(/(?:\/\*\*)+$/, "")].some((each) =>
          folders.some((folder) => matchesThere(each, folder, { mayBeNothing: true })),
        );
        expect(isMeant).toBe(true);
      }),
    );
  });

  test("what denied a path here denies it there [PRT-3]", () => {
    const own = fc.oneof(
      pattern,
      absolute.map((each) => `/${each}`),
      pattern.map((each) => `/${each.replace(/^[~.]\//, "")}`),
    );
    fc.assert(
      fc.property(own, file, (written, path) => {
        fc.pre(written !== "*" && written !== "**" && matchesHere(written, path, "deny"));
        // A folder is no file: what is below it is denied.
        fc.pre(!written.endsWith("/**") || matchesHere(written.replace(/(?:\/\*\*)+$/, "/*"), path, "deny"));
        expect(deniedThere(written).some((each) => matchesThere(each, path))).toBe(true);
      }),
    );
  });

  test("what allows a path there allowed it here [PRT-3]", () => {
    const own = fc.oneof(
      pattern,
      absolute.map((each) => `/${each}`),
      pattern.map((each) => `/${each.replace(/^[~.]\//, "")}`),
    );
    fc.assert(
      fc.property(own, file, (written, path) => {
        const there = allowedThere(written);
        fc.pre(there !== undefined && matchesThere(there, path));
        expect(matchesHere(written, path, "allow")).toBe(true);
      }),
    );
  });

  test.each([
    ["/etc/**", ["//etc/**"]],
    ["/etc/ssl/**", ["//etc/ssl/**"]],
    ["src/*.ts", ["src/**/*.ts"]],
    ["*.env", ["*.env"]],
    ["$HOME/x", ["~/x"]],
    [".env", [".env"]],
    ["app/[id]/page.tsx", ["app/\\[id\\]/page.tsx"]],
  ])("a denial of %s is %j here [PRT-1]", (written, here) => {
    expect(deniedHere([written])).toEqual(here);
  });

  test("globs of Kiro have alternatives and classes [PRT-1]", () => {
    expect(deniedHere(["**/*.{env,key}"], { hasClasses: true })).toEqual(["**/*.env", "**/*.key"]);
    expect(deniedHere(["a/[bc].ts"], { hasClasses: true })).toEqual(["a/[bc].ts"]);
    expect(deniedHere(["{a,{b,{c,{d,{e,f}}}}}"], { hasClasses: true })).toContain(undefined);
  });

  test("a denial that was written for them is read again as it was [PRT-2]", () => {
    for (const own of [".env", "src/**", "docs/a.md", "//etc/**", "secret/*"])
      expect(deniedHere(deniedThere(own)), own).toEqual([own]);
  });
});
