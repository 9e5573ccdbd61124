import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PermissionPolicy } from "./decide.ts";
import { gatherCallFacts } from "./gather-call-facts.ts";
import { type CallSeal, findUnsealed, sealCall } from "./seal-call.ts";

let root = "";
let count = 0;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-seal-")));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function seal(command: string, project: string): Promise<CallSeal> {
  const policy: PermissionPolicy = {
    mode: "default",
    allow: [],
    ask: [],
    deny: [],
    workingDirectories: [project],
    home: root,
    trusted: true,
  };
  const call = { tool: "Bash", effect: "execute", input: { command } };
  const request = await gatherCallFacts(call, { policy, directory: project });
  return sealCall(request, { directory: project, home: root });
}

/** What is new in the seal of a command after a file was changed. */
async function changed(command: string, file: string): Promise<string | undefined> {
  count += 1;
  const project = join(root, `p${count}`);
  mkdirSync(dirname(join(project, file)), { recursive: true });
  writeFileSync(join(project, file), "one\n", { mode: 0o755 });
  const before = await seal(command, project);
  writeFileSync(join(project, file), "two\n");
  return findUnsealed(await seal(command, project), before);
}

const obeyed: readonly (readonly [command: string, file: string])[] = [
  ["node x.js", "x.js"],
  ["node -r ./x.js -e 1", "x.js"],
  ["node -e 'require(\"./x.js\")'", "x.js"],
  ["bash < x.sh", "x.sh"],
  ["cat x.sh | bash", "x.sh"],
  ["bash <(cat x.sh)", "x.sh"],
  ['eval "$(cat x.sh)"', "x.sh"],
  ["python3 < x.py", "x.py"],
  ["python3 -m pkg.sub", "pkg/sub.py"],
  ["python3 dir", "dir/__main__.py"],
  ["$PWD/x.sh", "x.sh"],
  ["~+/x.sh", "x.sh"],
  ["alias a=./x.sh; a", "x.sh"],
  ["f() { ./x.sh; }; f", "x.sh"],
  ["BASH_ENV=x.sh bash -c ls", "x.sh"],
  ["NODE_OPTIONS=--require=./x.js npm test", "x.js"],
  ["cp x.sh y.sh && ./y.sh", "x.sh"],
  ["cd sub && ./x.sh", "sub/x.sh"],
  ["git -c core.pager=./x.sh log", "x.sh"],
  ["git apply x.patch", "x.patch"],
  ["patch -p1 < x.patch", "x.patch"],
  ["awk -fx.awk f", "x.awk"],
  ["make", "Makefile"],
  ["make -fx.mk", "x.mk"],
  ["make -C sub", "sub/Makefile"],
  ["npm test", "package.json"],
  ["npm -w packages/api test", "packages/api/package.json"],
  ["npm install ./pkg", "pkg/package.json"],
  ["npx vite build", "vite.config.ts"],
  ["pytest", "conftest.py"],
  ["pip install .", "setup.py"],
  ["pip install -rrequirements.txt", "requirements.txt"],
  ["docker build sub", "sub/Dockerfile"],
  ["docker compose up", "compose.yml"],
  ["terraform -chdir=sub apply", "sub/main.tf"],
  ["go run ./cmd/app", "cmd/app/main.go"],
  ["an-unknown-runner", "tasks.py"],
];

describe("an answer is bound to the contents of the files that a command runs or obeys", () => {
  test.each(obeyed)("%s [PRM-10]", async (command, file) => {
    expect(await changed(command, file)).toContain(`${file} was changed`);
  });

  test.each([
    ["cp data.csv copy.csv", "data.csv"],
    ["mv package.json p.json", "package.json"],
    ["git add src/a.ts", "src/a.ts"],
    ["npm test", "debug.log"],
    ["npm test", "src/a.ts"],
  ])("not to data: %s [PRM-10]", async (command, file) => {
    expect(await changed(command, file)).toBeUndefined();
  });

  test("also behind hundreds of other files [PRM-10]", async () => {
    const project = join(root, "many");
    mkdirSync(project, { recursive: true });
    const others = Array.from({ length: 300 }, (_, at) => `f${at}.txt`);
    for (const name of [...others, "x.sh"]) writeFileSync(join(project, name), "one\n");
    const command = `wc ${others.join(" ")}; bash x.sh`;
    const before = await seal(command, project);
    writeFileSync(join(project, "x.sh"), "two, and longer\n");
    expect(findUnsealed(await seal(command, project), before)).toContain("x.sh was changed");
  });
});
