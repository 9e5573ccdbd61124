import { existsSync } from "node:fs";
import { join } from "node:path";
import { createSampleRuntime, createWorkspace } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, test } from "vitest";
import { createRuntime } from "./create-runtime.ts";

describe("settings and variables that a run obeys", () => {
  test("a model that settings forbid answers neither for the main agent nor for a child", async () => {
    await using workspace = await createWorkspace();
    await using runtime = createRuntime({
      cwd: workspace.project,
      home: join(workspace.root, "home"),
      settingSources: ["user", "project", "local"],
      transcripts: true,
      env: { ANTHROPIC_API_KEY: "x", ANTHROPIC_BASE_URL: "http://127.0.0.1:9" },
      settings: '{"deniedModels": ["opus"]}',
    });
    await expect(runtime.open({ model: "opus" })).rejects.toThrow(/deniedModels/);
    await expect(runtime.spawn("general-purpose", "x", { model: "opus" }).result).rejects.toThrow(
      /deniedModels/,
    );
  });

  test("bashOutputMaxChars bounds what a model sees of a command", async () => {
    const command = "head -c 20000 /dev/zero | tr '\\0' x";
    await using sample = await createSampleRuntime(
      [{ calls: [{ name: "Bash", input: { command } }] }, "Done."],
      {
        settings: '{"bashOutputMaxChars": 4000}',
      },
    );
    await sample.runtime.run("Go.", { skipPermissions: true }).result;
    expect(JSON.stringify(sample.requests[1]?.messages).length).toBeLessThan(8_000);
  });

  test("CLAUDE_CODE_SKIP_PROMPT_HISTORY keeps no transcript", async () => {
    await using sample = await createSampleRuntime(["Hi."], {
      env: { PATH: process.env["PATH"], CLAUDE_CODE_SKIP_PROMPT_HISTORY: "1" },
    });
    await sample.runtime.run("Go.").result;
    expect(existsSync(join(sample.home, ".claude", "projects"))).toBe(false);
  });
});

describe("hooks of settings that cannot run as they were written", () => {
  const hook = { type: "command", command: "exit 2" };

  test("a guard that cannot be read ends the start, with its place and what was meant [DRP-2]", async () => {
    await using sample = await createSampleRuntime(["Hi."], {
      settings: JSON.stringify({ hooks: { PreTooluse: [{ matcher: "Bash", hooks: [hook] }] } }),
    });
    await expect(sample.runtime.run("Go.").result).rejects.toThrow(/PreTooluse/);
  });

  test("any other is named at each run, and a matcher in other case is understood [DRP-2, HKS-4]", async () => {
    const warnings: string[] = [];
    await using sample = await createSampleRuntime(
      [{ calls: [{ name: "Bash", input: { command: "touch made" } }] }, "Done."],
      {
        onWarning: (text) => warnings.push(text),
        settings: JSON.stringify({
          hooks: { PreToolUse: [{ matcher: "bash", hooks: [hook] }], PostToolUsed: [{ hooks: [hook] }] },
        }),
      },
    );
    const result = await sample.runtime.run("Go.", { skipPermissions: true }).result;
    expect(result.denials).toHaveLength(1);
    expect(existsSync(sample.workspace.path("made"))).toBe(false);
    expect(warnings.join("\n")).toContain("Did you mean PostToolUse?");
  });

  test("a deny rule given to a run that names no tool ends it [DRP-2]", async () => {
    await using sample = await createSampleRuntime(["Hi."]);
    await expect(sample.runtime.run("Go.", { disallowedTools: ["Bsh"] }).result).rejects.toThrow(/Bsh/);
  });
});
