import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGate } from "../../create-gate.ts";
import { parsePolicy } from "../../parse-policy.ts";

let root = "";

beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-changeable-")));
  for (const folder of ["src", "conf", "out"]) mkdirSync(join(root, folder));
  for (const file of ["secret", "notes.txt", "src/a.ts", "conf/key.txt"])
    writeFileSync(join(root, file), "x\n");
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

async function judge(command: string, allow: readonly string[] = ["Bash(*)"]): Promise<string> {
  const defaultMode = allow.length === 0 ? "bypassPermissions" : "default";
  const settings = { allow, deny: ["Edit(secret)", "Edit(conf/**)"], defaultMode };
  const { policy } = parsePolicy(settings, { directory: root, home: join(root, "home"), trusted: true });
  const { type } = await createGate(policy).decide({ tool: "Bash", input: { command } });
  return type;
}

describe("[PRM-9] a program that no table knows does not get a file that may not be edited without a question", () => {
  test.each([
    "dos2unix secret",
    "dos2unix -- ./secret",
    "dos2unix src/../secret",
    'dos2unix "$PWD/secret"',
    "dos2unix sec*",
    "dos2unix conf/*",
    "dos2unix {secret,notes.txt}",
    "dos2unix $'\\x73ecret'",
    "dos2unix $(ls)",
    'dos2unix "$X"',
    'for f in *; do dos2unix "$f"; done',
    "cd conf && dos2unix key.txt",
    "ls | xargs dos2unix",
    "find . -type f -exec dos2unix {} +",
    "find . -type f | xargs dos2unix",
    "nohup dos2unix secret",
    "exec -a other dos2unix secret",
    "eval dos2unix secret",
    "dos2unix /proc/self/cwd/secret",
    "black .",
    "black conf",
    "gofmt -w ./...",
    "mmv 'sec*' other",
    "vim -es -c ':e sec*' -c '1d' -c 'wq'",
    "vim -es -c '1d' -c 'wq' secret",
    "ex -sc '1d|x' secret",
    "ed secret",
    "sqlite3 secret 'create table t(a)'",
    "script -c ls secret",
    "ar r secret notes.txt",
    'docker run -v "$PWD/secret:/x" alpine touch /x',
    "node src/a.js conf/key.txt",
    "base64 notes.txt -o secret",
    "awk -f x.awk secret",
    "prettier -w .",
    "eslint --fix .",
    "npx prettier --write .",
    "pnpm exec prettier --write .",
  ])("%s", async (command) => {
    expect(await judge(command)).toBe("ask");
    expect(await judge(command, [])).toBe("ask");
  });

  test.each([
    "dos2unix notes.txt",
    "dos2unix src/a.ts",
    "black src",
    "mmv 'src/*.ts' out",
    "prettier --write src",
    "eslint .",
    "black --check .",
    "python3 -m pytest conf",
    "python3 conf/x.py",
    "bash conf/run.sh",
    "npx vitest run conf/x",
    "bundle exec rspec conf/x_spec.rb",
    "npm test -- conf/key.txt",
    "docker build -t app:$(git rev-parse --short HEAD) .",
    "docker ps -q | xargs docker stop",
    "kill $(lsof -ti:3000)",
    "make -j$(nproc)",
    "find . -name '*.txt' -exec grep -l x {} \\;",
    "awk '{ print $1 }' secret",
  ])("%s runs: it changes none, or is not given one", async (command) => {
    expect(await judge(command)).toBe("allow");
  });

  test("a rule that names the program says that it may", async () => {
    expect(await judge("dos2unix secret", ["Bash(dos2unix *)"])).toBe("allow");
    expect(await judge("dos2unix secret", ["Bash(dos2unix secret)"])).toBe("allow");
    expect(await judge("gofmt -o secret", ["Bash(gofmt *)"])).toBe("ask");
  });
});

describe("[PRM-9] what curl names by an address or leaves to the server is an edit", () => {
  test.each([
    "curl -O http://example.com/secret",
    "curl -sSLO 'http://example.com/secret?x=1'",
    "curl -OJ http://example.com/",
    "curl -K notes.txt",
    "curl -O --output-dir conf http://example.com/x",
  ])("%s", async (command) => {
    expect(await judge(command)).toBe("deny");
  });

  test("another name is none", async () => {
    expect(await judge("curl -O http://example.com/other")).toBe("allow");
  });
});

test("[PRM-9] `cp -t` writes the files that it brings, by their names", async () => {
  expect(await judge("cp -t . src/a.ts")).toBe("allow");
  writeFileSync(join(root, "out/secret"), "x\n");
  expect(await judge("cp -t . out/secret")).toBe("deny");
});
