import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, type Place, runCommand, runInProcess } from "./run-command.ts";

async function createStage(script: readonly Step[]) {
  const provider = await startFakeProvider({ script });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  return {
    ...place,
    provider,
    environment,
    run: (...words: readonly string[]) => runInProcess(place, words, { environment }),
  };
}

function git({ cwd }: Pick<Place, "cwd">, ...words: readonly string[]): string {
  const identity = [
    "-c",
    "user.name=Test",
    "-c",
    "user.email=test@example.com",
    "-c",
    "commit.gpgsign=false",
  ];
  return execFileSync("git", [...identity, ...words], { cwd, encoding: "utf8" });
}

const write = (path: string): Step => ({
  calls: [{ name: "Write", input: { file_path: path, content: "made\n" } }],
});

describe("--worktree [DRP-3]", () => {
  test("a session works in a worktree of that name, which is kept and taken up again", async () => {
    const stage = await createStage([write("new.txt"), "Done.", "Again.", "Elsewhere."]);
    git(stage, "init", "-q", "-b", "main");
    stage.write("a.txt", "one\n");
    git(stage, "add", "-A");
    git(stage, "commit", "-q", "-m", "first");
    // A worktree belongs to its process, so each session gets one of its own here.
    const start = (...words: readonly string[]) =>
      runCommand(stage, ["-p", "go", ...words], { environment: stage.environment });
    const first = await start("--worktree", "feature/x", "--permission-mode", "acceptEdits");
    expect(first).toMatchObject({ code: 0, out: "Done.\n" });
    const path = join(stage.cwd, ".claude/worktrees/feature+x");
    expect([existsSync(join(path, "new.txt")), existsSync(join(stage.cwd, "new.txt"))]).toEqual([
      true,
      false,
    ]);
    expect(git({ cwd: path }, "branch", "--show-current")).toBe("worktree-feature+x\n");
    expect(git(stage, "status", "--short")).toBe("");
    const second = await start("-w", "feature/x", "--output-format", "stream-json", "--verbose");
    expect(JSON.parse(second.out.split("\n")[0] ?? "")).toMatchObject({ subtype: "init", cwd: path });
    expect(existsSync(join(path, "new.txt"))).toBe(true);
    const third = await start("-w");
    expect(third).toMatchObject({ code: 0, out: "Elsewhere.\n" });
    expect(git(stage, "worktree", "list").trim().split("\n")).toHaveLength(3);
  });

  test.each([["../x"], ["a b"], ["."], ["/x"], ["a//b"]])("the name %j is refused", async (name) => {
    const stage = await createStage([]);
    git(stage, "init", "-q");
    const { code, err } = await stage.run("-p", "go", `--worktree=${name}`);
    expect([code, err]).toEqual([1, expect.stringContaining("cannot name a worktree")]);
  });

  test("without a repository it says so and runs nothing", async () => {
    const stage = await createStage([]);
    const { code, err } = await stage.run("-p", "go", "--worktree", "x");
    expect(code).toBe(1);
    expect(err).toMatch(/No worktree was made, because .*git/);
  });
});

describe("--debug-file [DRP-3]", () => {
  test("what happened is in the file, with times and without contents", async () => {
    const stage = await createStage([write("secret.txt"), "The answer."]);
    const { code } = await stage.run("-p", "a private prompt", "--debug-file", "logs/debug.txt");
    expect(code).toBe(0);
    const text = readFileSync(join(stage.cwd, "logs/debug.txt"), "utf8");
    expect(text).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z \[DEBUG\] retinue /);
    expect(text).toMatch(/Write \S+ (failed|ended) after \d+ ms/);
    expect(text).toMatch(/ended with 0\n$/);
    expect(text).not.toMatch(/private prompt|The answer/);
  });

  test("a failure is there with its stack, and a file that cannot be written is an error", async () => {
    const stage = await createStage([]);
    await stage.run("-p", "go", "--resume", randomUUID(), "--debug-file", "debug.txt");
    expect(readFileSync(join(stage.cwd, "debug.txt"), "utf8")).toMatch(
      /\[ERROR\] .*No conversation found[\s\S]* at /,
    );
    stage.write("file", "");
    const { code, err } = await stage.run("-p", "go", "--debug-file", "file/debug.txt");
    expect([code, err]).toEqual([1, expect.stringContaining("file/debug.txt")]);
  });
});

describe("agents --json [DRP-3]", () => {
  test("lists the sessions that processes have open, with what they do", async () => {
    const gate = Promise.withResolvers<string>();
    const stage = await createStage(["One.", () => gate.promise]);
    expect((await stage.run("agents", "--json")).out).toBe("[]\n");
    const session = randomUUID();
    const line = (content: string) =>
      `${JSON.stringify({ type: "user", message: { role: "user", content } })}\n`;
    const listed = async (...words: readonly string[]) =>
      JSON.parse((await stage.run("agents", "--json", ...words)).out) as Record<string, unknown>[];
    const streaming = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
    let child: import("node:child_process").ChildProcess | undefined;
    const done = runCommand(stage, ["-p", ...streaming, "--session-id", session], {
      environment: stage.environment,
      input: { open: true, text: line("first") },
      started: (own) => {
        child = own;
      },
    });
    await expect.poll(() => listed(), { timeout: 20_000 }).toMatchObject([{ status: "idle", name: "first" }]);
    expect(await listed()).toMatchObject([
      {
        pid: child?.pid,
        cwd: stage.cwd,
        kind: "interactive",
        sessionId: session,
        name: "first",
        startedAt: expect.any(Number),
      },
    ]);
    child?.stdin?.write(line("second"));
    await expect.poll(() => listed(), { timeout: 20_000 }).toMatchObject([{ status: "busy" }]);
    expect(await listed("--cwd", stage.home)).toEqual([]);
    expect(await listed("--cwd", ".")).toHaveLength(1);
    gate.resolve("Two.");
    child?.stdin?.end();
    await done;
    expect(await listed()).toEqual([]);
  });
});
