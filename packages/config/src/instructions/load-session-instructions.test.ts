import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type InstructionOptions, loadInstructions } from "./load-session-instructions.ts";

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-instructions-")));
  mkdirSync(join(root, "home/code/project/pkg/deep"), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text = path): string {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

function load(options: Partial<InstructionOptions> = {}) {
  return loadInstructions({
    home: join(root, "home"),
    cwd: join(root, "home/code/project/pkg"),
    projectRoot: join(root, "home/code/project"),
    configDirectory: join(root, "home/.claude"),
    managedDirectory: join(root, "managed"),
    ...options,
  });
}

const project = "home/code/project";

async function texts(options: Partial<InstructionOptions> = {}): Promise<string[]> {
  return (await load(options)).files.map(({ text }) => text);
}

async function codes(options: Partial<InstructionOptions> = {}): Promise<string[]> {
  return (await load(options)).diagnostics.map(({ code }) => code);
}

describe("[SPN-3] the chain of instruction files", () => {
  it("goes from the organisation over the person down to the working folder", async () => {
    const expected = [
      ["managed/CLAUDE.md", "managed"],
      ["home/.claude/CLAUDE.md", "user"],
      ["home/.claude/rules/a.md", "user"],
      ["home/CLAUDE.md", "project"],
      ["home/code/AGENTS.md", "project"],
      [`${project}/CLAUDE.md`, "project"],
      [`${project}/.claude/rules/deep/er/r.md`, "project"],
      [`${project}/CLAUDE.local.md`, "local"],
      [`${project}/pkg/.claude/CLAUDE.md`, "project"],
    ] as const;
    for (const [path] of expected) write(path);
    write(`${project}/pkg/deep/CLAUDE.md`);
    write("home/code/sibling/CLAUDE.md");
    const { files, diagnostics } = await load();
    expect(files).toEqual(expected.map(([path, kind]) => ({ file: join(root, path), kind, text: path })));
    expect(diagnostics).toEqual([]);
  });

  it("AGENTS.md counts only where a folder has no CLAUDE.md of either kind", async () => {
    write(`${project}/AGENTS.md`);
    write(`${project}/.claude/CLAUDE.md`);
    write(`${project}/pkg/AGENTS.md`);
    write(`${project}/pkg/CLAUDE.local.md`);
    expect(await texts()).toEqual([
      `${project}/.claude/CLAUDE.md`,
      `${project}/pkg/AGENTS.md`,
      `${project}/pkg/CLAUDE.local.md`,
    ]);
  });

  it("rules with paths are kept apart, with the folder their globs start in, and import nothing yet", async () => {
    const file = write(`${project}/.claude/rules/ts.md`, "---\npaths: src/**\n---\nUse tabs. @../../more.md");
    write(`${project}/more.md`);
    const { files, conditional } = await load();
    expect(files).toEqual([]);
    expect(conditional).toEqual([
      {
        file,
        kind: "project",
        text: "Use tabs. @../../more.md",
        paths: ["src/**"],
        folder: join(root, project),
      },
    ]);
  });

  it("a file above the project that belongs to another user is not used", async () => {
    const above = write("home/code/CLAUDE.md");
    write(`${project}/CLAUDE.md`);
    // What belongs to the administrator is used, so as such a test has to give the file away.
    const isAdministrator = process.getuid?.() === 0;
    if (isAdministrator) chownSync(above, 4242, 4242);
    const userId = isAdministrator ? 0 : (process.getuid?.() ?? 0) + 1;
    expect(await texts({ userId })).toEqual([`${project}/CLAUDE.md`]);
    expect(await codes({ userId })).toEqual(["foreign-owner"]);
  });

  it("skips what claudeMdExcludes names, but never the organisation's file", async () => {
    for (const path of ["managed/CLAUDE.md", `${project}/CLAUDE.md`, `${project}/pkg/CLAUDE.md`]) write(path);
    write(`${project}/pkg/AGENTS.md`);
    expect(await texts({ excludes: ["**/pkg/**"] })).toEqual(["managed/CLAUDE.md", `${project}/CLAUDE.md`]);
    expect(await texts({ excludes: ["CLAUDE.md"] })).toEqual(["managed/CLAUDE.md"]);
    expect(await texts({ excludes: ["~/code/*/CLAUDE.md"] })).toEqual([
      "managed/CLAUDE.md",
      `${project}/pkg/CLAUDE.md`,
    ]);
  });

  it("reads nothing when switched off, and only the sources that were named", async () => {
    for (const path of ["managed/CLAUDE.md", "home/.claude/CLAUDE.md", `${project}/CLAUDE.md`]) write(path);
    write(`${project}/CLAUDE.local.md`);
    expect(await texts({ disabled: true })).toEqual([]);
    expect(await texts({ sources: [] })).toEqual(["managed/CLAUDE.md"]);
    expect(await texts({ sources: ["project"] })).toEqual(["managed/CLAUDE.md", `${project}/CLAUDE.md`]);
  });

  it("the text of the organisation's settings comes before everything else", async () => {
    write("managed/CLAUDE.md");
    const managedText = { file: "/etc/managed-settings.json", text: "Said in settings." };
    expect(await texts({ managedText })).toEqual(["Said in settings.", "managed/CLAUDE.md"]);
  });

  it("further directories bring their own files", async () => {
    write("elsewhere/CLAUDE.md", "@notes.md");
    write("elsewhere/notes.md");
    expect(await texts({ additionalDirectories: [join(root, "elsewhere")] })).toEqual([
      "@notes.md",
      "elsewhere/notes.md",
    ]);
  });

  it("a file that cannot be read is a problem and costs only itself", async () => {
    write(`${project}/CLAUDE.md`, "\0binary");
    write(`${project}/pkg/CLAUDE.md`, "good");
    execFileSync("mkfifo", [join(root, project, "CLAUDE.local.md")]);
    const forbidden = write(`${project}/pkg/CLAUDE.local.md`);
    chmodSync(forbidden, 0);
    const { files, diagnostics } = await load();
    expect(files.map(({ text }) => text).slice(0, 1)).toEqual(["good"]);
    const expected = process.getuid?.() === 0 ? 2 : 3;
    expect(diagnostics.map(({ code }) => code)).toEqual(Array(expected).fill("unreadable-file"));
  });

  it("the byte order mark and block comments are gone", async () => {
    write(`${project}/CLAUDE.md`, "\uFEFF<!-- for maintainers -->\n# Rules\n");
    expect(await texts()).toEqual(["# Rules"]);
  });
});

describe("[SPN-3] imports", () => {
  it("are read relative to the file that names them, behind it, each file once", async () => {
    write(`${project}/CLAUDE.md`, "@docs/a.md and @docs/b.md");
    write(`${project}/docs/a.md`, "a @b.md @../CLAUDE.md");
    write(`${project}/docs/b.md`, "b @a.md @b.md");
    write(`${project}/pkg/CLAUDE.md`, "@../docs/a.md");
    const { files, diagnostics } = await load();
    expect(files.map(({ text }) => text)).toEqual([
      "@docs/a.md and @docs/b.md",
      "a @b.md @../CLAUDE.md",
      "b @a.md @b.md",
      "@../docs/a.md",
    ]);
    expect(files.map(({ importedBy }) => importedBy?.slice(root.length + 1))).toEqual([
      undefined,
      `${project}/CLAUDE.md`,
      `${project}/docs/a.md`,
      undefined,
    ]);
    expect(diagnostics.map(({ code, severity }) => [code, severity])).toEqual(
      Array(3).fill(["circular-import", "note"]),
    );
  });

  it("go four levels deep and say when there are more", async () => {
    write(`${project}/CLAUDE.md`, "@1.md");
    for (const level of [1, 2, 3, 4, 5]) write(`${project}/${level}.md`, `level ${level} @${level + 1}.md`);
    const { files, diagnostics } = await load();
    expect(files).toHaveLength(5);
    expect(diagnostics).toMatchObject([
      { code: "import-too-deep", file: join(root, project, "4.md"), line: 1, column: 9 },
    ]);
  });

  it("a missing file is reported only where nothing else can be meant", async () => {
    const file = write(`${project}/CLAUDE.md`, "By @somebody with @scope/package in @src/.\n\nSee @gone.md");
    mkdirSync(join(root, project, "src"));
    const { diagnostics } = await load();
    expect(diagnostics).toMatchObject([{ code: "missing-import", file, line: 3, column: 5, length: 8 }]);
  });

  it("out of the project are held back until they are allowed", async () => {
    const secret = write("home/.ssh/key.md", "secret");
    write(`${project}/CLAUDE.md`, "@~/.ssh/key.md");
    symlinkSync(secret, join(root, project, "link.md"));
    write(`${project}/pkg/CLAUDE.md`, "@../link.md");
    symlinkSync(secret, join(root, project, "CLAUDE.local.md"));
    const held = await load();
    expect(held.files.map(({ text }) => text)).toEqual(["@~/.ssh/key.md", "@../link.md"]);
    expect(held.heldBack).toEqual([secret]);
    expect(held.diagnostics.map(({ code }) => code)).toEqual(Array(3).fill("outside-import"));
    expect(await texts({ allowOutside: (file) => file === secret })).toContain("secret");
  });

  it("of a person's own files lead anywhere, but the project's word stays bound when it is imported", async () => {
    write("home/.claude/CLAUDE.md", "@~/notes.md @~/code/project/shared.md");
    write("home/notes.md", "notes");
    write(`${project}/shared.md`, "shared @~/other.md");
    write("home/other.md", "other");
    const { files, heldBack } = await load();
    expect(files.map(({ text }) => text)).toEqual([
      "@~/notes.md @~/code/project/shared.md",
      "notes",
      "shared @~/other.md",
    ]);
    expect(heldBack).toEqual([join(root, "home/other.md")]);
  });
});

describe("[SPN-3] sizes", () => {
  it("a file of more than 256 KB is cut at a line, and says so", async () => {
    write(`${project}/CLAUDE.md`, "äöü line\n".repeat(40_000));
    const { files, diagnostics } = await load();
    const text = files[0]?.text ?? "";
    expect(Buffer.byteLength(text)).toBeLessThan(257 * 1024);
    expect(text).toMatch(/äöü line\n\n\[The rest of .* is left out: it is too large\.\]$/);
    expect(diagnostics).toMatchObject([{ code: "large-instructions", severity: "warning" }]);
  });

  it("all together have at most one megabyte", async () => {
    write(`${project}/CLAUDE.md`, [1, 2, 3, 4, 5, 6].map((name) => `@${name}.md`).join(" "));
    for (const name of [1, 2, 3, 4, 5, 6]) write(`${project}/${name}.md`, `${name}23456789\n`.repeat(25_000));
    const { files, diagnostics } = await load();
    const total = files.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
    expect(total).toBeLessThan(1024 * 1024 + 500);
    expect(files).toHaveLength(6);
    expect(files.at(-1)?.text).toContain("all later files are left out");
    expect(diagnostics.map(({ code }) => code)).toEqual(["large-instructions"]);
  });
});

describe("[SPN-3] what rules forbid reading", () => {
  const mayLoad = async (file: string) => !file.endsWith("/.env");

  it("is left out with its place, also behind a link", async () => {
    write(`${project}/.env`, "SECRET=42");
    symlinkSync(".env", join(root, project, "plain.md"));
    const file = write(`${project}/AGENTS.md`, "Be kind.\n@./.env\n@./plain.md\n");
    const { files, diagnostics } = await load({ mayLoad });
    expect(files.map(({ text }) => text).join()).not.toContain("SECRET");
    expect(diagnostics).toMatchObject([
      { code: "denied-import", severity: "warning", file, line: 2, column: 1 },
      { code: "denied-import", file, line: 3 },
    ]);
  });

  it("cannot come in as an instruction file of the project that is a link", async () => {
    write(`${project}/.env`, "SECRET=42");
    symlinkSync(".env", join(root, project, "CLAUDE.md"));
    expect(await texts({ mayLoad })).toEqual([]);
    expect(await codes({ mayLoad })).toEqual(["denied-import"]);
  });

  it("does not take away the word of the organisation and of the person", async () => {
    write("managed/CLAUDE.md", "of the organisation\n@more.md");
    write("managed/more.md", "more of it");
    write("home/.claude/CLAUDE.md", "of the person\n@./own.md");
    write("home/.claude/own.md", "own");
    const found = await texts({ mayLoad: async () => false });
    expect(found.map((text) => text.split("\n")[0])).toEqual([
      "of the organisation",
      "more of it",
      "of the person",
    ]);
  });
});
