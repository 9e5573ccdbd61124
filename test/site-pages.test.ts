import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  decisionsIndex,
  llmsFull,
  llmsIndex,
  projectPages,
  readGroups,
  repository,
  sitePath,
  stagePage,
} from "../scripts/site-pages.ts";
import { projectRoot, readProjectFile, readProjectFiles } from "./project-files.ts";

const groups = readGroups(readProjectFile("docs/README.md"));
const listed = groups.flatMap(({ pages }) => pages.map(({ path }) => path));

test("the index has five groups, and every page is in exactly one [PUB-2]", () => {
  expect(groups.map(({ title }) => title)).toEqual(["Start", "Use", "Build", "Operate", "Reference"]);
  const own = readProjectFiles("docs")
    .map(({ path }) => path)
    .filter((path) => /^docs\/[^/]+\.md$/.test(path) && path !== "docs/README.md");
  expect([...listed].sort()).toEqual([...own, "docs/api/README.md"].sort());
});

test("every page of the project that the site shows exists [PUB-2]", () => {
  expect(projectPages.filter((path) => !existsSync(join(projectRoot, path)))).toEqual([]);
});

test("links lead to pages of the site, and else to the repository [PUB-2]", () => {
  const onSite = new Set(["docs/trust.md", "docs/api/README.md", "GLOSSARY.md"]);
  const text = [
    "[a](trust.md#trusting-a-folder) [b](api/README.md) [c](../GLOSSARY.md) [d](../examples/11-budget.ts) [e](#here)",
    "[f](https://example.com) ![g](images/live.png) [h](api)",
    "```ts run exit=1",
    "[x](trust.md)",
    "```",
  ].join("\n");
  expect(stagePage({ path: "docs/x.md", text }, onSite)).toBe(
    [
      `[a](/trust.md#trusting-a-folder) [b](/api/index.md) [c](/glossary.md) [d](${repository}/blob/main/examples/11-budget.ts) [e](#here)`,
      "[f](https://example.com) ![g](/images/live.png) [h](/api/index.md)",
      "```ts",
      "[x](trust.md)",
      "```",
    ].join("\n"),
  );
});

test("llms.txt names every page with its address, and llms-full.txt holds their text [PUB-2]", () => {
  const index = llmsIndex(groups, "/");
  for (const path of listed) expect(index).toContain(`](/${sitePath(path)}): `);
  const full = llmsFull(groups, readProjectFile);
  for (const path of listed) expect(full).toContain(`<!-- ${sitePath(path)} -->\n\n# `);
  expect(full).not.toMatch(/^```(ts|sh) run/m);
});

test("the index of decisions takes its titles from the records [PUB-2]", () => {
  const records = readProjectFiles("docs/decisions");
  const index = decisionsIndex(records);
  expect(index.match(/^- \[/gm)).toHaveLength(records.length);
  expect(index).toContain("](0055-markdown-as-elements.md)");
});
