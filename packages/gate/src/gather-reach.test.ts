import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decide } from "./decide.ts";
import { gatherCallFacts } from "./gather-call-facts.ts";
import type { PermissionPolicy } from "./permission-policy.ts";

let root: string;
beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "emptied-")));
  await mkdir(join(root, "home", ".ssh"), { recursive: true });
  await mkdir(join(root, "app", "src"), { recursive: true });
  for (const name of ["a.txt", "b.log", "c.log", "src/d.ts"]) await writeFile(join(root, "app", name), "x");
});
afterAll(() => rm(root, { recursive: true, force: true }));

test.each<[string, string]>([
  ["rm -rf *", "ask"],
  ["rm -rf ./*", "ask"],
  ["rm -rf APP/*", "ask"],
  ["for d in *; do rm -rf $d; done", "ask"],
  ["rm -rf ~/.*", "ask"],
  ["rm -rf /etc/*", "ask"],
  ["find . -delete", "ask"],
  ["find . -mindepth 1 -delete", "ask"],
  ["find . -name '*.log' -delete", "allow"],
  ["rm -rf *.log", "allow"],
  ["rm -rf src/*", "allow"],
  ["rm a.txt b.log", "allow"],
  ["ls * && rm a.txt", "allow"],
])("%s where permissions are bypassed: %s [PRM-1]", async (command, expected) => {
  const directory = join(root, "app");
  const policy: PermissionPolicy = {
    mode: "bypassPermissions",
    allow: [],
    ask: [],
    deny: [],
    workingDirectories: [directory],
    home: join(root, "home"),
  };
  const call = { tool: "Bash", effect: "execute", input: { command: command.replace("APP", directory) } };
  expect(decide(await gatherCallFacts(call, { policy, directory }), policy).type).toBe(expected);
});
