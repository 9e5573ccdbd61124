import { link, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMayLoad } from "@retinue/gate/may-load.ts";
import { parseRule, type RuleList } from "@retinue/gate/rules/parse-rule.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let cwd: string;
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), "may-load-"));
  await writeFile(join(cwd, ".env"), "SECRET=42");
  await symlink(".env", join(cwd, "plain.md"));
  await symlink("plain.md", join(cwd, "twice.md"));
  await link(join(cwd, ".env"), join(cwd, "second-name.md"));
  await writeFile(join(cwd, "notes.md"), "notes");
});
afterAll(() => rm(cwd, { recursive: true }));

function mayLoad(
  texts: readonly string[],
  { list = "deny", platform = "linux" }: { list?: RuleList; platform?: string } = {},
) {
  const rules = texts.flatMap((text) => {
    const reading = parseRule(text, { list });
    return reading.type === "rule" ? [{ rule: reading.rule, anchor: cwd }] : [];
  });
  const none: typeof rules = [];
  return createMayLoad({ deny: none, ask: none, [list]: rules }, { cwd, home: "/home/me", platform });
}

describe("[PRM-1, PRM-10] rules over files that are loaded without a call", () => {
  it.each([
    ["Read(./.env)", ".env", false],
    ["Read(./.env)", "plain.md", false],
    ["Read(./.env)", "twice.md", false],
    ["Read(./.env)", "src/../.env", false],
    ["Read(./.env)", "second-name.md", false],
    ["Read(./.e*)", "second-name.md", false],
    ["Read(./plain.md)", "plain.md", false],
    ["Read(./.env)", "notes.md", true],
    ["Read(~/.ssh/**)", "/home/me/.ssh/id_rsa", false],
    ["Read(//etc/**)", "/etc/passwd", false],
  ])("%s and %s: %s", async (rule, file, expected) => {
    const path = file.startsWith("/") ? file : `${cwd}/${file}`;
    expect(await mayLoad([rule])?.(path)).toBe(expected);
    if (!file.startsWith("second")) expect(await mayLoad([rule], { list: "ask" })?.(path)).toBe(expected);
  });

  it("without a path only take tools away, so everything is loaded", () => {
    expect(mayLoad(["Read", "Bash", "Edit(./notes.md)"])).toBeUndefined();
  });

  it("compare without case where files do", async () => {
    expect(await mayLoad(["Read(./.env)"], { platform: "darwin" })?.(join(cwd, ".ENV"))).toBe(false);
  });
});

describe("[PRM-1, SPN-3] a session whose rules forbid a file", () => {
  const spawn = {
    calls: [{ name: "Agent", input: { description: "d", prompt: "p", subagent_type: "general-purpose" } }],
  };

  it("shows neither its agent nor a child what an import of it holds, and says so", async () => {
    await using sample = await createSampleRuntime([spawn, "Done.", "Done."], {
      disallowedTools: ["Read(./.env)"],
    });
    await sample.workspace.write(".env", "SECRET=42");
    await sample.workspace.write("AGENTS.md", "Be kind.\n@./.env\n");
    await using session = await sample.runtime.open();
    await session.prompt("Work.").result;
    expect(sample.requests.length).toBe(3);
    for (const { system } of sample.requests) {
      expect(system.join("\n")).toContain("Be kind.");
      expect(system.join("\n")).not.toContain("SECRET");
    }
    expect(session.plan.notes.join("\n")).toContain("AGENTS.md:2: A rule forbids reading");
  });
});

describe("[PRM-1, MEM-2, SKL-1] what else is loaded obeys the same rules", () => {
  const agent =
    "---\nname: rev\ndescription: It reviews.\nmemory: project\nskills: [secret, open]\n---\nReview.\n";
  const skill = (text: string) => `---\ndescription: It helps.\n---\n${text}\n`;

  it.each([
    ["deny", "Read(.claude/agent-memory/**)", /NOTED/, /OPENED/],
    ["ask", "Read(.claude/agent-memory/**)", /NOTED/, /OPENED/],
    ["deny", "Read(.claude/skills/secret/**)", /HIDDEN/, /OPENED[\s\S]*NOTED|NOTED[\s\S]*OPENED/],
  ] as const)("%s %s", async (list, rule, forbidden, loaded) => {
    await using sample = await createSampleRuntime(["Done.", "Done."], { trusted: true });
    const { workspace } = sample;
    await workspace.write(".claude/agents/rev.md", agent);
    await workspace.write(".claude/agent-memory/rev/MEMORY.md", "- NOTED\n");
    await workspace.write(".claude/skills/secret/SKILL.md", skill("HIDDEN"));
    await workspace.write(".claude/skills/open/SKILL.md", skill("OPENED"));
    await workspace.write(".claude/settings.json", JSON.stringify({ permissions: { [list]: [rule] } }));
    await using session = await sample.runtime.open({ agent: "rev" });
    await session.prompt("Work.").result;
    const [request] = sample.requests;
    const reported = JSON.stringify([request?.system, request?.tools, request?.messages]);
    expect(reported).not.toMatch(forbidden);
    expect(reported).toMatch(loaded);
    expect(session.plan.notes.join("\n")).toMatch(/A rule forbids reading|a rule denies it/);
  });

  it("a skill whose file may not be read cannot be called, nor one that is a link to such a file", async () => {
    const call = { calls: [{ name: "Skill", input: { skill: "secret" } }] };
    await using sample = await createSampleRuntime([call, "Done."], { trusted: true });
    const { workspace } = sample;
    await workspace.write("kept/SKILL.md", skill("HIDDEN"));
    await workspace.write(".claude/skills/open/SKILL.md", skill("OPENED"));
    await symlink("../../kept", workspace.path(".claude/skills/secret"));
    await sample.runtime.run("Go.", { disallowedTools: ["Read(kept/**)"] }).result;
    expect(JSON.stringify(sample.requests)).toContain("open: It helps.");
    expect(JSON.stringify(sample.requests)).not.toMatch(/HIDDEN|secret: It helps/);
  });
});
