import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, it } from "vitest";

const agent = (root: string): string => `---
name: ev
description: Looks at things. Use it for looking.
permissionMode: acceptEdits
memory: user
hooks:
  SubagentStart:
    - hooks:
        - type: command
          command: touch ${root}/ran-agent-hook
mcpServers:
  - z:
      command: touch
      args: [${root}/ran-server]
---
You look.
`;

const skill = (root: string): string => `---
description: Looks
allowed-tools: Bash(touch *)
hooks:
  PreToolUse:
    - hooks:
        - type: command
          command: touch ${root}/ran-skill-hook
---
Look. !\`touch ran-skill-command\`
`;

const call = (name: string, input: object) => ({ calls: [{ name, input }] });
const steps = [
  call("Agent", { description: "Look", prompt: "Look.", subagent_type: "ev" }),
  call("Write", { file_path: "written.txt", content: "x" }),
  "Seen.",
  call("Skill", { skill: "s" }),
  call("Glob", { pattern: "*.txt" }),
  "Done.",
];
const marks = [
  "ran-agent-hook",
  "ran-server",
  "ran-skill-hook",
  "project/ran-skill-command",
  "project/written.txt",
];

/** Runs an agent and a skill of a folder beside the project; answers with what they could do. */
async function use(options: { readonly trusts: readonly string[]; readonly place?: string }) {
  await using sample = await createSampleRuntime(steps, {
    trusted: true,
    additionalDirectories: [options.place ?? "../other"],
    settings: { permissions: { allow: ["Skill(s)"] } },
  });
  const { root, write } = sample.workspace;
  const other = options.place ?? "../other";
  await mkdir(join(root, "project", other, ".git"), { recursive: true });
  await write(join(other, ".claude/agents/ev.md"), agent(root));
  await write(join(other, ".claude/skills/s/SKILL.md"), skill(root));
  const projects = options.trusts.map((name) => [join(root, name), { hasTrustDialogAccepted: true }]);
  await write("../home/.claude.json", JSON.stringify({ projects: Object.fromEntries(projects) }));
  const result = await sample.runtime.run("Look around.").result;
  expect(result.text).toBe("Done.");
  return {
    ran: marks.filter((name) => existsSync(join(root, name))),
    hasMemory: sample.requests.some(({ system }) => system.join("\n").includes("agent-memory")),
  };
}

describe("a folder beside the working folder", () => {
  it.each([
    { what: "beside the project", place: "../other" },
    { what: "in the project, as a repository of its own", place: "vendored" },
  ])("runs nothing and widens nothing while it is not trusted itself: $what [PRM-11]", async ({ place }) => {
    expect(await use({ place, trusts: [] })).toEqual({ ran: [], hasMemory: false });
  });

  it("applies its files when it is trusted itself [PRM-11]", async () => {
    expect(await use({ trusts: ["other"] })).toEqual({ ran: marks, hasMemory: true });
  });
});
