import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createSampleRuntime, createWorkspace } from "../testing/sample-runtime.ts";
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
