import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createPaths } from "../settings/paths.ts";
import { builtinWorkflows } from "./builtin-workflows.ts";
import { discoverWorkflows } from "./discover-workflows.ts";
import { readWorkflowScript } from "./read-workflow-script.ts";

let root: string;
const write = (path: string, name: string, result: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(
    join(root, path),
    `export const meta = { name: '${name}', description: '${result}' }\nreturn '${result}'\n`,
  );
};

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "workflows-"));
  write("repo/.claude/workflows/a.js", "one", "ROOT");
  write("repo/deep/.claude/workflows/b.js", "one", "NEAR");
  write("home/.claude/workflows/c.js", "one", "USER");
  write("home/.claude/workflows/d.js", "mine", "USER");
  write("home/.claude/workflows/f.js", "mine", "LATER");
  write("repo/.claude/workflows/sub/e.js", "deep", "SUB");
  write("repo/.claude/workflows/e.mjs", "module", "MJS");
  write("plugin/workflows/p.js", "tool", "PLUGIN");
  writeFileSync(join(root, "repo/.claude/workflows/broken.js"), "const a = 1\nreturn 1\n");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const find = (settingSources?: readonly ("user" | "project" | "local")[]) =>
  discoverWorkflows({
    paths: createPaths({
      home: join(root, "home"),
      cwd: join(root, "repo/deep"),
      repositoryRoot: join(root, "repo"),
      environment: {},
      platform: "linux",
      managedDirectory: join(root, "managed"),
    }),
    plugins: [{ name: "plug", root: join(root, "plugin"), manifest: {}, origin: "directory", enabled: true }],
    settingSources,
    disableBuiltin: true,
  });

it("the nearest folder wins, then the user's; plugins have their name before it; only *.js directly in the folder [WFL-1]", () => {
  const { workflows } = find();
  expect([...workflows].map(([name, { meta }]) => [name, meta.description])).toEqual([
    ["one", "NEAR"],
    ["mine", "USER"],
    ["plug:tool", "PLUGIN"],
  ]);
});

it("the project's files are left out where only the user's count [WFL-1]", () => {
  expect(find(["user"]).workflows.get("one")?.scope).toBe("user");
});

it("a broken file is reported with its line [WFL-1]", () => {
  expect(find().diagnostics).toMatchObject([
    { code: "workflow-broken", file: join(root, "repo/.claude/workflows/broken.js"), line: 1 },
    expect.anything(),
  ]);
});

it("of two files of one folder with the same name the second is reported [WFL-1]", () => {
  expect(find().diagnostics).toContainEqual({
    severity: "warning",
    code: "same-name",
    message: 'd.js beside it has the same name, "mine", so this file is left out.',
    advice: "Give each its own `meta.name`.",
    file: join(root, "home/.claude/workflows/f.js"),
  });
});

it("the three of our own can be read [WFL-1]", () => {
  const { workflows } = discoverWorkflows({
    paths: createPaths({ home: "/nowhere", cwd: "/nowhere", environment: {}, platform: "linux" }),
    plugins: [],
  });
  expect([...workflows.keys()]).toEqual(["review-diff", "sweep-files", "research"]);
  for (const { meta, text } of builtinWorkflows)
    expect(readWorkflowScript(text)).toMatchObject({ type: "script", meta });
});
