import { existsSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { fileURLToPath } from "node:url";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, test } from "vitest";
import { projectRoot, readProjectFile, readProjectFiles } from "./project-files.ts";

const packages = ["base", "gate", "config", "core", "cluster", "testing", "hosts"];

/** Names of files as pages write them, in code style: from the package, or below core. `NAME.ts` is for the reader to fill in. */
function namedFiles(text: string): readonly string[] {
  const names = [...text.matchAll(/`([\w./-]+\.ts)`/g)].map(([, name = ""]) => name);
  return names.filter((name) => !/(?:^|\/)name\./i.test(name));
}

function sourceOf(name: string): string {
  const [first = "", ...rest] = name.split("/");
  return packages.includes(first) && rest.length > 0
    ? `packages/${first}/src/${rest.join("/").replace(/^src\//, "")}`
    : `packages/core/src/${name}`;
}

test("every file that ARCHITECTURE.md, CONTRIBUTING.md and AGENTS.md name is there", () => {
  const known = readProjectFiles().map(({ path }) => path);
  const missing = ["ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md"].flatMap((page) =>
    namedFiles(readProjectFile(page))
      .filter((name) => !existsSync(`${projectRoot}/${sourceOf(name)}`))
      // A page may also name a file by the end of its path.
      .filter((name) => !known.some((path) => path === name || path.endsWith(`/${name}`)))
      .map((name) => `${page}: ${name}`),
  );
  expect(missing, "Write where it is now.").toEqual([]);
});

describe("One spawn on one page", () => {
  const page = readProjectFile("ARCHITECTURE.md").split("\n## One spawn on one page\n")[1] ?? "";
  const steps = page.split("\n## ")[0]?.match(/^\d+\. .*\n(?: {3,4}\S.*\n)*/gm) ?? [];

  test("every file of its steps is one that a spawn goes through", async () => {
    const entered = await filesEnteredBy(async () => {
      await using sample = await createSampleRuntime([
        { calls: [{ name: "Agent", input: { description: "look", prompt: "Look around." } }] },
        { text: "Nothing." },
        { text: "Done." },
      ]);
      expect(await sample.runtime.run("Have it looked at.").result).toMatchObject({ text: "Done." });
      expect(sample.requests).toHaveLength(3);
    });
    expect(steps.length).toBeGreaterThan(5);
    const named = steps.flatMap((step, at) => namedFiles(step).map((name) => ({ at, path: sourceOf(name) })));
    const left = named.filter(({ path }) => !entered.has(path)).map(({ at, path }) => `${at + 1}. ${path}`);
    expect(left, "Describe the way that a call takes now; name what is beside it outside the steps.").toEqual(
      [],
    );
  });
});

/** The files of the repository of which a function was called meanwhile. */
async function filesEnteredBy(work: () => Promise<void>): Promise<ReadonlySet<string>> {
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await work();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    // The function without a name is the file itself, which runs when it is loaded.
    const called = result.filter(({ functions }) =>
      functions.some(({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0),
    );
    return new Set(called.map(({ url }) => pathOf(url).slice(projectRoot.length)));
  } finally {
    session.disconnect();
  }
}

function pathOf(url: string): string {
  return url.startsWith("file:") ? fileURLToPath(url) : url;
}
