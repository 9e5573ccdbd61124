import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decide } from "./decide.ts";
import { gatherCallFacts } from "./gather-call-facts.ts";
import type { PermissionPolicy } from "./permission-policy.ts";
import { parseRule } from "./rules/parse-rule.ts";

let root: string;
/** A repository with two linked working trees, one of them inside it, as git records them. */
beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "copies-")));
  const inside = join(root, "app", ".claude", "worktrees", "x");
  const beside = join(root, "beside");
  for (const [name, tree] of [
    ["x", inside],
    ["beside", beside],
  ] as const) {
    const data = join(root, "app", ".git", "worktrees", name);
    await mkdir(data, { recursive: true });
    await mkdir(join(tree, "src"), { recursive: true });
    await writeFile(join(data, "commondir"), "../..\n");
    await writeFile(join(data, "gitdir"), `${join(tree, ".git")}\n`);
    await writeFile(join(tree, ".git"), `gitdir: ${data}\n`);
    await writeFile(join(tree, "src", "a.ts"), "a\n");
  }
  await mkdir(join(root, "app", "src"));
  await writeFile(join(root, "app", "src", "a.ts"), "a\n");
});
afterAll(() => rm(root, { recursive: true, force: true }));

test.each<[string, string, string, string]>([
  ["//ROOT/app/src/a.ts", "app", "app/.claude/worktrees/x/src/a.ts", "deny"],
  ["//ROOT/app/src/**", "app", "beside/src/a.ts", "deny"],
  ["//ROOT/*/src/a.ts", "app", "app/.claude/worktrees/x/src/a.ts", "deny"],
  ["/src/**", "app", "app/.claude/worktrees/x/src/a.ts", "deny"],
  ["//ROOT/app/src/a.ts", "beside", "beside/src/a.ts", "deny"],
  ["//ROOT/beside/src/a.ts", "app", "app/src/a.ts", "deny"],
  ["/src/a.ts", "beside", "app/src/a.ts", "deny"],
  ["//ROOT/app/.claude/worktrees/**", "app", "app/src/a.ts", "allow"],
  [".claude/worktrees/**", "app", "app/src/a.ts", "allow"],
  ["//ROOT/app/.claude/worktrees/x/**", "beside", "beside/src/a.ts", "allow"],
  ["//ROOT/app/**", "beside", "beside/src/a.ts", "deny"],
  ["//ROOT/app/.claude/**", "beside", "beside/src/a.ts", "allow"],
  ["//ROOT/app/other/**", "beside", "beside/src/a.ts", "allow"],
])("Read(%s) in %s and the file %s: %s [PRM-4]", async (pattern, place, file, expected) => {
  const reading = parseRule(`Read(${pattern.replace("/ROOT", root)})`, { list: "deny" });
  if (reading.type === "invalid") throw new Error(reading.reason);
  const directory = join(root, place);
  const policy: PermissionPolicy = {
    mode: "bypassPermissions",
    allow: [],
    ask: [],
    deny: [{ rule: reading.rule, anchor: directory }],
    workingDirectories: [directory],
    home: join(root, "home"),
  };
  const call = { tool: "Read", effect: "read", input: { file_path: join(root, file) } };
  expect(decide(await gatherCallFacts(call, { policy, directory }), policy).type).toBe(expected);
});
