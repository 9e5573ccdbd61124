import { execFile } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decide, type PermissionPolicy } from "./decide.ts";
import { gatherCallFacts } from "./gather-call-facts.ts";
import { parseRule, type RuleList } from "./rules/parse-rule.ts";

let root = "";
let project = "";

/**
 * `feature` changes src, `evil` has files that steer what runs by itself, `plain` changes neither; `moved` holds the
 * texts of .vscode in another folder, with one more file beside them that a merge brings to .vscode.
 */
const setup = `
set -e
git init -q -b main p && cd p
git config user.email a@example.com && git config user.name a
git remote add origin https://example.invalid/p.git && git remote add mirror ../q
mkdir -p src/sub docs .vscode
echo 1 > src/a.ts; echo 2 > src/b.ts; echo 3 > src/sub/c.ts; echo x > docs/n.md; echo x > names.txt
seq 1 30 > .vscode/one.json; seq 40 70 > .vscode/two.json; printf '.env\\n' > .gitignore
git add . && git commit -qm one
git branch side && git branch local
git checkout -q -b feature && echo 9 > src/a.ts && git commit -qam feature
git checkout -q -b evil main && mkdir .claude && echo '{}' > .claude/settings.json && echo '{}' > .mcp.json
git add -f . && git commit -qm evil
git checkout -q -b plain main && echo y > docs/n.md && git commit -qam plain
git checkout -q --orphan moved main && git mv .vscode d && git commit -qm moved && echo '{}' > d/tasks.json && git add d && git commit -qm more
git checkout -q -b link main && ln -s .vscode l && git add l && git commit -qm link
git checkout -q side && git checkout -q main && echo z >> docs/n.md && git stash -q && echo z >> src/a.ts && git stash -q
echo edited >> src/b.ts; echo KEY=1 > .env; echo loose > src/loose.ts; echo loose > loose.txt; echo loose > .vscode/local.json
for f in src/a.ts:src .mcp.json:protected docs/n.md:docs; do
  printf -- '--- /dev/null\\n+++ b/%s\\n@@ -0,0 +1 @@\\n+x\\n' "\${f%%:*}.new" > "docs/\${f##*:}.patch"
done
sed -i 's/.mcp.json.new/.mcp.json/' docs/protected.patch
printf 'diff --git a/src/a.ts b/docs/a.ts\\nsimilarity index 100%%\\nrename from src/a.ts\\nrename to docs/a.ts\\n' > docs/rename.patch
`;

beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "retinue-git-files-")));
  project = join(root, "p");
  const env = { ...process.env, HOME: root, GIT_CONFIG_NOSYSTEM: "1" };
  await promisify(execFile)("bash", ["-c", setup], { cwd: root, env });
});

afterAll(() => rm(root, { recursive: true, force: true }));

function rules(list: RuleList, texts: readonly string[]) {
  return texts.map((text) => {
    const reading = parseRule(text, { list });
    if (reading.type === "invalid") throw new Error(reading.reason);
    return { rule: reading.rule, anchor: project };
  });
}

async function judge(
  command: string,
  {
    allow = ["Bash(git:*)"],
    deny = [],
    trusted = true,
  }: { allow?: string[]; deny?: string[]; trusted?: boolean } = {},
) {
  const policy: PermissionPolicy = {
    mode: "default",
    allow: rules("allow", allow),
    ask: [],
    deny: rules("deny", deny),
    workingDirectories: [project],
    home: root,
    trusted,
  };
  const call = { tool: "Bash", effect: "execute", input: { command } };
  return decide(await gatherCallFacts(call, { policy, directory: project }), policy).type;
}

describe("[PRM-9] files that git writes without naming them", () => {
  test.each([
    "git checkout feature -- src/a.ts",
    "git checkout feature -- src",
    "git checkout feature -- ':/src'",
    "git checkout feature -- '*.ts'",
    "git checkout feature src",
    "git checkout feature",
    "git switch feature",
    "git checkout -b x feature",
    "git switch -c x feature",
    "git switch --orphan x",
    "git restore --source=feature -- src",
    "git restore src/b.ts",
    "git restore .",
    "git checkout .",
    "git checkout src/b.ts",
    "git checkout -f",
    "git reset --hard",
    "git reset --hard feature",
    "git merge feature",
    "git merge --squash feature",
    "git cherry-pick feature",
    "git revert feature",
    "git rebase feature",
    "git stash",
    "git stash push -- src",
    "git stash pop",
    "git stash apply stash@{0}",
    "git apply docs/src.patch",
    "git apply --cached docs/src.patch",
    "git apply docs/rename.patch",
    "git apply -R docs/rename.patch",
    "git clean -fd",
    "git clean -fd .",
    "git rm -r .",
    "git rm '*.ts'",
    "git mv names.txt src",
    "git checkout main && git switch feature",
  ])("where Edit(src/**) is denied, %s", async (command) => {
    expect(await judge(command, { deny: ["Edit(src/**)"] })).toBe("deny");
  });

  test.each([
    "git checkout evil -- .claude",
    "git checkout evil .mcp.json",
    "git checkout evil -- .",
    "git checkout evil",
    "git switch evil",
    "git switch -c x evil",
    "git restore --source=evil .mcp.json",
    "git restore --source=evil .",
    "git merge evil",
    "git cherry-pick evil",
    "git rebase evil",
    "git reset --hard evil",
    "git cherry-pick moved",
    "git apply docs/protected.patch",
    "git stash -u",
    "git stash push -a",
    "git clean -fd",
    "git clean -fdx",
    "git mv docs/protected.patch .mcp.json",
  ])("protected files are asked about: %s", async (command) => {
    expect(await judge(command)).toBe("ask");
    expect(await judge(command, { allow: [`Bash(${command})`] })).toBe("ask");
  });

  test.each([
    "git apply < docs/docs.patch",
    "git apply",
    "git am docs/docs.patch",
    "git pull . plain",
    "git pull mirror main",
    "git pull https://example.invalid/other.git main",
    "git pull",
    "git bisect start",
    'git switch "$(cat docs/n.md)"',
    "git branch -f x plain && git switch x",
    "git fetch && git merge plain",
    "git reset plain && git checkout .",
    "echo x > docs/docs.patch; git apply docs/docs.patch",
    "git switch nowhere",
    "git remote set-url origin docs",
    "git merge -X subtree=docs plain",
    "git merge -s subtree plain",
  ])("what git cannot list before is asked about: %s", async (command) => {
    expect(await judge(command)).toBe("ask");
  });

  test.each([
    "git checkout -b x",
    "git switch -c x",
    "git switch side",
    "git switch plain",
    "git checkout plain",
    "git checkout plain -- docs",
    "git checkout docs/n.md",
    "git checkout -",
    "git merge plain",
    "git rebase side",
    "git cherry-pick plain",
    "git reset --soft HEAD",
    "git reset src/b.ts",
    "git restore --staged src/b.ts",
    "git stash list",
    "git stash drop",
    "git stash apply stash@{1}",
    "git apply docs/docs.patch",
    "git apply --check docs/src.patch",
    "git add . && git commit -m x",
    "git switch side && git switch plain",
    "git clean -n",
  ])("what touches nothing that rules or guards speak of is allowed: %s", async (command) => {
    expect(await judge(command)).toBe("allow");
    expect(await judge(command, { deny: ["Edit(src/sub/**)"] })).toBe("allow");
  });

  test("a rule for the whole command covers files that git cannot list, where no rule forbids any", async () => {
    expect(await judge("git pull", { allow: ["Bash(git pull)"] })).toBe("allow");
    expect(await judge("git pull", { allow: ["Bash(git pull)"], deny: ["Edit(src/**)"] })).toBe("ask");
    expect(await judge("git pull origin main")).toBe("allow");
    expect(await judge("git pull origin main", { deny: ["Edit(src/**)"] })).toBe("ask");
    expect(await judge("git switch side", { trusted: false })).toBe("ask");
    expect(await judge("git switch -c x", { trusted: false })).toBe("allow");
  });

  test.each([
    ["git add .env", "deny"],
    ["git add -f .env", "deny"],
    ["git add -f .", "deny"],
    ["git commit .env -m x", "deny"],
    ["git add .", "allow"],
    ["git add -A && git commit -m x", "allow"],
    ["git commit -am x", "allow"],
  ])("where Read(.env) is denied, %s: %s", async (command, expected) => {
    expect(await judge(command, { deny: ["Read(.env)"] })).toBe(expected);
  });

  test("a file that git replaces may be a link then, for other commands of the call", async () => {
    const allow = ["Bash(git:*)", "Edit"];
    expect(await judge("git checkout link; echo x > l/tasks.json", { allow })).toBe("ask");
    expect(await judge("git checkout link; echo x > docs/x", { allow })).toBe("allow");
    expect(await judge("git checkout link && cat names.txt")).toBe("allow");
  });

  test.each([
    "git log -p --full-diff src",
    "git whatchanged -p --full-diff -- src",
    "git tag t HEAD:.env",
    "git branch b HEAD:.env",
    "git for-each-ref --format='%(raw)'",
    "git tag -l --format='%(raw)'",
    "git config -f .env -l",
    "git config --blob HEAD:.env -l",
    "git merge-file -p .env names.txt names.txt",
    "git interpret-trailers .env",
    "git update-ref refs/x HEAD:.env",
    "git replace HEAD:names.txt HEAD:.env",
    "git checkout-index --temp .env",
    "git fast-export HEAD",
    "git reflog -p",
    "git merge-tree HEAD HEAD~1",
  ])("where Read(.env) is denied, what may show it is not allowed: %s", async (command) => {
    for (const allow of [[], ["Bash(git:*)"], ["Bash"]])
      expect(await judge(command, { allow, deny: ["Read(.env)"] })).not.toBe("allow");
  });

  test.each([
    "git log -p -1 src",
    "git push origin HEAD:main",
    "git commit -m 'docs: .env'",
    "git tag -l --format='%(contents)'",
    "git reflog",
  ])("where Read(.env) is denied, what cannot show it is allowed: %s", async (command) => {
    expect(await judge(command, { deny: ["Read(.env)"] })).toBe("allow");
  });
});
