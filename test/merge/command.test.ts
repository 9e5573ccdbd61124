import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { runInProcess } from "../scenarios/run-command.ts";
import { createMergeStage, type MergeStage } from "./merge-stage.ts";

const command = ({ project, sample }: MergeStage, ...words: readonly string[]) =>
  runInProcess({ cwd: project, home: sample.home }, ["merge", ...words], {
    environment: { RETINUE_LOCAL_MODELS: "0" },
  });

describe("retinue merge [MRG-1]", () => {
  test("shows the queue, merges with the checks of the command line, and brings the branch forward", async () => {
    const stage = await createMergeStage({ "a.txt": "1\n" });
    const one = await stage.child("one", { "b c.txt": "one\n" });
    const two = await stage.child("two", { "ü.txt": "two\n" });
    await stage.session.close();
    const dry = await command(stage, "--dry-run");
    expect(dry).toMatchObject({ code: 0, err: "" });
    expect(dry.out).toContain(`2 agents of session ${stage.session.id.slice(0, 8)} → retinue/integration-`);
    expect(dry.out).toContain(`${one.id.slice(0, 9)} general-purpose  waiting    1 file   one`);
    expect(stage.git("log", "--format=%s", one.branch)).toBe("first");
    expect(stage.git("branch", "--list", "retinue/integration-*")).toBe("");

    const merged = await command(stage, "--check", "test -f 'b c.txt'");
    expect(merged.err).toBe("");
    expect(merged.out).toMatch(/^a\w{8} general-purpose {2}integrated 1 file {3}one$/m);
    expect(merged.out).toContain("`retinue merge --apply` brings your branch forward to it.");
    expect(merged.code).toBe(0);
    expect(stage.git("log", "--format=%s")).toBe("first");

    const applied = await command(stage, "--apply", "--unchecked", "--json");
    expect(applied.code).toBe(0);
    expect(JSON.parse(applied.out)).toMatchObject({
      version: 1,
      status: "merged",
      entries: [{ state: "merged" }, { state: "merged" }],
      applied: { branch: "main" },
    });
    expect(stage.git("log", "--format=%s")).toBe("two\none\nfirst");
    expect(existsSync(two.path)).toBe(false);
    expect(await command(stage)).toMatchObject({
      code: 1,
      err: expect.stringContaining("No session of this folder has a worktree with changes."),
    });
  });

  test("leaves what fails a check with the reason and commands, and needs no model for that", async () => {
    const stage = await createMergeStage({ "a.txt": "1\n" });
    const one = await stage.child("one", { "a.txt": "broken\n" });
    await stage.child("two", { "b.txt": "two\n" });
    await stage.session.close();
    const { code, out } = await command(stage, "--check", "grep -q 1 a.txt");
    expect(code).toBe(1);
    expect(out).toContain("  `grep -q 1 a.txt` failed with exit code 1\n    retinue resume ");
    expect(out).toContain("1 agent left; each branch stays until it is merged or discarded.");
    const discarded = await command(stage, "--discard", one.id.slice(0, 6));
    expect(discarded).toMatchObject({ code: 0, err: "" });
    expect(discarded.out).toMatch(/was at [0-9a-f]{40}; `git branch NAME [0-9a-f]{12}` brings it back/);
    expect(existsSync(one.path)).toBe(false);
  });

  test("asks about a check that no rule allows, and does not run it in unattended runs", async () => {
    const stage = await createMergeStage({ "a.txt": "1\n" });
    await stage.child("one", { "b.txt": "one\n" });
    await stage.session.close();
    await stage.sample.workspace.write(
      "../home/.claude/settings.json",
      JSON.stringify({ verify: { main: "touch $HOME/ran" } }),
    );
    const refused = await command(stage);
    expect(refused.code).toBe(1);
    expect(refused.out).toContain("it was not run: ");
    expect(refused.out).toContain("pass it with --check");
    expect(existsSync(`${stage.sample.home}/ran`)).toBe(false);
    await stage.sample.workspace.write(
      "../home/.claude/settings.json",
      JSON.stringify({ verify: { main: "true" }, permissions: { deny: ["Bash(true)"] } }),
    );
    const denied = await command(stage, "--check", "true");
    expect(denied.out).toContain("it was not run: ");
    expect(denied.code).toBe(1);
  });

  test.each([
    [["--into", "main"], "The branch main is checked out in "],
    [["--into", "a b"], '"a b" cannot be the name of a branch.'],
    [["--only", "nobody"], 'No kept branch of this session belongs to "nobody".'],
    [["--discard", "x", "--apply"], "--discard removes children and merges nothing."],
    [["--check", " "], "--check needs a command."],
    [["--check", "true", "--unchecked"], "--unchecked runs no checks"],
    [["no such session"], 'There is no session "no such session" in this folder.'],
  ])("%j is refused with a sentence", async (words, message) => {
    const stage = await createMergeStage({ "a.txt": "1\n" });
    await stage.child("one", { "b.txt": "one\n" });
    await stage.session.close();
    const { code, err } = await command(stage, ...words);
    expect(err).toContain(message);
    expect(err).not.toContain("    at ");
    expect(code).not.toBe(0);
    expect(stage.git("branch", "--list", "retinue/integration-*")).toBe("");
  });
});
