import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { projectRoot } from "./project-files.ts";

interface Packed {
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

test("the package has one copy of the code for the library, one for the command, and the types that its entries reach", () => {
  const words = ["pack", "--dry-run", "--json", "--ignore-scripts", "--offline", "--loglevel=error"];
  const printed = JSON.parse(execFileSync("npm", words, { cwd: projectRoot, encoding: "utf8" }));
  // One version of npm prints a list, the next an object by name.
  const [packed] = Object.values(printed) as readonly Packed[];
  const paths = packed?.files.map(({ path }) => path) ?? [];
  expect(paths).toContain("dist/types/src/index.d.ts");
  expect(paths.filter((path) => path.endsWith(".map"))).toEqual([]);
  expect(paths.filter((path) => path.startsWith("dist/types/packages/hosts/"))).toEqual([]);
  // With its 7 dependencies 40 MB are installed at the most; these take 19.
  expect((packed?.unpackedSize ?? Number.POSITIVE_INFINITY) / 1e6).toBeLessThan(20);
}, 60_000);
