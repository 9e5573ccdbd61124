import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findOutputStyle, loadOutputStyles, readStyle } from "./load-output-styles.ts";

function createPlace() {
  const root = mkdtempSync(join(tmpdir(), "output-styles-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const project = join(root, "project");
  const paths = {
    projectRoot: project,
    outputStyles: {
      managed: join(root, "managed/.claude/output-styles"),
      project: [join(project, ".claude/output-styles")],
      user: join(root, "home/.claude/output-styles"),
    },
  };
  const write = (file: string, text: string): string => {
    const path = join(root, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  };
  write("project/README.md", "");
  return { root, paths, write };
}

test("output styles are files of the organisation, the project and the person, and two that are built in [CLI-4]", async () => {
  const { paths, write } = createPlace();
  write("home/.claude/output-styles/terse.md", "---\nname: Terse\ndescription: Few words\n---\nFew words.\n");
  write("home/.claude/output-styles/plain.md", "No frontmatter at all.");
  write(
    "project/.claude/output-styles/terse.md",
    "---\nkeep-coding-instructions: true\n---\nOf the project.\n",
  );
  write("project/.claude/output-styles/empty.md", "---\nname: empty\n---\n");
  const found = await loadOutputStyles(paths, {});
  expect(found.styles.map(({ name, scope, keepsCoding }) => [name, scope, keepsCoding])).toEqual([
    ["terse", "project", true],
    ["plain", "user", false],
    ["explanatory", "built-in", true],
    ["learning", "built-in", true],
  ]);
  expect(findOutputStyle("TERSE", found).style?.text).toBe("Of the project.");
  expect(findOutputStyle("Default", found)).toEqual({});
  expect(findOutputStyle("tense", found).problem).toBe(
    'Unknown output style "tense"; the default is used. Available: default, terse, plain, explanatory, learning.',
  );
  const own = await loadOutputStyles(paths, { sources: ["user"] });
  expect(findOutputStyle("terse", own).style?.text).toBe("Few words.");
});

test("a style that a rule denies, or a link leads out of the project to, is not used [CLI-4]", async () => {
  const { root, paths, write } = createPlace();
  const secret = write("elsewhere/secret.md", "A secret.");
  const denied = write("project/.claude/output-styles/denied.md", "Denied.");
  symlinkSync(secret, join(root, "project/.claude/output-styles/linked.md"));
  const { styles, diagnostics } = await loadOutputStyles(paths, { mayLoad: async (file) => file !== denied });
  expect(styles.filter(({ scope }) => scope === "project")).toEqual([]);
  expect(diagnostics.map(({ message }) => message)).toEqual([
    "The output style is not used: a rule denies reading it.",
    "The output style is not used: a link leads out of the project.",
  ]);
});

test("a frontmatter that is never closed is no style [CLI-4]", () => {
  const { style, diagnostics } = readStyle("---\nname: x\nText", { file: "x.md", scope: "user" });
  expect(style).toBeUndefined();
  expect(diagnostics.map(({ code }) => code)).toContain("output-style-unusable");
});
