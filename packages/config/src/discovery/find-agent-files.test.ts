import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFileSnapshot } from "@retinue/base/foundation/file-snapshot.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createAgentFileLoader } from "./find-agent-files.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "retinue-files-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, name: string, description = "Does a thing."): string {
  const file = join(root, path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, `---\nname: ${name}\ndescription: ${description}\n---\nYou help.\n`);
  return file;
}

async function names(loader = createAgentFileLoader()): Promise<string[]> {
  const { definitions } = await loader.load([{ scope: "project", path: root }]);
  return definitions.map((definition) => definition.name);
}

describe("[SCP-2] finding files", () => {
  test("folders are searched to the bottom, in a stable order, and only Markdown counts", async () => {
    write("b.md", "b");
    write("a/deep/er/a.md", "a");
    write("c.MD", "c");
    writeFileSync(join(root, "notes.txt"), "---\nname: no\ndescription: no\n---\n");
    expect(await names()).toEqual(["a", "b", "c"]);
  });

  test("a missing folder is no problem", async () => {
    const loaded = await createAgentFileLoader().load([{ scope: "user", path: join(root, "nothing") }]);
    expect(loaded).toEqual({ definitions: [], diagnostics: [], files: [] });
  });

  test("links to files and folders are followed, circles end", async () => {
    write("real/one.md", "one");
    mkdirSync(join(root, "tree"));
    symlinkSync(join(root, "real"), join(root, "tree", "linked"));
    symlinkSync(root, join(root, "tree", "up"));
    symlinkSync(join(root, "gone.md"), join(root, "tree", "dangling.md"));
    expect(new Set(await names())).toEqual(new Set(["one"]));
  });

  test("[PRM-11] a link of a repository to a whole disk does not hold up the start", async () => {
    write("place/good.md", "good");
    for (let at = 0; at < 2_100; at += 1) mkdirSync(join(root, `disk/${at}/a`), { recursive: true });
    symlinkSync(join(root, "disk"), join(root, "place/link.md"));
    const loaded = await createAgentFileLoader().load([{ scope: "project", path: join(root, "place") }]);
    expect(loaded.definitions.map(({ name }) => name)).toEqual(["good"]);
    expect(loaded.diagnostics).toMatchObject([{ code: "too-many-files" }]);
  });

  test("[DEF-7] a bad file never hides a good one", async () => {
    write("good.md", "good");
    writeFileSync(join(root, "bad.md"), "---\nname: bad\n");
    writeFileSync(join(root, "binary.md"), Buffer.from([0, 255, 254, 1, 2, 3]));
    const loaded = await createAgentFileLoader().load([{ scope: "project", path: root }]);
    expect(loaded.definitions.map(({ name }) => name)).toEqual(["good"]);
    expect(loaded.diagnostics.map(({ code }) => code).sort()).toEqual([
      "frontmatter-unclosed",
      "no-frontmatter",
    ]);
  });

  test("a file of ten megabytes is refused with a clear problem", async () => {
    writeFileSync(join(root, "big.md"), `---\nname: a\ndescription: ${"x".repeat(10_000_000)}\n---\n`);
    const loaded = await createAgentFileLoader().load([{ scope: "project", path: root }]);
    expect(loaded.diagnostics).toMatchObject([
      { severity: "error", code: "too-large", file: join(root, "big.md") },
    ]);
  });

  test.skipIf(process.getuid?.() === 0)("a file that may not be read is a problem", async () => {
    chmodSync(write("secret.md", "secret"), 0);
    const loaded = await createAgentFileLoader().load([{ scope: "project", path: root }]);
    expect(loaded.diagnostics).toMatchObject([{ code: "unreadable-file" }]);
  });
});

describe("[DEF-11] files that change", () => {
  test("a new, changed or removed file is seen by the next load", async () => {
    const loader = createAgentFileLoader();
    const file = write("a.md", "a");
    expect(await names(loader)).toEqual(["a"]);
    write("a.md", "renamed");
    utimesSync(file, new Date(1000), new Date(1000));
    write("b.md", "b");
    expect(await names(loader)).toEqual(["renamed", "b"]);
    rmSync(file);
    expect(await names(loader)).toEqual(["b"]);
  });

  test("settings that limit an agent of another product are looked at again when they change [PRT-1]", async () => {
    const loader = createAgentFileLoader();
    write(".opencode/agents/a.md", "a");
    const place = {
      scope: "project",
      path: join(root, ".opencode/agents"),
      format: "opencode",
      within: root,
    } as const;
    const denied = async () => {
      const snapshot = createFileSnapshot(() => Date.now() + 5_000);
      const { definitions } = await loader.load([place], snapshot);
      return { snapshot, denied: definitions.map(({ disallowedTools }) => disallowedTools) };
    };
    const first = await denied();
    expect(first.denied).toEqual([undefined]);
    expect(await first.snapshot.isUnchanged()).toBe(true);
    writeFileSync(join(root, "opencode.json"), '{"permission": {"bash": "deny"}}');
    expect(await first.snapshot.isUnchanged()).toBe(false);
    expect((await denied()).denied).toEqual([["Bash"]]);
    rmSync(join(root, "opencode.json"));
    expect((await denied()).denied).toEqual([undefined]);
  });

  test("what did not change is not parsed again", async () => {
    const loader = createAgentFileLoader();
    write("a.md", "a");
    const place = [{ scope: "project", path: root } as const];
    const later = () => Date.now() + 5_000;
    const first = await loader.load(place, createFileSnapshot(later));
    const second = await loader.load(place, createFileSnapshot(later));
    expect(second.definitions[0]).toBe(first.definitions[0]);
  });
});
