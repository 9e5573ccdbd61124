import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createWorkspace } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { runInProcess } from "../scenarios/run-command.ts";

/** The command line in a project with the given files; nothing is written to the terminal. */
async function run(arguments_: readonly string[], files: Readonly<Record<string, string>>) {
  const workspace = await createWorkspace();
  onTestFinished(() => workspace[Symbol.asyncDispose]());
  for (const [name, text] of Object.entries(files)) {
    const file = workspace.path(name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  const place = { cwd: workspace.project, home: join(workspace.root, "home") };
  return runInProcess(place, arguments_);
}

const ship =
  "---\ndescription: Ships it.\nallowed-tools: Bash(git *)\ncontext: fork\nagent: Explore\n---\nShip. !`git status`\n";

describe("retinue skills", () => {
  test("[SKL-1, CLI-2] lists each with its scope and what it does besides its text", async () => {
    const { code, out } = await run(["skills"], {
      ".claude/skills/ship/SKILL.md": ship,
      ".claude/commands/hi.md": "Say hi.",
    });
    expect(code).toBe(0);
    expect(out).toMatch(/^hi +project command +all +- +Say hi\.$/m);
    expect(out).toMatch(/^ship +project +all +runs in Explore; allows/m);
    expect(out).toContain("Ships it.");
  });

  test("[SKL-1, CLI-2] prints the same as JSON, with whether its file may grant", async () => {
    const { out } = await run(["skills", "--json"], { ".claude/skills/ship/SKILL.md": ship });
    expect(JSON.parse(out)).toMatchObject({
      version: 1,
      skills: [
        {
          name: "ship",
          scope: "project",
          allowedTools: ["Bash(git *)"],
          runsCommands: true,
          mayGrant: false,
        },
      ],
      diagnostics: { errors: 0 },
    });
  });

  test("[SKL-2, CLI-2] the check finds broken files and names of agents that lead to nothing", async () => {
    const files = {
      ".claude/skills/broken/SKILL.md": "---\ndescription: x\n",
      ".claude/agents/a.md": "---\nname: a\ndescription: Works.\nskills: [nothing]\n---\nWork.\n",
    };
    const { code, out } = await run(["skills", "check"], files);
    expect(code).toBe(1);
    expect(out).toContain("frontmatter-unclosed");
    expect(out).toContain("unknown-skill");
    const good = await run(["skills", "check", "--strict"], { ".claude/skills/ship/SKILL.md": ship });
    expect(good.code).toBe(0);
  });

  test("[CLI-6] an unknown command is answered with the nearest", async () => {
    const { code, err } = await run(["skills", "chekc"], {});
    expect(code).toBe(2);
    expect(err).toContain("Did you mean `retinue skills check`?");
  });
});
