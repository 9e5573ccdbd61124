import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { largestSkill, type ReadSkillOptions, readSkillFile } from "./read-skill-file.ts";
import type { Skill } from "./skill.ts";
import { skillKeys } from "./skill-keys.ts";

const place = { file: "/p/.claude/skills/tidy/SKILL.md", scope: "project", kind: "skill" } as const;

function read(frontmatter: string, options: Partial<ReadSkillOptions> = {}) {
  return readSkillFile(`---\n${frontmatter}\n---\nDo it.\n`, { ...place, ...options });
}

function codes(frontmatter: string): string[] {
  return read(frontmatter).diagnostics.map(({ severity, code, line }) => `${severity} ${code}@${line}`);
}

describe("[SKL-1] one folder, one skill", () => {
  test("frontmatter gives the fields, the text below is the body, the folder is the name", () => {
    expect(read("name: tidy\ndescription: Tidies up.")).toMatchObject({
      skill: {
        name: "tidy",
        description: "Tidies up.",
        body: "Do it.",
        disableModelInvocation: false,
        userInvocable: true,
        source: { ...place, directory: "/p/.claude/skills/tidy" },
      },
      diagnostics: [],
    });
  });

  test("every field is understood, without a problem", () => {
    const { skill, diagnostics } = read(`name: tidy
description: Tidies up.
when_to_use: After a long session.
argument-hint: "[folder]"
arguments: folder mode
disable-model-invocation: true
user-invocable: false
allowed-tools: Read, Bash(git status *)
disallowed-tools: [Write]
model: opus
effort: high
context: fork
agent: Explore
background: false
hooks:
  PreToolUse:
    - matcher: Bash
      hooks: [{type: command, command: ./check.sh}]
paths: "src/**/*.{ts,tsx}, docs/*.md"
shell: powershell
metadata: {version: "1.0"}
license: MIT
compatibility: Needs git.`);
    expect(diagnostics).toEqual([]);
    expect(skill).toMatchObject({
      whenToUse: "After a long session.",
      argumentHint: "[folder]",
      arguments: ["folder", "mode"],
      disableModelInvocation: true,
      userInvocable: false,
      allowedTools: ["Read", "Bash(git status *)"],
      disallowedTools: ["Write"],
      model: "opus",
      effort: "high",
      context: "fork",
      agent: "Explore",
      background: false,
      hooks: [{ event: "PreToolUse", matcher: "Bash", handler: { command: "./check.sh" } }],
      paths: ["src/**/*.{ts,tsx}", "docs/*.md"],
      shell: "powershell",
    });
  });

  test("without a description, the first paragraph that is no heading describes it", () => {
    const text = "# Tidy\n\n> Puts things\n> in order.\n\nMore.";
    const { skill, diagnostics } = readSkillFile(`\uFEFF${text.replaceAll("\n", "\r\n")}`, place);
    expect(skill).toMatchObject({ name: "tidy", description: "Puts things in order.", body: text });
    expect(diagnostics.map(({ code }) => code)).toEqual(["no-frontmatter"]);
    expect(codes("name: tidy")).toEqual(["warning no-description@1"]);
    expect(readSkillFile("Commit all.", { ...place, file: "/c/commit.md", kind: "command" })).toMatchObject({
      skill: { name: "commit", description: "Commit all." },
      diagnostics: [],
    });
  });

  test("a block that never closes, a huge file and a name that is a path are refused", () => {
    const refused = (text: string, options = {}) =>
      readSkillFile(text, { ...place, ...options }).diagnostics.map(
        ({ severity, code }) => `${severity} ${code}`,
      );
    expect(refused("---\nname: tidy\n\n# Tidy")).toEqual(["error frontmatter-unclosed"]);
    expect(refused("x".repeat(largestSkill + 1))).toEqual(["error too-large"]);
    expect(refused("text", { name: "../../evil" })).toContain("error name-unsafe");
    expect(refused("text", { name: "good/../../evil" })).toContain("error name-unsafe");
  });
});

describe("[SKL-1] names", () => {
  const plugin = { name: "gsd", root: "/plugins/gsd" };
  const cases: [string, Partial<ReadSkillOptions>, Partial<Skill>][] = [
    ["name: Other Name", {}, { name: "tidy", displayName: "Other Name" }],
    ["name: tidy", {}, { name: "tidy" }],
    ["name: cleaner", { plugin, scope: "plugin" }, { name: "gsd:cleaner" }],
    ["name: gsd:cleaner", { plugin, scope: "plugin" }, { name: "gsd:cleaner" }],
    ["name: ../evil", { plugin, scope: "plugin" }, { name: "gsd:tidy", displayName: "../evil" }],
    ["license: MIT", { plugin, scope: "plugin" }, { name: "gsd:tidy" }],
    ["name: x", { kind: "command", name: "git:tidy" }, { name: "git:tidy", displayName: "x" }],
  ];
  test.each(cases)("%s as %o is called %o", (frontmatter, options, expected) => {
    expect(read(`${frontmatter}\ndescription: d`, options).skill).toMatchObject(expected);
  });

  test("a name that changes the text around it is not shown", () => {
    const { skill, diagnostics } = read('name: "a\\u202Eb"\ndescription: d');
    expect(skill).toMatchObject({ displayName: undefined });
    expect(diagnostics).toMatchObject([{ code: "name-unsafe", line: 2 }]);
  });
});

describe("[SKL-1] lists of tools in every spelling", () => {
  const cases: [string, string[] | undefined][] = [
    ["allowed-tools: Read, Grep", ["Read", "Grep"]],
    [
      "allowed-tools: Read Write Bash(git add:*) mcp__ide__run",
      ["Read", "Write", "Bash(git add:*)", "mcp__ide__run"],
    ],
    ['allowed-tools: "Bash(npx tsx *)"', ["Bash(npx tsx *)"]],
    ["allowed-tools: Bash(git add:*), Bash(git status:*)", ["Bash(git add:*)", "Bash(git status:*)"]],
    ["allowed-tools: [Read, 'Bash(git log *)']", ["Read", "Bash(git log *)"]],
    ["allowed-tools: [Read, Bash(git add:*, git commit:*)]", ["Read", "Bash(git add:*, git commit:*)"]],
    ["allowed-tools:\n  - Read\n  - Bash(git log: *)", ["Read", "Bash(git log: *)"]],
    ["allowed-tools:\n- Read\n- Grep", ["Read", "Grep"]],
    ["allowed-tools:\n\t- Read\n\t- Grep", ["Read", "Grep"]],
    ["allowed-tools:\n  Bash(a *), Bash(b\n  c), Read", ["Bash(a *)", "Bash(b c)", "Read"]],
    ["allowed-tools: >\n  Bash(cargo:*) Read\n  Grep", ["Bash(cargo:*)", "Read", "Grep"]],
    ["allowed-tools: |\n  Read AskUserQuestion\n  mcp__x__find", ["Read", "AskUserQuestion", "mcp__x__find"]],
    ["allowed-tools: |\n  - read\n  - my_tool", ["read", "my_tool"]],
    ["allowed-tools: Read, Write Edit", ["Read", "Write", "Edit"]],
    ["allowed-tools: load_state write_state", ["load_state", "write_state"]],
    ["allowed-tools: Bash(lsof -ti:3030 *)", ["Bash(lsof -ti:3030 *)"]],
    ["allowed-tools: Bash (git status)", ["Bash (git status)"]],
    ["allowed-tools: Bash git status", ["Bash git status"]],
    ["allowed-tools: ['Bash git status']", ["Bash git status"]],
    ["allowed-tools: [Read Write, Bash]", ["Read Write", "Bash"]],
    ["allowed-tools:\n  - Bash git push\n  - Read", ["Bash git push", "Read"]],
    ["allowed-tools: Read Bash (git status)", ["Read Bash (git status)"]],
    ["allowed-tools: Read only files", ["Read only files"]],
    ["allowed-tools: read_file ls execute", ["read_file", "ls", "execute"]],
    ['allowed-tools: "[Read, Grep]"', ["Read", "Grep"]],
    ['allowed-tools: "[\\"Bash(a *)\\", \\"Read\\"]"', ["Bash(a *)", "Read"]],
    ["allowed-tools: *", ["*"]],
    ["allowed-tools: all tools", ["*"]],
    ["allowed-tools: none", []],
    ["allowed-tools: []", []],
    ["allowed-tools:", undefined],
    ["allowed-tools: {Bash: yes}", undefined],
    ["allowed_tools: Read", ["Read"]],
    ["allowedTools: Read", ["Read"]],
    ["tools: Read", undefined],
  ];
  test.each(cases)("%j", (frontmatter, expected) => {
    expect(read(`description: d\n${frontmatter}`).skill?.allowedTools).toEqual(expected);
  });

  test("a list that takes something away and cannot be read costs the whole skill", () => {
    expect(codes("description: d\ndisallowed-tools: {a: b}")).toEqual(["error unreadable-restriction@3"]);
    expect(codes("description: d\nhooks:\n  Stop:\n - x: [")).toContain("error unreadable-restriction@3");
  });
});

describe("[SKL-1] texts, words and booleans as people write them", () => {
  const cases: [string, Partial<Skill>][] = [
    ["argument-hint: [a] [b]", { argumentHint: "[a] [b]" }],
    ["argument-hint: [name]", { argumentHint: "[name]" }],
    ["argument-hint: [action: list|add] [x]", { argumentHint: "[action: list|add] [x]" }],
    ["argument-hint: <a> [--b c: d]", { argumentHint: "<a> [--b c: d]" }],
    ['argument-hint: "file" or "folder"', { argumentHint: '"file" or "folder"' }],
    ["argument-hint: {x}", { argumentHint: "{x}" }],
    ["argument-hint:\n  - <file>\n  - <mode>", { argumentHint: "<file> <mode>" }],
    ["argument-hint: 12", { argumentHint: "12" }],
    ["argument_hint: x", { argumentHint: "x" }],
    ['disable-model-invocation: "true"', { disableModelInvocation: true }],
    ["disable-model-invocation: yes", { disableModelInvocation: true }],
    ["disable-model-invocation: perhaps", { disableModelInvocation: true }],
    ["disable-model-invocation:", { disableModelInvocation: false }],
    ["disable-model-invocation: true\ndisable-model-invocation: false", { disableModelInvocation: true }],
    ["disable_model_invocation: true", { disableModelInvocation: true }],
    ["user-invokable: false", { userInvocable: true }],
    ["user-invocable: No", { userInvocable: false }],
    ["user-invocable: maybe", { userInvocable: true }],
    ["model: inherit", { model: "inherit" }],
    ["whenToUse: often", { whenToUse: "often" }],
    ["arguments:\n  - name: file\n    required: true\n  - mode", { arguments: ["file", "mode"] }],
    ["context: Fork", { context: "fork" }],
  ];
  test.each(cases)("%j", (frontmatter, expected) => {
    expect(read(`description: d\n${frontmatter}`).skill).toMatchObject(expected);
  });

  test("a colon in a description does not cost the fields around it", () => {
    const { skill } = read(
      "name: tidy\ndescription: Tidies: all of it. Use: often\ncontext: fork\nagent: Explore",
    );
    expect(skill).toMatchObject({
      description: "Tidies: all of it. Use: often",
      context: "fork",
      agent: "Explore",
    });
  });

  test("a dialogue below a description stays part of it", () => {
    const { skill } = read("description: Tidies up: yes\nContext: the user asks\nuser: tidy!\nmodel: haiku");
    expect(skill).toMatchObject({
      description: "Tidies up: yes\nContext: the user asks\nuser: tidy!",
      model: "haiku",
    });
  });

  test("the two characters of a line break are a line break", () => {
    expect(read('description: "One.\\\\nTwo."').skill?.description).toBe("One.\nTwo.");
  });
});

describe("[SKL-1] problems have a place and a way out", () => {
  const cases: [string, string[]][] = [
    ["description: d\nversion: 1", ["note unknown-key@3"]],
    ["description: d\ntools: Read", ["warning unknown-key@3"]],
    ["description: d\nallowed_tools: Read", ["warning misspelt-key@3"]],
    ["description: d\ncontext: main", []],
    ["description: d\ncontext: spoon", ["warning unknown-context@3"]],
    ["description: d\nshell: fish", ["warning unknown-shell@3"]],
    ["description: d\nhooks: hooks.json", ["warning unreadable-field@3"]],
    ["description: d\npaths: {a: b}", ["warning unreadable-field@3"]],
    ["description: d\narguments: [1]", ["warning unreadable-field@3"]],
    ["description: d\nagent: [a, b]", ["warning unreadable-field@3"]],
  ];
  test.each(cases)("%j", (frontmatter, expected) => {
    expect(codes(frontmatter)).toEqual(expected);
  });

  test("a near miss is named", () => {
    expect(read("description: d\ntools: Read").diagnostics[0]?.advice).toBe("Did you mean `allowed-tools`?");
  });
});

describe("[SKL-1] any text is read without a throw", () => {
  const line = fc.oneof(
    fc.tuple(fc.constantFrom(...skillKeys), fc.string()).map(([key, value]) => `${key}: ${value}`),
    fc.tuple(fc.constantFrom(...skillKeys), fc.json()).map(([key, value]) => `${key}: ${value}`),
    fc.string({ unit: anyCharacter }),
    fc.constantFrom(
      "---",
      "  - x",
      "\t- y",
      "  a: b",
      "> ",
      "__proto__: {a: 1}",
      "constructor: x",
      "&a [*a]",
    ),
  );
  test("and a skill that loads has a name, a text and no error", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), fc.boolean(), (lines, isFenced) => {
        const text = lines.join("\n");
        const { skill, diagnostics } = readSkillFile(isFenced ? `---\n${text}\n---\nBody` : text, place);
        for (const diagnostic of diagnostics)
          expect(diagnostic).toMatchObject({ file: place.file, code: expect.any(String) });
        const isRefused = diagnostics.some(({ severity }) => severity === "error");
        expect(skill === undefined).toBe(isRefused);
        if (skill === undefined) return;
        expect(skill.name).toBe("tidy");
        expect(typeof skill.description).toBe("string");
        expect(JSON.parse(JSON.stringify(skill))).toEqual(skill);
      }),
      { numRuns: 80 },
    );
  });
});
