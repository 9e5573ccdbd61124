import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MemoryScope } from "../agents/agent-definition.ts";
import type { AgentScope } from "../agents/agent-source.ts";
import { createPaths } from "../settings/paths.ts";
import { loadMemory, type MemoryRequest } from "./load-memory.ts";
import { makeMemoryDirectory } from "./make-memory-directory.ts";

let root: string;
let project: string;
let home: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "memory-")));
  project = join(root, "project");
  home = join(root, "home");
  mkdirSync(project);
  mkdirSync(home);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const request = (
  memory: MemoryScope,
  changes: Partial<MemoryRequest> = {},
  scope: AgentScope = "project",
): MemoryRequest => ({
  definition: { name: "rev", memory, source: { scope } },
  paths: createPaths({ home, cwd: project, environment: {}, platform: "linux" }),
  trusted: true,
  ...changes,
});
const own = (name = "MEMORY.md") => join(project, ".claude/agent-memory/rev", name);
function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
const codes = ({ diagnostics }: Awaited<ReturnType<typeof loadMemory>>) =>
  diagnostics.map(({ code }) => code);

describe("[MEM-1] where the memory of an agent is", () => {
  test.each([
    ["user", () => join(home, ".claude/agent-memory/rev")],
    ["project", () => join(project, ".claude/agent-memory/rev")],
    ["local", () => join(project, ".claude/agent-memory-local/rev")],
  ] as const)("%s", async (scope, directory) => {
    write(join(directory(), "MEMORY.md"), `- of ${scope}\n`);
    const loaded = await loadMemory(request(scope));
    expect(loaded).toMatchObject({ place: { scope, directory: directory() }, diagnostics: [] });
    expect(loaded.text).toContain(`- of ${scope}`);
  });

  test("looking makes nothing", async () => {
    expect((await loadMemory(request("local"))).text).toContain("There is no MEMORY.md yet");
    expect(existsSync(join(project, ".claude"))).toBe(false);
  });

  test("a person's own directory may lie behind a link of theirs", async () => {
    mkdirSync(join(root, "dotfiles"));
    symlinkSync(join(root, "dotfiles"), join(home, ".claude"));
    const { place } = await loadMemory(request("user"));
    expect(place?.directory).toBe(join(root, "dotfiles/agent-memory/rev"));
  });

  test("without `memory`, or switched off, there is none", async () => {
    write(own(), "- x\n");
    expect(await loadMemory(request("project", { disabled: true }))).toEqual({ diagnostics: [] });
    const definition = { name: "rev", source: { scope: "project" } } as const;
    expect(await loadMemory(request("project", { definition }))).toEqual({ diagnostics: [] });
  });

  test("an agent of a folder that is not trusted does not reach what all projects share", async () => {
    const loaded = await loadMemory(request("user", { trusted: false }));
    expect(loaded.place).toBeUndefined();
    expect(codes(loaded)).toEqual(["memory-untrusted"]);
    expect((await loadMemory(request("user", { trusted: false }, "user"))).place).toBeDefined();
    expect((await loadMemory(request("project", { trusted: false }))).place).toBeDefined();
  });
});

describe("[MEM-1] links lead nowhere else", () => {
  const elsewhere = () => join(root, "elsewhere");
  beforeEach(() => write(join(elsewhere(), "MEMORY.md"), "SECRET\n"));

  test.each([
    [".claude", () => symlinkSync(elsewhere(), join(project, ".claude"))],
    [
      "the folder of all agents",
      () => {
        mkdirSync(join(project, ".claude"));
        symlinkSync(elsewhere(), join(project, ".claude/agent-memory"));
      },
    ],
    [
      "the directory",
      () => {
        mkdirSync(join(project, ".claude/agent-memory"), { recursive: true });
        symlinkSync(elsewhere(), join(project, ".claude/agent-memory/rev"));
      },
    ],
    [
      "the directory, to nothing yet",
      () => {
        mkdirSync(join(project, ".claude/agent-memory"), { recursive: true });
        symlinkSync(join(root, "not-there"), join(project, ".claude/agent-memory/rev"));
      },
    ],
    ["a file in its place", () => write(join(project, ".claude/agent-memory/rev"), "no folder")],
  ])("%s as a link gives no memory and a problem", async (_, lay) => {
    lay();
    const loaded = await loadMemory(request("project"));
    expect(loaded.place).toBeUndefined();
    expect(loaded.text).toBeUndefined();
    expect(codes(loaded)).toEqual(["memory-unusable"]);
  });

  test("the file as a link out of the directory is not read", async () => {
    mkdirSync(dirname(own()), { recursive: true });
    symlinkSync(join(elsewhere(), "MEMORY.md"), own());
    const loaded = await loadMemory(request("project"));
    expect(loaded.text).not.toContain("SECRET");
    expect(codes(loaded)).toEqual(["memory-unreadable"]);
  });

  test("the file as a link inside the directory is", async () => {
    write(own("index.md"), "- inside\n");
    symlinkSync("index.md", own());
    expect((await loadMemory(request("project"))).text).toContain("- inside");
  });

  test("a directory that became a link is not made", async () => {
    const { place } = await loadMemory(request("project"));
    if (place === undefined) throw new Error("there is a place");
    mkdirSync(join(project, ".claude/agent-memory"), { recursive: true });
    symlinkSync(elsewhere(), place.directory);
    await expect(makeMemoryDirectory(place)).rejects.toMatchObject({ code: "memory-moved" });
  });
});

describe("[MEM-2] what cannot be read is a problem and never a wait", () => {
  test.each([
    ["a pipe", () => execFileSync("mkfifo", [own()])],
    ["a folder", () => mkdirSync(own())],
    ["a file that is no text", () => write(own(), "a\0b")],
    ["a link in a circle", () => symlinkSync(own(), own())],
  ])("%s", async (_, lay) => {
    mkdirSync(dirname(own()), { recursive: true });
    lay();
    const loaded = await loadMemory(request("project"));
    expect(loaded.place).toBeDefined();
    expect(loaded.text).toContain("MEMORY.md is not shown");
    expect(codes(loaded)).toEqual(["memory-unreadable"]);
  });

  test("of 50 MB only the beginning is taken, and the size is reported", async () => {
    write(own(), `${"- a line of the memory\n".repeat(100_000)}`);
    truncateSync(own(), 52_428_800);
    const before = process.memoryUsage().arrayBuffers;
    const { text = "" } = await loadMemory(request("project"));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 1024 * 1024);
    expect(text.split("- a line of the memory")).toHaveLength(201);
    expect(text).toContain("200 lines, cut off, of 52428800 bytes");
  });

  test.runIf(process.getuid?.() !== 0)("a file without the right to read", async () => {
    write(own(), "- x\n");
    chmodSync(own(), 0o000);
    expect(codes(await loadMemory(request("project")))).toEqual(["memory-unreadable"]);
  });
});

describe("[MEM-1] the directory is made when it is needed", () => {
  const make = async (scope: MemoryScope) => {
    const { place } = await loadMemory(request(scope));
    if (place === undefined) throw new Error("there is a place");
    await makeMemoryDirectory(place);
    await makeMemoryDirectory(place);
    return place.directory;
  };

  test("a person's own for them alone", async () => {
    const directory = await make("user");
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect(statSync(dirname(directory)).mode & 0o777).toBe(0o700);
  });

  test("a local one out of version control, without a change to any other file", async () => {
    execFileSync("git", ["init", "-q"], { cwd: project });
    const directory = await make("local");
    write(join(directory, "MEMORY.md"), "- private\n");
    expect(execFileSync("git", ["status", "--short", "-uall"], { cwd: project, encoding: "utf8" })).toBe("");
    write(join(await make("project"), "MEMORY.md"), "- shared\n");
    expect(execFileSync("git", ["status", "--short", "-uall"], { cwd: project, encoding: "utf8" })).toBe(
      "?? .claude/agent-memory/rev/MEMORY.md\n",
    );
  });

  test("a `.gitignore` that is there stays as it is", async () => {
    write(join(project, ".claude/agent-memory-local/.gitignore"), "# mine\n");
    await make("local");
    expect(readFileSync(join(project, ".claude/agent-memory-local/.gitignore"), "utf8")).toBe("# mine\n");
  });
});
