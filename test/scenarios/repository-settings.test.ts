import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gatherGitState } from "@retinue/core/context/gather-git-state.ts";
import { askRepository } from "@retinue/gate/git/ask-repository.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let root: string;
let project: string;
let sign: string;

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-ask-git-")));
  project = join(root, "project");
  sign = join(root, "ran");
  mkdirSync(join(root, "home"));
  git(root, "init", "-q", "-b", "main", project);
  writeFileSync(join(project, "a.txt"), "a\n");
  writeFileSync(join(project, ".gitattributes"), "* filter=x diff=x merge=x\n");
  git(project, "add", "-A");
  git(project, "commit", "-q", "-m", "one");
  // Only a file that is not known to be unchanged is given to a filter.
  writeFileSync(join(project, "a.txt"), "b\n");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const environment = () => ({
  PATH: process.env["PATH"],
  HOME: join(root, "home"),
  GIT_CONFIG_NOSYSTEM: "1",
  ANTHROPIC_API_KEY: "secret",
});

function git(directory: string, ...words: string[]): string {
  const identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
  return execFileSync("git", [...identity, ...words], {
    cwd: directory,
    env: environment(),
    encoding: "utf8",
    stdio: "pipe",
  });
}

const ask = (directory = project) =>
  askRepository(directory, { environment: environment(), folders: [project] });
const look = (directory = project) =>
  gatherGitState({
    directory,
    repositoryRoot: directory,
    home: join(root, "home"),
    environment: environment(),
    trusted: true,
    timeoutMs: 60_000,
  });

const filter = (): string => `[filter "x"]\n\tclean = touch '${sign}'; env > '${sign}'; cat\n`;

describe("[PRM-9, SPN-3] what a repository configures is what git says, and none of it runs", () => {
  it.each<[string, () => void]>([
    ["plainly", () => append(filter())],
    ["after a comment that ends in a backslash", () => append(`;\\\n${filter()}`)],
    ["after a comment with a number sign that ends in a backslash", () => append(`# x \\\n${filter()}`)],
    ["in one line", () => append(`[filter "x"] clean = touch '${sign}'\n`)],
    ["in the old form of a subsection", () => append(`[filter.x]\n\tclean = touch '${sign}'\n`)],
    ["with odd case", () => append(`[FILTER "x"]\n\tCLEAN = touch '${sign}'\n`)],
    ["after a value with a comment", () => append(`[core]\n\tabbrev = 12 ; \\\n${filter()}`)],
    ["after a value that goes on in the next line", () => append(`[user]\n\tname = a\\\n b\n${filter()}`)],
    [
      "after a value in quotes with a line break",
      () => append(`[user]\n\tname = "a\\\n[core]"\n${filter()}`),
    ],
    ["with carriage returns", () => append(filter().replaceAll("\n", "\r\n"))],
    ["behind a byte order mark", () => writeFileSync(config(), `\uFEFF${filter()}`)],
    [
      "in a file that it includes",
      () => {
        writeFileSync(join(project, "more"), filter());
        append("[include]\n\tpath = ../more\n");
      },
    ],
    [
      "in a file that it includes behind a comment",
      () => {
        writeFileSync(join(project, "more"), filter());
        append("[core] ; \\\n[include] path = ../more ; x\n");
      },
    ],
    [
      "in a file that it includes on this branch",
      () => {
        writeFileSync(join(project, "more"), filter());
        append('[includeIf "onbranch:ma**"]\n\tpath = ../more\n');
      },
    ],
    [
      "for this working tree",
      () => {
        append("[extensions]\n\tworktreeConfig = true\n");
        writeFileSync(join(project, ".git/config.worktree"), filter());
      },
    ],
    [
      "in a file of the folder that the person's own settings include",
      () => {
        writeFileSync(join(project, "more"), filter());
        writeFileSync(join(root, "home/.gitconfig"), `[include]\n\tpath = ${project}/more\n`);
      },
    ],
    [
      "in the data that a file `.git` leads to",
      () => {
        append(filter());
        renameSync(join(project, ".git"), join(root, "data"));
        writeFileSync(join(project, ".git"), `gitdir: ${root}/data\n`);
      },
    ],
    [
      "in data whose folder ends in a space",
      () => {
        append(filter());
        renameSync(join(project, ".git"), join(root, "data "));
        git(root, "init", "-q", join(root, "plain"));
        renameSync(join(root, "plain/.git"), join(root, "data"));
        writeFileSync(join(project, ".git"), "gitdir: ../data \n");
      },
    ],
    [
      "in data whose folder has a line break in its name",
      () => {
        append(filter());
        renameSync(join(project, ".git"), join(root, "data\nmore"));
        git(root, "init", "-q", join(root, "plain"));
        renameSync(join(root, "plain/.git"), join(root, "data"));
        writeFileSync(join(project, ".git"), "gitdir: ../data\nmore\n");
      },
    ],
    [
      "in data that a link leads to",
      () => {
        append(filter());
        renameSync(join(project, ".git"), join(root, "data"));
        symlinkSync("../data", join(project, ".git"));
      },
    ],
    [
      "in data that is common by `commondir`",
      () => {
        append(filter());
        const own = join(project, ".git");
        git(root, "clone", "-q", "--bare", project, join(root, "common"));
        renameSync(config(), join(root, "common/config"));
        writeFileSync(join(own, "commondir"), "../../common\n");
      },
    ],
  ])("a filter %s", async (_, lay) => {
    lay();
    const facts = await ask();
    // Git may refuse what is laid out here; then nothing is known, and nothing runs either.
    expect(facts.type === "repository" ? facts.steering : facts.type).toMatch(
      /^(?:filter\.x\.|include|unclear)/i,
    );
    const state = await look();
    expect(state?.status).toBeUndefined();
    expect(state?.note).toBeDefined();
    expect(existsSync(sign)).toBe(false);
  });

  it.each([
    "core.attributesFile=x",
    "core.excludesFile=/etc/passwd",
    "core.gitProxy=./x",
    "core.worktree=/",
    "core.alternateRefsCommand=./x",
    "diff.external=./x",
    "diff.x.textconv=./x",
    "diff.x.command=./x",
    "diff.orderFile=/etc/passwd",
    "merge.x.driver=./x",
    "remote.origin.vcs=x",
    "remote.origin.uploadpack=./x",
    "remote.origin.receivepack=./x",
    "protocol.ext.allow=always",
    "protocol.allow=always",
    "submodule.x.update=!./x",
    "sequence.editor=./x",
    "interactive.diffFilter=./x",
    "gc.recentObjectsHook=./x",
    "uploadpack.packObjectsHook=./x",
    "tar.x.command=./x",
    "alias.log=!./x",
    "alias.whatchanged=!./x",
    "difftool.x.cmd=./x",
    "mergetool.x.cmd=./x",
    "commit.template=/etc/passwd",
    "mailmap.file=/etc/passwd",
    "blame.ignoreRevsFile=/etc/passwd",
    "format.pretty=%G?",
    "init.templateDir=x",
    "fetch.bundleURI=./x",
    "trace2.eventTarget=./x",
    "section.of.somebody=1",
  ])("the setting %s is not plain", async (setting) => {
    const [key = "", value = ""] = setting.split(/=(.*)/s);
    git(project, "config", key, value);
    const facts = await ask();
    expect(facts).toMatchObject({
      type: "repository",
      steering: expect.stringMatching(new RegExp(`^${key}$`, "i")),
    });
  });

  it("what git and people usually put there is plain, and its programs are switched off", async () => {
    for (const [key, value] of [
      ["remote.origin.url", "https://host.invalid/x.git"],
      ["remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"],
      ["branch.main.remote", "origin"],
      ["branch.main.merge", "refs/heads/main"],
      ["user.name", "Ada"],
      ["core.hooksPath", root],
      ["core.fsmonitor", `touch ${sign}`],
      ["core.pager", `touch ${sign}`],
      ["core.sshCommand", `touch ${sign}`],
      ["gpg.program", `touch ${sign}`],
      ["commit.gpgSign", "true"],
      ["alias.st", "!touch ran"],
      ["pull.rebase", "true"],
      ["lfs.repositoryformatversion", "0"],
      ["submodule.x.url", "https://host.invalid/y.git"],
      ["blame.ignoreRevsFile", ".git-blame-ignore-revs"],
    ] as const)
      git(project, "config", key, value);
    expect(await ask()).not.toMatchObject({ steering: expect.anything() });
    expect(await look()).toMatchObject({ branch: "main", userName: "Ada", status: [" M a.txt"] });
    expect(existsSync(sign)).toBe(false);
  });

  it("filters of the person's own settings are switched off where the runtime looks for itself", async () => {
    writeFileSync(join(root, "home/.gitconfig"), `${filter()}\trequired = true\n`);
    expect(await ask()).toMatchObject({ filters: ["x"], ownFilters: [] });
    expect((await look())?.status).toEqual([" M a.txt"]);
    expect(existsSync(sign)).toBe(false);
  });

  it("a submodule is not looked into, whatever says that it is to be", async () => {
    const inner = join(root, "inner");
    git(root, "init", "-q", "-b", "main", inner);
    writeFileSync(join(inner, ".gitattributes"), "* filter=x\n");
    writeFileSync(join(inner, "b.txt"), "a\n");
    git(inner, "add", "-A");
    git(inner, "commit", "-q", "-m", "one");
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "sub");
    git(project, "config", "--file", ".gitmodules", "submodule.sub.ignore", "none");
    git(project, "config", "submodule.sub.ignore", "none");
    git(project, "config", "diff.ignoreSubmodules", "none");
    appendFileSync(join(project, ".git/modules/sub/config"), filter());
    writeFileSync(join(project, "sub/b.txt"), "b\n");
    expect((await look())?.status).toContain("A  sub");
    expect(existsSync(sign)).toBe(false);
    git(project, "status");
    expect(existsSync(sign), "git by itself looks into it").toBe(true);
  });

  it("a folder of another's, without a repository, or that is not there, has nothing", async () => {
    expect(await ask(root)).toEqual({ type: "none" });
    expect(await ask(join(root, "nowhere"))).toEqual({ type: "none" });
  });

  it("a bare repository and git's own data are repositories, with their settings", async () => {
    git(root, "init", "-q", "--bare", join(root, "bare"));
    git(join(root, "bare"), "config", "filter.x.clean", "x");
    expect(await ask(join(root, "bare"))).toMatchObject({ steering: "filter.x.clean" });
    append(filter());
    expect(await ask(join(project, ".git/objects"))).toMatchObject({ steering: "filter.x.clean" });
  });
});

function config(): string {
  return join(project, ".git/config");
}

function append(text: string): void {
  appendFileSync(config(), text);
}
