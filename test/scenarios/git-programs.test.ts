import { execFileSync, spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readOnlyEnvironment } from "@retinue/gate/command-environment.ts";
import { type Decision, decide } from "@retinue/gate/decide.ts";
import { gatherCallFacts } from "@retinue/gate/gather-call-facts.ts";
import type { PermissionPolicy } from "@retinue/gate/permission-policy.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { rgPath } from "@vscode/ripgrep";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let root: string;
let project: string;
let home: string;
let sign: string;

function git(directory: string, ...words: string[]): void {
  const identity = [
    "-c",
    "user.name=Ada",
    "-c",
    "user.email=ada@example.org",
    "-c",
    "protocol.file.allow=always",
  ];
  const env = { PATH: process.env["PATH"], HOME: home, GIT_CONFIG_NOSYSTEM: "1" };
  execFileSync("git", [...identity, ...words], { cwd: directory, env, stdio: "pipe" });
}

function put(path: string, text: string, mode = 0o644): void {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, mode);
}

const rules = (texts: readonly string[], list: "allow" | "deny") =>
  texts.map((text) => {
    const reading = parseRule(text, { list });
    if (reading.type === "invalid") throw new Error(`${text}: ${reading.reason}`);
    return { rule: reading.rule, anchor: project };
  });

interface Setup {
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly mode?: PermissionPolicy["mode"];
  readonly searchPath?: string;
  readonly trusted?: boolean;
}

async function judge(tool: string, input: object, setup: Setup = {}): Promise<Decision> {
  const policy: PermissionPolicy = {
    mode: setup.mode ?? "default",
    allow: rules(setup.allow ?? [], "allow"),
    deny: rules(setup.deny ?? [], "deny"),
    ask: [],
    workingDirectories: [project],
    home,
    trusted: setup.trusted ?? true,
    platform: "linux",
  };
  const effect = tool === "Bash" ? "execute" : "edit";
  const call = { tool, effect, input };
  const { searchPath } = setup;
  return decide(await gatherCallFacts(call, { policy, directory: project, searchPath }), policy);
}

const bash = (command: string, setup?: Setup) => judge("Bash", { command }, setup);

/** Runs what was judged, as a command that only reads is run. */
function run({ run: judged }: Decision, path = process.env["PATH"]): string {
  const environment = { PATH: path, HOME: home };
  const env = readOnlyEnvironment(environment, { workingDirectories: [project] });
  const { stdout, stderr } = spawnSync("bash", ["--norc", "-fc", judged?.command ?? "false"], {
    cwd: project,
    env,
    encoding: "utf8",
  });
  return stdout + stderr;
}

beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-git-programs-")));
  project = join(root, "project");
  home = join(root, "home");
  sign = join(root, "ran");
  mkdirSync(home);
  git(root, "init", "-q", "-b", "main", project);
  put(join(project, "a.txt"), "a TODO\n");
  put(join(project, ".env"), "KEY=secret TODO\n");
  put(join(project, "deep/.env"), "KEY=deeper-secret TODO\n");
  put(join(project, "secrets/k.txt"), "vault-secret TODO\n");
  put(join(project, ".ignore"), "!.env\n");
  put(join(project, ".rgignore"), "!.env\n");
  git(project, "add", "a.txt");
  git(project, "commit", "-q", "-m", "one");
  git(project, "remote", "add", "origin", "https://host.invalid/x.git");
  git(project, "remote", "add", "mirror", "../mirror.git");
  git(project, "remote", "add", "sneaky", "https://host.invalid/y.git");
  git(project, "config", "remote.sneaky.pushurl", join(root, "mirror.git"));
  git(project, "remote", "add", "short", "gh:x");
  git(project, "remote", "add", "rewritten", "rw:x");
  git(project, "config", "url.https://github.invalid/.insteadOf", "gh:");
  git(project, "config", `url.${root}/.insteadOf`, "rw:");
  git(root, "init", "-q", "--bare", join(root, "mirror.git"));
  // A submodule whose own settings start a program when git looks into it.
  const inner = join(root, "inner");
  git(root, "init", "-q", "-b", "main", inner);
  put(join(inner, ".gitattributes"), "* filter=x\n");
  put(join(inner, "b.txt"), "a\n");
  git(inner, "add", "-A");
  git(inner, "commit", "-q", "-m", "one");
  git(project, "submodule", "--quiet", "add", inner, "sub");
  git(project, "config", "--file", ".gitmodules", "submodule.sub.ignore", "none");
  git(project, "config", "submodule.sub.ignore", "none");
  git(project, "config", "submodule.sub.url", "https://host.invalid/inner.git");
  git(project, "config", "--file", ".gitmodules", "submodule.sub.url", "https://host.invalid/inner.git");
  git(project, "commit", "-q", "-am", "sub");
  appendFileSync(join(project, ".git/modules/sub/config"), `[filter "x"]\n\tclean = touch '${sign}'; cat\n`);
  put(join(project, "sub/b.txt"), "b\n");
  put(join(project, "a.txt"), "b TODO\n");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("[PRM-9] git that only reads runs nothing of a repository or its submodules", () => {
  it.each([
    "git status",
    "git status -s --ignore-submodules=all",
    "git diff",
    "git diff --stat",
    "git diff-files",
    "git diff-files -p",
    "git diff-index HEAD",
    "git diff-index -p HEAD",
    "git diff HEAD",
    "git log -p -1",
    "git ls-files -m",
    "git blame a.txt",
    "git show HEAD",
  ])("%s", async (command) => {
    const decision = await bash(command);
    expect(decision, decision.reason).toMatchObject({ type: "allow", allowedBy: "read-only" });
    run(decision);
    expect(existsSync(sign)).toBe(false);
  });

  it.each([
    "git status --ignore-submodules=none",
    "git status --ignore-submodules=untracked",
    "git diff --ignore-submodules=none",
    "git diff-files --ignore-submodules=none",
    "git diff-index --ignore-submodules=untracked HEAD",
    "git status --ignore-sub=none",
    "git diff --submodule=diff",
    "git diff --ext-diff",
    "git diff --textconv",
    "git log --textconv -p",
    "git grep --recurse-submodules x",
    "git -C sub status",
    "cd sub && git status",
    "git --git-dir=.git/modules/sub status",
  ])("%s is asked about", async (command) => {
    expect((await bash(command)).type).toBe("ask");
  });

  it("in a folder that is not trusted every one is asked about", async () => {
    expect((await bash("git status", { trusted: false })).type).toBe("ask");
  });
});

describe("[PRM-9] repositories on this machine are reached only when a person says so", () => {
  const allow = [
    "Bash(git *)",
    "Bash(git push *)",
    "Bash(git fetch *)",
    "Bash(git clone *)",
    "Bash(git pull *)",
  ];

  it.each([
    "git push ../mirror.git main",
    "git push ./evil main",
    "git push /srv/evil.git main",
    "git push file:///srv/evil.git main",
    "git push FILE:///srv/evil.git main",
    "git push mirror main",
    "git push sneaky main",
    "git push rewritten main",
    "git push",
    "git push --all",
    "git fetch mirror",
    "git fetch --all",
    "git fetch ../mirror.git",
    "git fetch file://localhost/srv/x",
    "git fetch ssh://localhost/srv/x",
    "git fetch user@127.0.0.1:x",
    "git fetch --multiple origin mirror",
    "git pull mirror main",
    "git pull ../mirror.git main",
    "git ls-remote ../mirror.git",
    "git ls-remote .",
    "git clone ../mirror.git copy",
    "git clone mirror.git copy",
    "git clone file:///srv/x copy",
    "git remote update",
    "git push ext::sh% -c% id main",
    "git fetch --upload-pack=./x origin",
    "git push --receive-pack=./x origin main",
    "git push --exec ./x origin main",
    "git clone -u ./x https://host.invalid/x",
    "git clone --config core.fsmonitor=./x https://host.invalid/x",
    "git clone -c core.hooksPath=x https://host.invalid/x",
    "git clone --template=x https://host.invalid/x",
    "git -c remote.origin.url=../evil push origin main",
    "git submodule foreach id",
    "git submodule add ../mirror.git x",
    "git rebase --exec id main",
  ])("%s", async (command) => {
    expect((await bash(command, { allow })).type).toBe("ask");
    expect((await bash(command, { allow, mode: "acceptEdits" })).type).toBe("ask");
  });

  it.each([
    "git push origin main",
    "git push short main",
    "git push -u origin feature",
    "git push https://host.invalid/z.git main",
    "git push git@host.invalid:z.git main",
    "git fetch origin",
    "git pull origin main",
    "git clone https://host.invalid/z.git copy",
    "git ls-remote origin",
    "git rebase -i main",
    "git submodule update --init",
    "git submodule update --init --recursive",
  ])("other machines, and this repository, are a matter of rules: %s", async (command) => {
    const decision = await bash(command, { allow });
    expect(decision, decision.reason).toMatchObject({ type: "allow", allowedBy: "rule" });
    expect((await bash(command, { allow, deny: ["Read(.env)"] })).type).toBe("allow");
  });

  it("a rule without a star says yes to the repository that it names", async () => {
    const command = "git push ../mirror.git main";
    expect((await bash(command, { allow: [`Bash(${command})`] })).type).toBe("allow");
  });
});

describe("[PRM-9] a star stands for arguments, not for a program", () => {
  it.each([
    ["Bash(* --version)", "./evil --version"],
    ["Bash(* --version)", "evil --version"],
    ["Bash(* main)", "evil main"],
    ["Bash(git * main)", "git -c alias.x=!id x main"],
    ["Bash(git * main)", "git push --receive-pack=./x origin main"],
    ["Bash(git * main)", "git push ../mirror.git main"],
    ["Bash(git * main)", "git unknown main"],
    ["Bash(tool * main)", "tool --exec=id main"],
    ["Bash(tool * main)", "tool -x id main"],
    ["Bash(g*t main)", "gotit main"],
    ["Bash(./scripts/*)", "./scripts/../evil"],
    ["Bash(gh repo *)", "gh repo clone a/b -- --upload-pack=./x"],
    ["Bash(gh repo *)", "gh repo clone a/b -- -c core.fsmonitor=./x"],
    ["Bash(gh repo *)", "gh repo fork a/b --clone -- --config=core.hooksPath=x"],
    ["Bash(gh *)", "gh alias set x --shell id"],
    ["Bash(gh *)", "gh extension exec x"],
  ])("%s does not cover %s", async (rule, command) => {
    expect((await bash(command, { allow: [rule] })).type).toBe("ask");
  });

  it.each([
    ["Bash(git * main)", "git checkout main"],
    ["Bash(tool * main)", "tool build main"],
    ["Bash(gh repo *)", "gh repo clone a/b"],
    ["Bash(gh repo *)", "gh repo view a/b"],
  ])("%s covers %s", async (rule, command) => {
    expect((await bash(command, { allow: [rule] })).type).toBe("allow");
  });
});

describe("[PRM-9] hooks in a configured folder are protected like git's own", () => {
  it("they, and what lies beside them, are asked about when edits are accepted", async () => {
    git(project, "config", "core.hooksPath", "tools/hooks");
    try {
      const write = (path: string) =>
        judge("Write", { file_path: join(project, path), content: "" }, { mode: "acceptEdits" });
      expect((await write("tools/hooks/pre-commit")).type).toBe("ask");
      expect((await write("tools/hooks/lib/x.sh")).type).toBe("ask");
      expect((await write("tools/other.ts")).type).toBe("allow");
      for (const command of ["touch tools/hooks/pre-push", "cp a.txt tools/hooks/pre-push", "rm -r tools"])
        expect((await bash(command, { mode: "acceptEdits" })).type, command).toBe("ask");
    } finally {
      git(project, "config", "--unset", "core.hooksPath");
    }
  });
});

describe("[PRM-9, PRM-10] searches leave out what rules keep from being read, and say so", () => {
  const deny = ["Read(.env)", "Read(./secrets/**)"];
  const path = (): string => `${join(root, "bin")}:${process.env["PATH"]}`;

  beforeAll(() => {
    mkdirSync(join(root, "bin"), { recursive: true });
    copyFileSync(rgPath, join(root, "bin/rg"));
    chmodSync(join(root, "bin/rg"), 0o755);
  });

  it.each([
    "grep -r TODO .",
    "grep -rn --include=.env TODO .",
    "grep -r --include='*' TODO . --",
    "grep -r -e TODO -- .",
    "grep -r TODO",
    "grep -rh --exclude-dir=x TODO .",
    "grep --directories=recurse TODO .",
    "rg TODO",
    "rg --hidden TODO",
    "rg -uuu TODO",
    "rg -g .env TODO",
    "rg -g '.env' -g '**/.env' --hidden TODO .",
    "rg --iglob .ENV TODO",
    "rg --hidden --iglob '**/.env' TODO",
    "rg --type-add 'x:.env' -tx TODO",
    "rg --no-ignore --hidden TODO -- .",
    "rg --hidden -g 'secrets/**' TODO",
  ])("%s", async (command) => {
    const decision = await bash(command, { deny, searchPath: path() });
    expect(decision, decision.reason).toMatchObject({ type: "allow", allowedBy: "read-only" });
    expect(decision.run?.notes.join(" ")).toContain("left out of the search: .env, secrets");
    expect(run(decision, path())).not.toContain("secret TODO");
  });

  it.each([
    "grep TODO .env",
    "grep -r TODO . .env",
    "grep -r TODO secrets",
    "cd secrets && grep -r TODO .",
    "rg TODO .env",
    "rg TODO secrets",
    "rg --ignore-file .env TODO",
    "rg -f .env a.txt",
    "rg --follow TODO",
    "rg -L TODO",
    "rg --pre cat TODO",
    "grep -R TODO .",
    "grep -f .env a.txt",
  ])("%s is not let through", async (command) => {
    expect((await bash(command, { deny, searchPath: path() })).type).not.toBe("allow");
  });

  it("a denied file that has another name keeps the search from running", async () => {
    linkSync(join(project, ".env"), join(project, "twin"));
    try {
      expect((await bash("grep -r TODO .", { deny })).type).toBe("deny");
    } finally {
      rmSync(join(project, "twin"));
    }
  });

  it("names that cannot be said by a pattern are asked about as before", async () => {
    expect((await bash("grep -r TODO .", { deny: ["Read(**)"] })).type).not.toBe("allow");
  });
});

describe("[PRM-9] a program that needs no question is the one that its name says", () => {
  const node = () => realpathSync(process.execPath);
  const system = "/usr/local/bin:/usr/bin:/bin";

  it.each<[string, () => string]>([
    [
      "a script of a version manager in a folder for them",
      () => {
        put(join(home, ".asdf/shims/jq"), `#!/usr/bin/env bash\ntouch '${sign}'\n`, 0o755);
        return `${join(home, ".asdf/shims")}:${system}`;
      },
    ],
    [
      "a script in a folder of any name",
      () => {
        put(join(home, "programs/jq"), `#!/bin/sh\ntouch '${sign}'\n`, 0o755);
        return `${join(home, "programs")}:${system}`;
      },
    ],
    [
      "a link to a program of another name",
      () => {
        mkdirSync(join(home, "mise"), { recursive: true });
        copyFileSync("/bin/sh", join(home, "mise/mise"));
        symlinkSync("mise", join(home, "mise/jq"));
        return `${join(home, "mise")}:${system}`;
      },
    ],
    [
      "one file under several names",
      () => {
        mkdirSync(join(home, "proxy"), { recursive: true });
        copyFileSync("/bin/sh", join(home, "proxy/manager"));
        linkSync(join(home, "proxy/manager"), join(home, "proxy/jq"));
        return `${join(home, "proxy")}:${system}`;
      },
    ],
    [
      "a link into the project",
      () => {
        put(join(project, "tools/jq"), `#!/bin/sh\ntouch '${sign}'\n`, 0o755);
        mkdirSync(join(home, "linked"), { recursive: true });
        symlinkSync(join(project, "tools/jq"), join(home, "linked/jq"));
        return `${join(home, "linked")}:${system}`;
      },
    ],
  ])("%s", async (_, lay) => {
    const searchPath = lay();
    const decision = await bash("jq . a.json", { searchPath });
    expect(decision.type, decision.reason).toBe("ask");
    expect(decision.reason).toContain("jq is ");
  });

  it("folders of the search path that lead into the project are left out, however they are named", async () => {
    put(join(project, "tools/wc"), `#!/bin/sh\ntouch '${sign}'\n`, 0o755);
    symlinkSync(join(project, "tools"), join(home, "into"));
    mkdirSync(join(home, "other"), { recursive: true });
    const entries = [
      join(project, "tools"),
      join(home, "into"),
      `${home}/other/../../project/tools`,
      `/${project}//tools/`,
      "tools",
      ".",
      "",
    ];
    for (const entry of entries) {
      const searchPath = `${entry}:${system}`;
      const decision = await bash("wc -l a.txt", { searchPath });
      expect(decision, entry).toMatchObject({ type: "allow", allowedBy: "read-only" });
      expect(run(decision, searchPath), entry).toContain("1 a.txt");
      expect(existsSync(sign), entry).toBe(false);
    }
  });

  it("a binary of a person's own installation is one", async () => {
    mkdirSync(join(home, ".nvm/v24/bin"), { recursive: true });
    symlinkSync(node(), join(home, ".nvm/v24/bin/node"));
    const searchPath = `${join(home, ".nvm/v24/bin")}:${system}`;
    expect(await bash("node --version", { searchPath })).toMatchObject({ allowedBy: "read-only" });
  });
});

describe("[PRM-9, PRM-10] what is reached by links, patterns and lists of processes is asked about", () => {
  beforeAll(() => {
    mkdirSync(join(root, "outside"), { recursive: true });
    put(join(root, "outside/x.txt"), "x\n");
    symlinkSync(join(root, "outside"), join(project, "deep/out"));
  });

  it.each([
    "ls -LR",
    "ls -RL deep",
    "ls --dereference -R .",
    "du -L",
    "du -aL deep",
    "du --dereference .",
    "unzip -l 'secre?.zip'",
    "unzip -v '*.zip'",
    "zipinfo 'secre[t].zip'",
    "ps aux",
    "ps -ef",
    "ps -eo args",
    "ps x",
    "pgrep -fa node",
  ])("%s", async (command) => {
    expect((await bash(command)).type).toBe("ask");
  });

  it.each([
    "ls -R",
    "ls -la",
    "du -sh .",
    "ps -e",
    "ps -o pid,comm",
    "pgrep node",
  ])("%s needs no question", async (command) => {
    expect((await bash(command)).type).toBe("allow");
  });
});
