import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInProcess } from "../scenarios/run-command.ts";

const fenced = (fields: string): string => `---\n${fields}\n---\n\nHelp.\n`;

/** A project with some files. */
function createFixture(files: Readonly<Record<string, string>>) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-convert-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [cwd, home] = [join(root, "project"), join(root, "home")];
  mkdirSync(join(cwd, ".git"), { recursive: true });
  mkdirSync(home);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  return {
    root,
    list: (path: string) => (existsSync(join(cwd, path)) ? readdirSync(join(cwd, path)).sort() : []),
    read: (path: string) => readFileSync(join(cwd, path), "utf8"),
    run: (...words: readonly string[]) =>
      runInProcess({ cwd, home }, ["agents", ...words], { environment: { COLUMNS: "100" } }),
  };
}

describe("retinue agents import", () => {
  it("keeps every name within its folder, and one agent costs no other [PRT-2]", async () => {
    const { root, run, list, read } = createFixture({
      ".cursor/agents/evil.md": fenced("name: ../../../evil\ndescription: Evil."),
      ".cursor/agents/good.md": fenced("name: good\ndescription: Good."),
      ".goose/agents/slashed.md": fenced("name: a/b c\ndescription: Slashed."),
      ".opencode/agent/team/tester.md": fenced("description: Tests."),
      ".codex/agents/broken.toml": 'name = "broken\n',
    });
    const { code, out, err } = await run("import");
    expect(code).toBe(1);
    expect(err).toContain("broken.toml:1");
    expect(out).toContain("name-changed: The name ../../../evil becomes evil.");
    expect(list(".claude/agents")).toEqual(["a-b-c.md", "evil.md", "good.md", "team-tester.md"]);
    expect(read(".claude/agents/team-tester.md")).toContain("name: team-tester\n");
    expect(readdirSync(root).sort()).toEqual(["home", "project"]);
  });
});

describe("retinue agents import of one file", () => {
  it.each([
    ".opencode/agents/team/a.md",
    ".opencode/agents",
    "opencode",
  ])("keeps what opencode.json denies its agents, given %s [PRT-2, PRT-3]", async (source) => {
    const { run, read } = createFixture({
      "opencode.json":
        '{"permission": {"webfetch": "deny"}, "agent": {"team/a": {"permission": {"bash": "deny"}}}}',
      ".opencode/agents/team/a.md": fenced("description: Helps."),
    });
    await run("import", source);
    expect(read(".claude/agents/team-a.md")).toContain("disallowedTools: Bash, WebFetch\n");
  });
});

describe("retinue agents export", () => {
  const agents = {
    ".claude/agents/one.md": fenced("name: one\ndescription: One."),
    ".claude/agents/two.md": fenced("name: two\ndescription: Two.\ntools: Read"),
  };

  it("puts several agents into one file of settings, and leaves all else there as it is [PRT-2]", async () => {
    const { run, read } = createFixture({
      ...agents,
      "opencode.json":
        '{\n  // mine\n  "model": "a/b",\n  "agent": { "one": { "description": "Own.", "prompt": "Own." } }\n}\n',
    });
    const first = await run("export", "opencode-json");
    expect(first.code).toBe(1);
    expect(first.out).toContain("not written, opencode.json exists");
    expect(read("opencode.json")).toContain('// mine\n  "model": "a/b"');
    expect(read("opencode.json")).toContain('"description": "Own."');
    expect(read("opencode.json")).toContain('"two": {');
    expect((await run("export", "opencode-json", "--force")).code).toBe(0);
    expect(read("opencode.json")).not.toContain('"description": "Own."');
    expect(read("opencode.json")).toContain("// mine");
    expect((await run("diff", ".claude/agents", "opencode.json")).code).toBe(0);
  });

  it("makes that file where there is none, and adds nothing to one that is broken [PRT-2]", async () => {
    const { run, read } = createFixture(agents);
    expect((await run("export", "opencode-json")).code).toBe(0);
    expect(Object.keys(JSON.parse(read("opencode.json")).agent)).toEqual(["one", "two"]);
    const broken = createFixture({ ...agents, "opencode.json": "{" });
    const { code, err } = await broken.run("export", "opencode-json", "--force");
    expect(code).toBe(2);
    expect(err).toContain("is not valid JSON, so nothing was added to it");
    expect(broken.read("opencode.json")).toBe("{");
  });
});

describe("retinue agents check", () => {
  it("reads a file or folder of another product as that product does [PRT-1]", async () => {
    const { run } = createFixture({
      ".cursor/agents/a.md": fenced("name: a\ndescription: A.\nreadonly: true"),
      ".codex/agents/b.toml": 'name = "b"\ndescription = "B."\n',
      ".kiro/agents/c.json": '{"name": "c", "description": "C.", "prompt": "p", "tools": ["frob"]}',
      ".kiro/agents/d.md": fenced("description: D.\ntools: [read]"),
      "opencode.json": '{"agent": {"e": {"prompt": "p"}, "f": {"prompt": "p", "frob": 1}}}',
    });
    const codes = async (...paths: readonly string[]) => {
      const { out } = await run("check", "--json", ...paths);
      const { files } = JSON.parse(out) as { files: { diagnostics: { code: string }[] }[] };
      return files.flatMap(({ diagnostics }) => diagnostics.map(({ code }) => code)).toSorted();
    };
    const vague = "vague-description";
    expect(await codes(".cursor/agents/a.md")).toEqual([vague]);
    expect(await codes(".codex/agents/b.toml")).toEqual(["no-name"]);
    expect(await codes(".kiro/agents")).toEqual(["tools-not-expressible", "unknown-tool", vague, vague]);
    expect(await codes("opencode.json")).toEqual([
      "no-description",
      "no-description",
      "unknown-kept",
      vague,
      vague,
    ]);
  });
});

describe("retinue agents diff", () => {
  it("names what only one of two folders has, and what it could not read [PRT-2]", async () => {
    const { run } = createFixture({
      "a/.claude/agents/same.md": fenced("name: same\ndescription: Same."),
      "a/.claude/agents/old.md": fenced("name: old\ndescription: Old."),
      "b/.claude/agents/same.md": fenced("name: same\ndescription: Same."),
      "b/.claude/agents/new.md": fenced("name: new\ndescription: New."),
    });
    const { code, out } = await run("diff", "a", "b");
    expect(code).toBe(0);
    expect(out).toContain("Only in a: old\nOnly in b: new\n");
    const json = JSON.parse((await run("diff", "a", "b", "--json")).out);
    expect(json).toMatchObject({ onlyBefore: ["old"], onlyAfter: ["new"] });
    const broken = createFixture({
      "a/.codex/agents/x.toml": 'name = "x"\ndescription = "d"\ndeveloper_instructions = "p"\n',
      "b/.codex/agents/x.toml": 'name = "x"\ndescription = "d"\ndeveloper_instructions = "p"\n',
      "b/.codex/agents/y.toml": 'name = "y\n',
    });
    const unread = await broken.run("diff", "a", "b");
    expect(unread.code).toBe(1);
    expect(unread.err).toContain("y.toml:1");
  });
});
