import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { decide, type PermissionPolicy, type PermissionRequest } from "./decide.ts";
import { gatherCallFacts } from "./gather-call-facts.ts";

const open: PermissionPolicy = {
  mode: "bypassPermissions",
  allow: [],
  ask: [],
  deny: [],
  workingDirectories: ["/p"],
  home: "/h",
};

function withDeny(deny: string): PermissionPolicy {
  return { ...open, toolScopes: [{ anchor: "/p", tools: [{ name: "Read", deny: [deny] }] }] };
}

const read = (path: string): PermissionRequest => ({
  tool: "Read",
  effect: "read",
  paths: [path],
  input: {},
});

test.each([
  ["*", "/p/deep/a.ts", "deny"],
  ["**", "/etc/passwd", "deny"],
  [".env", "/p/sub/.env", "deny"],
  [".env", "/p/a.ts", "allow"],
])("[TLS-3] a definition that excludes Read(%s) decides about %s: %s", (deny, path, expected) => {
  expect(decide(read(path), withDeny(deny)).type).toBe(expected);
});

test("[TLS-3] a tool that the definition does not have is refused, whatever the mode", () => {
  const policy = { ...open, toolScopes: [{ anchor: "/p", tools: [{ name: "Grep" }] }] };
  expect(decide(read("/p/a.ts"), policy).type).toBe("deny");
});

async function judge(command: string, directory = "/p") {
  const policy = { ...open, workingDirectories: [directory] };
  const call = { tool: "Bash", effect: "execute", input: { command } };
  return decide(await gatherCallFacts(call, { policy, directory }), policy).type;
}

describe("[PRM-1] what removes a home, a project or a folder of the system asks in every mode", () => {
  test.each([
    "rm -rf $(pwd)",
    "rm -rf `pwd`",
    'x=$(pwd); rm -rf "$x"',
    "rm -rf {src,..}",
    'rm -rf "$DIR"',
    "rm $FLAGS",
    "ls -A | xargs -I{} rm -rf {}",
    "ls | xargs rm",
    'ls | while read f; do rm -rf "$f"; done',
    'cd "$X"; rm -rf build',
    "bash -c 'rm -rf $(pwd)'",
    'd=$(mktemp -d); rm -rf "$d"/*',
    "rsync -a --delete d/ ~/",
    "rsync -a --delete-after d/ .",
    "tar cf x.tar --remove-files ~",
    "zip -rm x.zip .",
    "shred -u ~",
    "find ~ -type f -exec shred {} \\;",
    "find ~ -name '*.log' -exec rm {} +",
    "find . -exec rm -rf {} +",
    "find . -type f -exec rm {} +",
    "find . -name '*' -exec rm -rf {} +",
    "find . ! -name x -exec rm -rf {} +",
    "find . -type f -delete",
    "trash ~",
    "chmod -R 000 ~",
    "chown -R nobody /",
    'chmod -R 000 "$X"',
    "git -C ~ clean -fdx",
    "cd ~ && git clean -fdx",
    'git -C "$X" clean -fdx',
    "dd if=/dev/zero of=/dev/sda",
    "echo x > /dev/sda",
    "cp x /dev/nvme0n1",
    "mkfs.ext4 /dev/sda1",
    "wipefs -a $DISK",
    "zpool destroy tank",
  ])("%s", async (command) => {
    expect(await judge(command)).toBe("ask");
  });

  test.each([
    "rm -rf build",
    'x=build; rm -rf "$x"',
    "for i in 1 2; do rm -rf out/$i; done",
    'rm -f "$tmp"',
    'd=$(mktemp -d); ls; rm -rf "$d"',
    'rm -rf "$PWD/build"',
    'mv "$a" "$b"',
    "rsync -a --delete src/ out/",
    "rsync -a src/ ~/backup",
    "tar cf x.tar --remove-files out",
    "shred -u a.txt",
    "find . -name '*.pyc' -exec rm {} +",
    "find . -name node_modules -type d -exec rm -rf {} +",
    "find . -name '*.pyc' -delete",
    "chmod -R 755 .",
    "chown -R me src",
    "git clean -fdx",
    "dd if=/dev/zero of=disk.img count=1",
    "mkfs.ext4 disk.img",
    "echo x > /dev/null",
  ])("but not %s", async (command) => {
    expect(await judge(command)).toBe("allow");
  });

  test("removing every folder of the project by a file pattern", async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "retinue-guard-")));
    try {
      for (const name of ["a", "b"]) mkdirSync(join(folder, name));
      writeFileSync(join(folder, "c.txt"), "");
      expect(await judge('for d in */; do rm -rf "$d"; done', folder)).toBe("ask");
      expect(await judge("rm -rf */", folder)).toBe("ask");
      expect(await judge("rm -rf a*/", folder)).toBe("allow");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("[LIM-7] no mode lets a command of an agent start a session that continues beyond the limits of its own", () => {
  test.each([
    'retinue --bg "go on"',
    "retinue --model haiku --background go",
    "npx retinue run --bg go",
    "node ./bin/retinue.js -p x --bg",
    "cd /p && retinue go --bg &",
    "bash -c 'retinue --bg go'",
    'retinue "--bg" go',
    "retinue --b\\g go",
    "xargs -a list retinue --bg",
    "env -i retinue --bg go",
  ])("%s", async (command) => {
    expect(await judge(command)).toBe("deny");
  });

  test.each([
    "retinue -p go",
    "retinue agents --json",
    "cd retinue && tool --bg",
    "grep -rn retinue-bg .",
  ])("%s is no such command", async (command) => {
    expect(await judge(command)).not.toBe("deny");
  });
});
