import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PathFact } from "./call-facts.ts";
import { decide, type PermissionPolicy } from "./decide.ts";
import { followMadeLinks, passedBy } from "./follow-made-links.ts";
import { gatherCallFacts } from "./gather-call-facts.ts";
import { parseRule, type RuleList } from "./rules/parse-rule.ts";

let root = "";
let project = "";

beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "retinue-made-links-")));
  project = join(root, "p");
  for (const folder of ["src", "conf", ".claude", ".git/hooks", "../other"])
    await mkdir(join(project, folder), { recursive: true });
  for (const file of ["src/a.ts", "conf/a.yml", ".claude/settings.json", ".env", ".npmrc", "words.txt"])
    await writeFile(join(project, file), "x\n");
  await writeFile(join(project, ".git/config"), "[core]\n");
});

afterAll(() => rm(root, { recursive: true, force: true }));

async function judge(
  command: string,
  rules: Partial<Record<RuleList, readonly string[]>> = {},
  mode: PermissionPolicy["mode"] = "acceptEdits",
) {
  const read = (list: RuleList) =>
    (rules[list] ?? []).map((text) => {
      const reading = parseRule(text, { list });
      if (reading.type === "invalid") throw new Error(reading.reason);
      return { rule: reading.rule, anchor: project };
    });
  const policy: PermissionPolicy = {
    mode,
    allow: read("allow"),
    ask: read("ask"),
    deny: read("deny"),
    workingDirectories: [project],
    home: root,
    trusted: true,
  };
  const call = { tool: "Bash", effect: "execute", input: { command } };
  return decide(await gatherCallFacts(call, { policy, directory: project }), policy).type;
}

const toProtected = [
  "ln -s .claude foo; echo x > foo/settings.json",
  "ln -s .claude foo && cp words.txt foo/settings.json",
  "ln -s .git/hooks foo\necho x | tee foo/pre-commit",
  "ln -sr .git/hooks src/foo; echo x > src/foo/pre-commit",
  "ln -s .git/hooks src/; echo x > src/hooks/pre-commit",
  "ln -st src .git/hooks; echo x > src/hooks/pre-commit",
  "ln --target-directory=src -s .git/hooks; echo x > src/hooks/pre-commit",
  "ln .git/config foo; echo x >> foo",
  "ln .npmrc foo; cp words.txt foo",
  "cp -l .npmrc foo; echo x > foo",
  "ln -s src foo; ln -sfn .claude foo; echo x > foo/settings.json",
  "ln -s .claude one; ln -s one two; echo x > two/settings.json",
  "cd src && ln -s ../.git/hooks foo && echo x > foo/pre-commit",
  "ln -s .claude foo; cd foo; echo x > settings.json",
  "for i in 1; do ln -s .claude foo; echo x > foo/settings.json; done",
  "name=foo; ln -s .claude $name; echo x > $name/settings.json",
  "echo x | (ln -s .claude foo; cat > foo/settings.json)",
  "ln -s .claude foo & wait; echo x > foo/settings.json",
  "ln -s .claude foo; rm foo/settings.json",
  "ln -s .claude foo; mv words.txt foo/x",
  "ln -s . foo; echo x > foo/.npmrc",
  "ln -s -- .claude -foo; echo x > ./-foo/settings.json",
  "ln -- .npmrc -foo; echo x > ./-foo",
  "command ln -s .claude foo; cp -t foo words.txt",
  "(cd src && ln -s ../.claude foo); mv src other; echo x > other/foo/settings.json",
  "ln -s .claude foo; cp -P foo src/; echo x > src/foo/settings.json",
  "ln -s .claude foo; mv foo bar; echo x > bar/settings.json",
];

describe("[PRM-10] links that a command of the same call makes", () => {
  test.each(toProtected)("a protected file behind one is asked about: %s", async (command) => {
    expect(await judge(command)).toBe("ask");
    expect(await judge(command, { allow: ["Bash"] }, "default")).toBe("ask");
  });

  test.each([
    ["ln -s conf foo; echo x > foo/a.yml", "Edit(conf/**)"],
    ["ln conf/a.yml foo; echo x > foo", "Edit(conf/**)"],
    ["ln -s . foo; cat foo/.env", "Read(./.env)"],
    ["ln -s src foo; head foo/../.env", "Read(./.env)"],
    ["ln -s . foo; cp foo/.env y", "Read(./.env)"],
  ])("what a rule denies stays denied behind one, also where permissions are bypassed: %s", async (command, rule) => {
    expect(await judge(command, { deny: [rule] })).toBe("deny");
    expect(await judge(command, { deny: [rule] }, "bypassPermissions")).toBe("deny");
  });

  test.each([
    "ln -s . foo; ln -s foo/.. bar; cat bar/other/secret.txt",
    "ln -s .. src/up; cat src/up/../other/secret.txt",
    "ln -s . foo; cd -P foo/..; cat other/secret.txt",
    "ln -s . foo; grep -r x foo/",
  ])("what lies behind one is not known to be inside: %s", async (command) => {
    expect(await judge(command)).toBe("ask");
  });

  test.each([
    "ln -s src/a.ts foo.ts",
    "ln -s src/a.ts foo.ts && ls -l src",
    "ln -s src foo; echo x > words.txt",
    "mkdir foo && cp words.txt foo/ && cat foo/words.txt",
    "mv words.txt foo.txt && cat foo.txt",
  ])("other paths of the call are allowed as without it: %s", async (command) => {
    expect(await judge(command)).toBe("allow");
  });

  test("a path is known by what it goes through before each step back", () => {
    expect(passedBy("/p/a/../b/./c/../d")).toEqual(["/p/a", "/p/b/c", "/p/b/d"]);
    expect(passedBy("/p/a/")).toEqual(["/p/a"]);
  });
});

test.each([
  "tar xf a.tar -C src; cat src/l",
  "git clone https://host.invalid/x made; cat made/l",
  "git clone https://host.invalid/x made && cd made && head l",
])("[PRM-10] %s: what was just unpacked may be a link, so it is read in a call of its own", async (command) => {
  expect(await judge(command, { allow: ["Bash(tar:*)", "Bash(git:*)"] })).toBe("ask");
});

test.each([
  "tar xf a.tar -C src; ls src",
  "git clone https://host.invalid/x made && cd made && ls",
])("%s: the folder itself can be listed", async (command) => {
  expect(await judge(command, { allow: ["Bash(tar:*)", "Bash(git:*)"] })).toBe("allow");
});

test("a path that hundreds of links may lead away has a bounded number of forms [PRM-10]", () => {
  const word = (text: string) => ({ text, value: text, literal: true, source: text });
  const count = 400;
  const units = Array.from({ length: count }, (_, at) => ({
    words: ["ln", "-s", `t${at}`, "b"].map(word),
    directories: [""],
  })) as unknown as Parameters<typeof followMadeLinks>[1];
  const paths: readonly PathFact[] = [{ forms: ["/p/b/x"], use: "read" }];
  const facts = { units: units.map(() => ({ paths, otherTexts: [] })), redirects: [], listed: [] };
  const places = { directory: "/p", home: "/home/ada", replaced: [] };
  const { units: followed } = followMadeLinks(facts, units, places);
  for (const {
    paths: [path],
  } of followed) {
    expect(path?.isBehindLink).toBe(true);
    expect(path?.forms.length).toBeLessThan(60);
  }
});
