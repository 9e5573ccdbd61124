import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { VerifyInput } from "@retinue/config/settings/verify-checks.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
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
