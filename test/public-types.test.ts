import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import packageJson from "../package.json" with { type: "json" };
import { projectRoot } from "./project-files.ts";

const entries = Object.values(packageJson.exports).flatMap((entry) =>
  typeof entry === "string" ? [] : [join(projectRoot, entry.types)],
);

const read = (file: string): string => readFileSync(file, "utf8");

/** Files by the path that a statement names; undefined for packages. */
function target(file: string, from: string): string | undefined {
  if (!from.startsWith(".")) return undefined;
  const path = resolve(dirname(file), from).replace(/\.(?:ts|js)$/, ".d.ts");
  return existsSync(path) ? path : undefined;
}

/** Every file that a program's compiler reads for an entry. */
function reachable(entry: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, from = ""] of read(file).matchAll(/(?:from|import\()\s*"([^"]+)"/g)) {
      const next = target(file, from);
      if (next !== undefined) visit(next);
    }
  };
  visit(entry);
  return seen;
}

/** Packages that a program has only if it uses them. */
const optional = ["pg", "@opentelemetry/api", "@anthropic-ai/sandbox-runtime"];

describe("the types of the package [SDK-1]", () => {
  test.each(
    entries.map((entry) => [entry.slice(projectRoot.length), entry] as const),
  )("%s needs no package that is optional", (_name, entry) => {
    const needed = [...reachable(entry)].flatMap((file) =>
      [...read(file).matchAll(/(?:from|import\()\s*"([^"]+)"/g)]
        .map(([, from = ""]) => from)
        .filter((from) => optional.some((name) => from === name || from.startsWith(`${name}/`)))
        .map((from) => `${from} in ${file.slice(projectRoot.length)}`),
    );
    expect(needed).toEqual([]);
  });
});
