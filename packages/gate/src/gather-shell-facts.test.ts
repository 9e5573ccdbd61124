import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decide, type PermissionPolicy } from "./decide.ts";
import { gatherCallFacts } from "./gather-call-facts.ts";
import { parseRule, type RuleList } from "./rules/parse-rule.ts";

let home = "";
let project = "";
let added = "";

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), "retinue-wiped-")));
  project = join(home, "p");
  added = join(home, "added");
  for (const folder of ["src", "docs"]) await mkdir(join(project, folder), { recursive: true });
  await mkdir(added);
  for (const file of ["src/a.ts", "list.txt", "../added/secret.txt"])
    await writeFile(join(project, file), "x\n");
});

afterAll(() => rm(home, { recursive: true, force: true }));

async function judge(
  call: string | { readonly tool: string; readonly effect: string; readonly input: Record<string, unknown> },
  rules: Partial<Record<RuleList, readonly string[]>> = {},
  mode: PermissionPolicy["mode"] = "bypassPermissions",
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
    workingDirectories: [project, added],
    home,
    trusted: true,
  };
  const request =
    typeof call === "string" ? { tool: "Bash", effect: "execute", input: { command: call } } : call;
  return decide(await gatherCallFacts(request, { policy, directory: project }), policy).type;
}

describe("[PRM-1] what would take away a home, a project or a folder of the system is asked about in every mode", () => {
  test.each([
    "rm -rf $(pwd)",
    'rm -rf "$(pwd)"',
    "rm -rf `pwd`",
    'rm -rf "$(git rev-parse --show-toplevel)"',
    "rm -rf {src,..}",
    'for d in */; do rm -rf "$d"; done',
    "ls -A | xargs -I{} rm -rf {}",
    "rsync -a --delete src/ ~/",
    "rsync -a --delete-after src/ .",
    "tar cf /tmp/x.tar --remove-files ~",
    "tar cf /tmp/x.tar --remove-files *",
    "zip -rm /tmp/x.zip .",
    "shred -u *",
    "find ~ -type f -exec shred -u {} ;",
    "find ~ -exec rm {} +",
    "chmod -R 000 ~",
    "chown -R nobody /",
    "git -C ~ clean -fdx",
    "dd if=/dev/zero of=/dev/sda",
    "cat list.txt > /dev/nvme0n1",
    "mkfs.ext4 /dev/sdb1",
  ])("%s", async (command) => {
    expect(await judge(command)).toBe("ask");
  });

  test.each([
    "rm -rf src",
    'd=$(mktemp -d); rm -rf "$d"',
    "rsync -a --delete src/ docs/",
    "tar cf x.tar --remove-files docs",
    "shred -u list.txt",
    "chmod -R u+w .",
    "chown -R me src",
    "git clean -fdx",
    "find . -name '*.log' -delete",
  ])("what stays below the work is not: %s", async (command) => {
    expect(await judge(command)).toBe("allow");
  });
});

describe("[PRM-8] rules with names, and files that lists name", () => {
  test("a relative denial holds in every working directory, a relative grant in the first", async () => {
    const deny = { deny: ["Read(secret.txt)"] };
    const path = join(added, "secret.txt");
    expect(await judge({ tool: "Read", effect: "read", input: { file_path: path } }, deny)).toBe("deny");
    expect(await judge("cat ../added/secret.txt", deny)).toBe("deny");
    expect(await judge("grep -r x ../added/secret.txt", deny)).toBe("deny");
    const write = { tool: "Write", effect: "edit", input: { file_path: join(added, "src/x"), content: "" } };
    expect(await judge(write, { allow: ["Edit(src/**)"] }, "default")).toBe("ask");
  });

  test("the files in a list of tar are not known", async () => {
    const rules = { allow: ["Bash(tar:*)"], deny: ["Read(.env)"] };
    expect(await judge("tar cf - --files-from=list.txt", rules, "default")).toBe("ask");
    expect(await judge("tar cf - -T list.txt", rules)).toBe("ask");
    expect(await judge("tar cf x.tar src", rules, "default")).toBe("allow");
  });

  test.each([
    ["npx eslint:*", "npx eslint -c ./x.js ."],
    ["npx eslint:*", "npx eslint --plugin ./x src"],
    ["npx eslint:*", "npx eslint ../other"],
    ["npx jest:*", "npx jest --globalSetup ./x.js"],
    ["npx vitest:*", "npx vitest run --config ./x.ts"],
    ["npx tsc:*", "npx tsc @args"],
    ["npx prettier:*", "npx --yes prettier --plugin=./x.js src"],
    ["python3 -m pytest:*", "python3 -m pytest -p evil"],
    ["python3 -m pytest:*", "python3 -m pytest --rootdir=.."],
    ["pnpm exec eslint:*", "pnpm exec eslint -c ./x.js ."],
    ["yarn jest:*", "yarn jest --globalSetup ./x.js"],
    ["pnpm test:*", "pnpm test --config.script-shell=./x"],
    ["pytest:*", "pytest @args"],
    ["mvn test:*", "mvn test org.example:plugin:1:run"],
    ["openssl:*", "openssl engine ./x.so"],
    ["curl:*", "curl -w '%output{x}y' https://example.com"],
  ])("Bash(%s) does not cover %s", async (rule, command) => {
    expect(await judge(command, { allow: [`Bash(${rule})`] }, "default")).toBe("ask");
  });

  test.each([
    ["npx eslint:*", "npx eslint src --quiet"],
    ["npx eslint -c:*", "npx eslint -c x.js src"],
    ["npx:*", "npx eslint -c x.js src"],
    ["npx vitest run:*", "npx vitest run src/a.test.ts -t name"],
    ["npx tsc:*", "npx tsc --noEmit"],
    ["python3 -m pytest:*", "python3 -m pytest -x tests/test_a.py"],
    ["pnpm exec eslint:*", "pnpm exec eslint src"],
    ["yarn jest:*", "yarn jest src"],
    ["mvn test:*", "mvn test -q -Dtest=Foo"],
    ["mvn dependency:tree:*", "mvn dependency:tree"],
  ])("Bash(%s) covers %s", async (rule, command) => {
    expect(await judge(command, { allow: [`Bash(${rule})`] }, "default")).toBe("allow");
  });
});

test("[PRM-1] a search says that it left files out only where there are any", async () => {
  const notes = async (command: string) => {
    const rule = parseRule("Read(.env)", { list: "deny" });
    if (rule.type === "invalid") throw new Error(rule.reason);
    const policy: PermissionPolicy = {
      mode: "default",
      allow: [],
      ask: [],
      deny: [{ rule: rule.rule, anchor: project }],
      workingDirectories: [project],
      home,
      trusted: true,
    };
    const request = { tool: "Bash", effect: "execute", input: { command } };
    return decide(await gatherCallFacts(request, { policy, directory: project }), policy).run?.notes;
  };
  expect(await notes("grep -rn x src")).toEqual([]);
  await mkdir(join(project, "docs/deep"));
  await writeFile(join(project, "docs/deep/.env"), "x\n");
  expect(await notes("grep -rn x docs")).toEqual([
    "Files that rules keep from being read were left out of the search: .env.",
  ]);
});
