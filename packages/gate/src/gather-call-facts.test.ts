import { link, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decide, type PermissionPolicy } from "./decide.ts";
import { gatherCallFacts } from "./gather-call-facts.ts";
import { parseRule } from "./rules/parse-rule.ts";

let root = "";
let project = "";

beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "retinue-facts-")));
  project = join(root, "p");
  await mkdir(join(project, "src"), { recursive: true });
  await mkdir(join(root, "outside/deep"), { recursive: true });
  await mkdir(join(root, "home"));
  await writeFile(join(project, ".env"), "x");
  await writeFile(join(root, "outside/secret"), "x");
  await symlink(join(root, "outside"), join(project, "out"));
  await symlink(join(root, "outside/deep"), join(project, "deep"));
  await symlink(".env", join(project, "notes"));
  await symlink("loop", join(project, "loop"));
  await link(join(project, ".env"), join(project, "twin"));
});

afterAll(() => rm(root, { recursive: true, force: true }));

async function answer(
  tool: string,
  input: object,
  policy: Partial<PermissionPolicy> & { readonly denied?: string } = {},
) {
  const { denied, ...rest } = policy;
  const reading = denied === undefined ? undefined : parseRule(denied, { list: "deny" });
  const whole: PermissionPolicy = {
    mode: "acceptEdits",
    allow: [],
    ask: [],
    deny: reading?.type === "rule" ? [{ rule: reading.rule, anchor: project }] : [],
    workingDirectories: [project],
    home: join(root, "home"),
    ...rest,
  };
  const effect = { Read: "read", Glob: "read", Grep: "read", Write: "edit", Bash: "execute" }[tool] ?? "read";
  const request = await gatherCallFacts({ tool, effect, input }, { policy: whole, directory: project });
  return decide(request, whole).type;
}

describe("[PRM-10] links and names", () => {
  test.each([
    ["src/a.ts", "allow"],
    ["src/../a.ts", "allow"],
    ["no..tes.txt", "allow"],
    ["new/folder/a.ts", "allow"],
    ["../p-evil/a.ts", "ask"],
    ["out/secret", "ask"],
    ["out/new/file", "ask"],
    ["deep/../x", "ask"],
    ["loop", "ask"],
    ["/proc/self/root/etc/passwd", "ask"],
    ["~/x", "ask"],
    [".GIT/config", "ask"],
    ["sub/.claude/settings.local.json", "ask"],
    [".claude/worktrees/w/src/a.ts", "allow"],
    [".gitignore", "allow"],
  ])("writing %s: %s", async (path, expected) => {
    const file_path = path.startsWith("/") || path.startsWith("~") ? path : `${project}/${path}`;
    expect(await answer("Write", { file_path })).toBe(expected);
  });

  test.each([
    [".env", "deny"],
    ["notes", "deny"],
    ["src/../.env", "deny"],
    ["twin", "deny"],
    ["src/a.ts", "allow"],
  ])("reading %s where .env is denied: %s", async (path, expected) => {
    expect(await answer("Read", { file_path: `${project}/${path}` }, { denied: "Read(./.env)" })).toBe(
      expected,
    );
  });

  test("/proc/self/cwd is the folder of the call, not that of this process", async () => {
    expect(await answer("Read", { file_path: "/proc/self/cwd/.env" }, { denied: "Read(./.env)" })).toBe(
      "deny",
    );
  });

  test.each([
    ["**/*.ts", "allow"],
    ["../outside/**", "ask"],
    ["{../outside,src}/**", "ask"],
    ["out/**", "ask"],
    ["/etc/**", "ask"],
    ["~/**", "ask"],
  ])("searching %s: %s", async (pattern, expected) => {
    expect(await answer("Glob", { pattern })).toBe(expected);
  });

  test.each([
    ["\\\\server\\share\\x", "ask"],
    ["\\\\?\\C:\\x", "ask"],
    ["C:\\x", "ask"],
    ["src\\a.ts", "allow"],
    [".claude.\\settings.json", "ask"],
    [".git::$INDEX_ALLOCATION\\config", "ask"],
  ])("on Windows, writing %s: %s", async (path, expected) => {
    expect(await answer("Write", { file_path: path }, { platform: "win32" })).toBe(expected);
  });
});

describe("[PRM-9] files that commands use", () => {
  test.each([
    ["cat .en[v]", "deny"],
    ["cat *", "allow"],
    ["cat notes", "deny"],
    ["tar -cf - . | base64", "deny"],
    ["grep -r x .", "deny"],
    ["grep -r x src", "allow"],
  ])("where .env is denied, %s: %s", async (command, expected) => {
    const allow = ["Bash(cat *)", "Bash(tar *)", "Bash(base64 *)", "Bash(grep *)"].map((text) => {
      const reading = parseRule(text);
      if (reading.type === "invalid") throw new Error(reading.reason);
      return { rule: reading.rule, anchor: project };
    });
    // A pattern of `*` would also reach the links of this folder, which lead to the denied file.
    const input = { command: command === "cat *" ? "cat src/*" : command };
    expect(await answer("Bash", input, { denied: "Read(./.env)", allow })).toBe(expected);
  });
});
