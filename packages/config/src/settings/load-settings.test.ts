import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type LoadSettingsOptions, loadSettings } from "./load-settings.ts";
import { createPaths } from "./paths.ts";

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "load-settings-")));
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function put(file: string, content: unknown): Promise<string> {
  const path = join(root, file);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

const load = (options: Partial<LoadSettingsOptions> = {}) =>
  loadSettings({
    paths: createPaths({
      home: join(root, "home"),
      cwd: join(root, "repo/sub"),
      repositoryRoot: join(root, "repo"),
      environment: {},
      platform: "linux",
      managedDirectory: join(root, "managed"),
    }),
    trusted: true,
    ...options,
  });

const user = "home/.claude/settings.json";
const project = "repo/.claude/settings.json";

describe("loading settings", () => {
  it("finds nothing and complains of nothing when there are no files", async () => {
    const loaded = await load();
    expect(loaded).toMatchObject({ layers: [], diagnostics: [], incomplete: false });
    expect(loaded.settings.permissions.allow).toEqual([]);
  });

  it("reads every place, the nearer and higher over the other, and anchors each [PRM-8]", async () => {
    await put(user, { model: "user", agent: "de" });
    await put(project, { model: "project", env: { A: "root", B: "root" } });
    await put("repo/sub/.claude/settings.json", { env: { B: "sub" } });
    await put("repo/.claude/settings.local.json", { model: "local" });
    const flagSettings = await put("flags/mine.json", { model: "flags" });
    await put("managed/managed-settings.json", { cleanupPeriodDays: 1 });
    await put("managed/managed-settings.d/20-b.json", { cleanupPeriodDays: 3 });
    await put("managed/managed-settings.d/10-a.json", { cleanupPeriodDays: 2 });
    await put("managed/managed-settings.d/notes.txt", "not settings");
    const { settings, layers, diagnostics } = await load({ flagSettings });
    expect(diagnostics).toEqual([]);
    expect(settings.plain).toEqual({ model: "flags", agent: "de", cleanupPeriodDays: 3 });
    expect(Object.fromEntries(settings.env)).toEqual({ A: "root", B: "sub" });
    expect(layers.map(({ source }) => [source.scope, source.anchor])).toEqual([
      ["user", join(root, "home/.claude")],
      ["project", join(root, "repo")],
      ["project", join(root, "repo/sub")],
      ["local", join(root, "repo/sub")],
      ["flags", join(root, "flags")],
      ["managed", join(root, "managed")],
      ["managed", join(root, "managed")],
      ["managed", join(root, "managed")],
    ]);
  });

  it("takes --settings as JSON too, and leaves out sources that are not wanted, never the organisation's", async () => {
    await put(user, { model: "user" });
    await put(project, { agent: "project" });
    await put("managed/managed-settings.json", { language: "en" });
    const { settings } = await load({ sources: ["project"], flagSettings: ' {"outputStyle": "x"}' });
    expect(settings.plain).toEqual({ agent: "project", language: "en", outputStyle: "x" });
  });

  it("applies trust to the contents of the folder's files [PRM-11]", async () => {
    await put(project, { permissions: { allow: ["Bash"], deny: ["Read(./.env)"] } });
    const { settings } = await load({ trusted: false });
    expect(settings.permissions.allow).toEqual([]);
    expect(settings.permissions.deny).toHaveLength(1);
    expect(settings.heldBack).toMatchObject([
      { key: "permissions.allow", source: { file: join(root, project) } },
    ]);
  });

  it("gives findings their file, line and column", async () => {
    const file = await put(project, '{\n  "permissions": {\n    "allow": [\n      "Edit:*"\n    ]\n  }\n}\n');
    expect((await load()).diagnostics).toMatchObject([
      { code: "invalid-permission-rule", file, line: 4, column: 7 },
    ]);
  });

  it("tolerates a byte order mark and an empty file", async () => {
    await put(user, '\uFEFF{"model": "x"}');
    await put(project, "  \n");
    const loaded = await load();
    expect(loaded.settings.plain.model).toBe("x");
    expect(loaded.diagnostics).toMatchObject([{ severity: "note", code: "settings-empty" }]);
    expect(loaded.incomplete).toBe(false);
  });
});

describe("a settings file that exists and cannot be used", () => {
  it.each([
    ["broken JSON", '{"permissions": {"deny": ["Bash"]},}', "invalid-json"],
    ["a comment", '{\n// no\n"model": "x"}', "invalid-json"],
    ["a list", "[]", "settings-not-an-object"],
    ["endless nesting that breaks off", "[".repeat(300_000), "invalid-json"],
    ["endless nesting", `{"x": ${"[".repeat(300_000)}${"]".repeat(300_000)}}`, "settings-too-large"],
    ["more than 2 MiB", JSON.stringify({ x: "y".repeat(2 * 1024 * 1024) }), "settings-unreadable"],
  ])("is a problem and leaves the settings incomplete: %s", async (_, text, code) => {
    await put(user, { model: "user" });
    const file = await put(project, text);
    const loaded = await load();
    expect(loaded.diagnostics).toMatchObject([{ severity: "error", code, file }]);
    expect(loaded).toMatchObject({ incomplete: true, incompleteScopes: ["project"] });
    expect(loaded.settings.plain.model).toBe("user");
  });

  it("is so for text that is not UTF-8, a directory and a pipe, which is not waited for", async () => {
    await put(user, "");
    await writeFile(join(root, user), Buffer.from([0x7b, 0xff, 0x7d]));
    await mkdir(join(root, project), { recursive: true });
    await mkdir(join(root, "managed"));
    execFileSync("mkfifo", [join(root, "managed/managed-settings.json")]);
    const loaded = await load();
    expect(loaded.incompleteScopes).toEqual(["user", "project", "managed"]);
    expect(loaded.diagnostics.map((diagnostic) => diagnostic.code)).toEqual(
      Array(3).fill("settings-unreadable"),
    );
  });

  it("is so for a file named by --settings that is not there, and for broken JSON given there", async () => {
    expect(await load({ flagSettings: "missing.json" })).toMatchObject({
      incomplete: true,
      incompleteScopes: ["flags"],
    });
    expect(await load({ flagSettings: '{"a": ' })).toMatchObject({
      incomplete: true,
      diagnostics: [{ code: "invalid-json" }],
    });
  });
});
