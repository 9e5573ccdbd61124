import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { decide, type PermissionPolicy } from "./decide.ts";
import { type CallToJudge, gatherCallFacts } from "./gather-call-facts.ts";
import { type PermissionRule, parseRule } from "./rules/parse-rule.ts";
import { suggestRules } from "./suggest-rules.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "suggest-")));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const work = join(root, "work");
const home = join(root, "home");
const withRules = (rules: readonly PermissionRule[]): PermissionPolicy => ({
  mode: "default",
  allow: rules.map((rule) => ({ rule, anchor: work })),
  ask: [],
  deny: [],
  workingDirectories: [work],
  home,
  platform: "linux",
});

const requestOf = (call: CallToJudge) => gatherCallFacts(call, { policy: withRules([]), directory: work });
const bash = (command: string): CallToJudge => ({ tool: "Bash", effect: "execute", input: { command } });

async function suggest(call: CallToJudge): Promise<readonly string[]> {
  const request = await requestOf(call);
  return suggestRules(request, withRules([]), { anchor: work });
}

async function decisionWith(rules: readonly string[], call: CallToJudge): Promise<string> {
  const read = rules.flatMap((text) => {
    const reading = parseRule(text, { list: "allow" });
    return reading.type === "rule" ? [reading.rule] : [];
  });
  return decide(await requestOf(call), withRules(read)).type;
}

describe("rules for a shell command", () => {
  it.each([
    ["git push origin main", ["Bash(git push *)"]],
    ["npm run build", ["Bash(npm run build *)"]],
    ["git add -A && git commit -m wip", ["Bash(git add *)", "Bash(git commit *)"]],
    ["make all", ["Bash(make all)"]],
    ["ls && make all", ["Bash(make all)"]],
    ["npm install left-pad", ["Bash(npm install left-pad)"]],
    ["git push --receive-pack=./x origin", ["Bash(git push --receive-pack=./x origin)"]],
    ["git push; git push --force", ["Bash(git push *)"]],
    [
      "make a; make b; make c; make d; make e; make f",
      ["Bash(make a; make b; make c; make d; make e; make f)"],
    ],
    ["make all > notes.txt", ["Bash(make all)", "Edit(./**)"]],
    ["make all > src/notes.txt", ["Bash(make all)", "Edit(src/**)"]],
    [
      `make all > ${join(root, "elsewhere", "x")}`,
      ["Bash(make all)", `Edit(/${join(root, "elsewhere")}/**)`],
    ],
    ["cd /tmp && make all", ["Bash(cd /tmp && make all)"]],
  ])("%j: %j", async (command, expected) => {
    expect(await suggest(bash(command))).toEqual(expected);
  });

  it.each([
    ["a command that is not understood", "eval $X"],
    ["a command whose name is not known", "$TOOL x"],
    ["a file that steers the system", "make all > .git/hooks/pre-commit"],
    ["what only reads and needs none", "ls"],
  ])("suggests none for %s", async (_, command) => {
    expect(await suggest(bash(command))).toEqual([]);
  });

  it.each([
    ["git push origin main", "git push --receive-pack='sh -c id' origin main"],
    ["git push origin main", "git push --exec=./x origin main"],
    ["git push origin main", "git -c core.sshCommand=./x push origin main"],
    ["git push origin main", "GIT_SSH_COMMAND=./x git push origin main"],
    ["git push origin main", "git push origin main > /etc/x"],
    ["git push origin main", "git push origin main; id > x"],
    ["git push origin main", "git push ext::./x main"],
    ["git add a", "git -c alias.add='!id' add a"],
    ["git commit -m x", 'git commit -m "$(touch x)"'],
    ["git tag v1", "git -c gpg.program=./x tag -s v1"],
    ["git commit -m x", "git pull"],
    ["npm run build", "npm run deploy"],
    ["npm run build", "npm run build && curl x | sh"],
    ["npm test", "NODE_OPTIONS=--require=./x npm test"],
    ["python3 a.py", "python3 -c 'import os'"],
    ["node a.js", "node -e 1"],
  ])("what is suggested for %j does not allow %j", async (asked, other) => {
    const rules = await suggest(bash(asked));
    expect(rules.length).toBeGreaterThan(0);
    expect(await decisionWith(rules, bash(asked))).toBe("allow");
    expect(await decisionWith(rules, bash(other))).not.toBe("allow");
  });
});

describe("[PRM-5, PRM-8] the rule that allows exactly one call", () => {
  const exactly = async (call: CallToJudge, policy: Partial<PermissionPolicy> = {}) =>
    suggestRules(await requestOf(call), { ...withRules([]), ...policy }, { anchor: work, exact: true });

  it.each([
    ["npm test", ["Bash(npm test)"]],
    ["git push origin main", ["Bash(git push origin main)"]],
    ["ls && npm run build 2>&1 | tail -5", ["Bash(npm run build)"]],
    [`cat ${join(home, "notes", "a.md")}`, ["Read(~/notes/a.md)"]],
    ["npm test > report.txt", ["Bash(npm test)", "Edit(./report.txt)"]],
  ])("%s: %j", async (command, rules) => {
    expect(await exactly(bash(command))).toEqual(rules);
    expect(await decisionWith(rules, bash(command))).toBe("allow");
  });

  it.each<[string, string, Partial<PermissionPolicy>]>([
    ["a mode that only reads", "npm test", { mode: "plan" }],
    ["a file that steers the system", "npm test > .git/config", {}],
    ["a command that is not understood", "eval $X", {}],
  ])("there is none for %s", async (_, command, policy) => {
    expect(await exactly(bash(command), policy)).toEqual([]);
  });

  it("also where nothing is asked", async () => {
    expect(await exactly(bash("npm test"), { mode: "dontAsk" })).toEqual(["Bash(npm test)"]);
    const read = { tool: "Read", effect: "read", input: { file_path: join(root, "other", "b.ts") } };
    expect(await exactly(read)).toEqual([`Read(/${join(root, "other", "b.ts")})`]);
  });
});

describe("rules for files, hosts and servers", () => {
  const write = (path: string): CallToJudge => ({
    tool: "Write",
    effect: "edit",
    input: { file_path: path, content: "" },
  });
  const read = (path: string): CallToJudge => ({ tool: "Read", effect: "read", input: { file_path: path } });

  it("name the folder of a file, for editing or for reading", async () => {
    expect(await suggest(write(join(work, "src", "a.ts")))).toEqual(["Edit(src/**)"]);
    expect(await suggest(read(join(root, "other", "b.ts")))).toEqual([`Read(/${join(root, "other")}/**)`]);
  });

  it("name a file alone that steers programs, and one in the working directory by its place", async () => {
    expect(await suggest(write(join(work, "package.json")))).toEqual(["Edit(./package.json)"]);
    expect(await suggest(write(join(work, "packages", "a", "Makefile")))).toEqual([
      "Edit(packages/a/Makefile)",
    ]);
    expect(await decisionWith(["Edit(./package.json)"], write(join(work, "src", "package.json")))).toBe(
      "ask",
    );
  });

  it("name the file alone where its folder holds a home", async () => {
    expect(await suggest(read(join(home, "notes.txt")))).toEqual([`Read(/${join(home, "notes.txt")})`]);
    expect(await suggest(read(join(root, "x.txt")))).toEqual([`Read(/${join(root, "x.txt")})`]);
  });

  it("are none where a path has signs that mean something in a rule, and for files that always ask", async () => {
    expect(await suggest(read(join(root, "o*", "b.ts")))).toEqual([]);
    expect(await suggest(write(join(work, ".claude", "settings.json")))).toEqual([]);
    expect(await suggest(write(join(work, ".bashrc")))).toEqual([]);
  });

  it("name the host of an address, and one tool of a server", async () => {
    const fetch = { tool: "WebFetch", effect: "network", input: { url: "https://Docs.Example.com/a?b" } };
    expect(await suggest(fetch)).toEqual(["WebFetch(domain:docs.example.com)"]);
    expect(await suggest({ tool: "mcp__git__log", effect: "execute", input: {} })).toEqual(["mcp__git__log"]);
  });
});
