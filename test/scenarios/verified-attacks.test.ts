import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { VerifyInput } from "@retinue/config/settings/verify-checks.ts";
import type { SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";

const git = (directory: string, ...words: readonly string[]): string =>
  execFileSync(
    "git",
    ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always", ...words],
    {
      cwd: directory,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    },
  ).trim();

function repository(directory: string): void {
  mkdirSync(directory, { recursive: true });
  git(directory, "init", "-q");
  git(directory, "add", "-A");
  git(directory, "commit", "-qm", "one", "--allow-empty");
}

/** What an agent's work is worth that does nothing, with checks of which a later one spoils what an earlier one looked at. */
async function judge(prepare: (project: string) => void, checks: readonly string[]) {
  const sample = await createSampleRuntime([{ text: "Done.", times: "any" }], { trusted: true });
  onTestFinished(() => sample[Symbol.asyncDispose]());
  const { project } = sample.workspace;
  prepare(project);
  const session = await sample.runtime.open({ skipPermissions: true });
  const verify: VerifyInput = checks.map((run) => ({ run, retries: 0 }));
  const { receipt } = await session.spawn("general-purpose", "Do it.", { verify }).result;
  return receipt;
}

const good = (project: string, path: string) => writeFileSync(join(project, path), "good\n");

describe("an edit behind a check that has passed is seen [VRF-3]", () => {
  const cases: readonly (readonly [string, (project: string) => void, string, string])[] = [
    [
      "in a repository inside of the repository",
      (project) => {
        repository(project);
        mkdirSync(join(project, "inner"));
        good(project, "inner/f.txt");
        repository(join(project, "inner"));
      },
      "grep -q good inner/f.txt",
      "printf 'bad!\\n' > inner/f.txt",
    ],
    [
      "in a submodule",
      (project) => {
        const other = join(project, "..", "other");
        mkdirSync(other);
        good(other, "f.txt");
        repository(other);
        repository(project);
        git(project, "submodule", "--quiet", "add", other, "sub");
        git(project, "commit", "-qm", "sub");
      },
      "grep -q good sub/f.txt",
      "printf 'bad!\\n' > sub/f.txt",
    ],
    ...["--assume-unchanged", "--skip-worktree"].map(
      (flag) =>
        [
          `in a file that git is told not to look at (${flag})`,
          (project: string) => {
            mkdirSync(project, { recursive: true });
            good(project, "f.txt");
            repository(project);
            git(project, "update-index", flag, "f.txt");
          },
          "grep -q good f.txt",
          "printf 'bad!\\n' > f.txt",
        ] as const,
    ),
    [
      "in a file of the same size and time, where git was told to trust them",
      (project) => {
        writeFileSync(join(project, "f.txt"), "good\n");
        utimesSync(join(project, "f.txt"), 1_700_000_000, 1_700_000_000);
        repository(project);
        git(project, "config", "core.trustctime", "false");
        git(project, "config", "core.checkStat", "minimal");
        git(project, "status");
      },
      "grep -q good f.txt",
      // git compares whole seconds, so the edit comes in a later one.
      "while [ $(date +%s) = $(stat -c %Z f.txt) ]; do :; done; printf 'bad!\\n' > f.txt; touch -d @1700000000 f.txt",
    ],
    [
      "in what may be executed, where git was told not to look",
      (project) => {
        writeFileSync(join(project, "run.sh"), "#!/bin/sh\n", { mode: 0o755 });
        repository(project);
        git(project, "config", "core.fileMode", "false");
      },
      "test -x run.sh",
      "chmod -x run.sh",
    ],
    [
      "in a link, without git",
      (project) => {
        good(project, "one.txt");
        writeFileSync(join(project, "two.txt"), "bad!\n");
        execFileSync("ln", ["-s", "one.txt", "current"], { cwd: project });
      },
      "grep -q good current",
      "ln -sfn two.txt current",
    ],
    [
      "in what may be executed, without git",
      (project) => {
        writeFileSync(join(project, "run.sh"), "#!/bin/sh\n", { mode: 0o755 });
      },
      "test -x run.sh",
      "chmod -x run.sh",
    ],
    [
      "in a large file that has kept its size and time, without git",
      (project) => {
        writeFileSync(join(project, "large.txt"), `good${" ".repeat(400_000)}`);
      },
      "grep -q good large.txt",
      "touch -r large.txt stamp; printf bad! | dd of=large.txt conv=notrunc 2>/dev/null; touch -r stamp large.txt; rm stamp",
    ],
  ];
  test.each(cases)("%s", async (_where, prepare, check, spoil) => {
    const receipt = await judge(prepare, [check, spoil]);
    expect(receipt?.status).toBe("failed-check");
    expect(receipt?.checks[0]?.passed).toBe(false);
  });
});

test("the same trees are verified where nothing is spoiled [VRF-2]", async () => {
  const receipt = await judge(
    (project) => {
      repository(project);
      repository(join(project, "inner"));
      good(project, "inner/f.txt");
    },
    ["grep -q good inner/f.txt"],
  );
  expect(receipt?.status).toBe("verified");
  expect(existsSync("inner")).toBe(false);
});

/** One agent in a trusted project, with what it does and how its calls are answered. */
async function work(
  steps: readonly Step[],
  {
    verify,
    session = { skipPermissions: true },
    isGit = false,
  }: { readonly verify: VerifyInput; readonly session?: SessionOptions; readonly isGit?: boolean },
) {
  const sample = await createSampleRuntime(steps, { trusted: true });
  onTestFinished(() => sample[Symbol.asyncDispose]());
  const { project } = sample.workspace;
  if (isGit) repository(project);
  const opened = await sample.runtime.open(session);
  return { handle: opened.spawn("general-purpose", "Do it.", { verify }), project };
}

const bash = (command: string) => ({ calls: [{ name: "Bash", input: { command } }] });

test("a yes to another command lets no check run [VRF-1]", async () => {
  const { handle, project } = await work([{ text: "Done." }], {
    verify: { run: "touch named.txt", retries: 0 },
    session: {
      canUseTool: async () => ({ behavior: "allow", updatedInput: { command: "touch other.txt" } }),
    },
  });
  expect((await handle.result).receipt).toMatchObject({
    status: "failed-check",
    checks: [{ notRun: true, reason: expect.stringContaining("the answer changed the command") }],
  });
  expect(readdirSync(project)).toEqual([]);
});

test("hooks decide about a check that a model names as about its own command [VRF-1]", async () => {
  const input = {
    description: "d",
    prompt: "Do it.",
    subagent_type: "general-purpose",
    verify: "touch ran.txt",
  };
  const sample = await createSampleRuntime(
    [{ calls: [{ name: "Agent", input }] }, { text: "Done." }, { text: "Thanks." }],
    { trusted: true },
  );
  onTestFinished(() => sample[Symbol.asyncDispose]());
  const hook = { type: "command", command: "echo 'not that' >&2; exit 2" };
  const hooks = { PreToolUse: [{ matcher: "Bash", hooks: [hook] }] };
  await sample.workspace.write("../home/.claude/settings.json", JSON.stringify({ hooks }));
  const session = await sample.runtime.open({ skipPermissions: true });
  await session.run("Begin.").result;
  expect(existsSync(sample.workspace.path("ran.txt"))).toBe(false);
  expect(JSON.stringify(sample.requests.at(-1)?.messages.at(-1))).toContain("refused by a hook: not that");
});

test("without git, what commands have changed is in the receipt, and different trees have different digests [VRF-2]", async () => {
  const receipts = await Promise.all(
    ["one", "two"].map(async (word) => {
      const { handle } = await work(
        [bash(`echo ${word} > a.txt; mkdir b; echo ${word} > b/c.txt`), { text: "Done." }],
        {
          verify: "test -f a.txt",
        },
      );
      return (await handle.result).receipt;
    }),
  );
  for (const receipt of receipts)
    expect(receipt).toMatchObject({
      status: "verified",
      tree: { kind: "files" },
      changedFiles: ["a.txt", "b/c.txt"],
    });
  expect(receipts[0]?.tree?.digest).not.toBe(receipts[1]?.tree?.digest);
});

test("a script of a check that the agent has changed is named beside the result [VRF-4]", async () => {
  const { handle } = await work([bash("echo 'exit 0' > check.sh"), { text: "Done." }], {
    verify: "sh check.sh",
    isGit: true,
  });
  expect((await handle.result).receipt).toMatchObject({
    status: "verified",
    notes: ["What the checks run was changed: check.sh."],
  });
});

test.each([
  [true, "add what they write to .gitignore"],
  [false, "make them write outside of this folder"],
])("a receipt names what changes while the checks run (git: %s) [VRF-2, VRF-3]", async (isGit, expected) => {
  const { handle } = await work([{ text: "Done." }], {
    verify: { run: "date +%N > report.txt", retries: 0 },
    isGit,
  });
  const { receipt } = await handle.result;
  expect(receipt?.status).toBe("failed-check");
  expect(receipt?.notes).toEqual([expect.stringContaining("(report.txt)")]);
  expect(receipt?.notes[0]).toContain(expected);
});

test("a receipt names a thousand files, and says of how many [VRF-2]", async () => {
  const { handle } = await work([bash("for n in $(seq 1 1003); do : > f$n.txt; done"), { text: "Done." }], {
    verify: "true",
  });
  const { receipt } = await handle.result;
  expect(receipt?.changedFiles).toHaveLength(1000);
  expect(receipt?.notes).toContain("1003 files were changed; the first 1000 are named.");
});

test("the output of a check is what it wrote, and tests in a part of it that is cut count [VRF-3]", async () => {
  const { handle } = await work([{ text: "Done." }], {
    verify: [
      { run: "echo '# pass 3'; yes line | head -c 200000; echo '# tests 0'", retries: 0 },
      { run: "sleep 60", timeout: 1 },
      { run: "echo wrong; exit 3" },
    ],
  });
  expect((await handle.result).receipt?.checks).toMatchObject([
    { passed: true },
    { passed: false, reason: "it did not end within its time limit of 1 s", output: "" },
    { passed: false, exitCode: 3, output: "wrong" },
  ]);
});

test("a check that is cut off has not gone back to the agent [VRF-3]", async () => {
  const { handle, project } = await work([{ text: "Done." }], {
    verify: { run: "touch begun.txt; sleep 300", timeout: 300 },
  });
  await expect.poll(() => existsSync(join(project, "begun.txt")), { timeout: 60_000 }).toBe(true);
  await handle.stop();
  expect(await handle.result).toMatchObject({
    status: "stopped",
    receipt: { status: "failed-check", retries: 0 },
  });
}, 90_000);
