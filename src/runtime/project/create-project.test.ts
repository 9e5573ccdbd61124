import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createRuntime } from "../create-runtime.ts";

function createFolder(files: Readonly<Record<string, string>>) {
  const root = mkdtempSync(join(tmpdir(), "retinue-project-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  mkdirSync(join(root, "home"), { recursive: true });
  mkdirSync(join(root, "project"), { recursive: true });
  return createRuntime({
    cwd: join(root, "project"),
    home: join(root, "home"),
    env: { PATH: process.env["PATH"] },
    settingSources: ["user", "project", "local"],
  });
}

const reviewer =
  "---\nname: reviewer\ndescription: Reviews code. Use it after changes.\ntools: Read, Grpe\n---\nReview.\n";

describe("a program asks a runtime what the command line shows [SDK-1, CLI-2]", () => {
  test("agents: the list, one with its fields, and what is wrong with them", async () => {
    await using runtime = createFolder({ "project/.claude/agents/reviewer.md": reviewer });
    const { agents, own, hidden } = await runtime.agents.list();
    expect({ own, hidden }).toEqual({ own: 1, hidden: 0 });
    expect(agents.find(({ id }) => id === "reviewer")).toMatchObject({
      model: "inherit",
      about: expect.stringContaining("Reviews code"),
      shadowed: [],
    });
    const { fields } = await runtime.agents.get("reviewer");
    expect(fields.map(({ label }) => label)).toContain("can use");
    await expect(runtime.agents.get("reviwer")).rejects.toMatchObject({
      code: "unknown-agent",
      advice: expect.stringContaining('Did you mean "reviewer"?'),
    });
    const { files, diagnostics } = await runtime.agents.check();
    expect(files).toHaveLength(1);
    expect(diagnostics).toContainEqual(expect.objectContaining({ message: expect.stringContaining("Grpe") }));
    expect((await runtime.agents()).registry.find("reviewer").type).toBe("found");
  });

  test("permissions: every rule with its place, and what would happen to a call", async () => {
    const settings = JSON.stringify({ permissions: { deny: ["Bash(git push *)"], allow: ["Bash(ls *)"] } });
    await using runtime = createFolder({ "home/.claude/settings.json": settings });
    const { rules, isBroken } = await runtime.permissions.list();
    expect(isBroken).toBe(false);
    expect(rules.map(({ list, rule, source }) => [list, rule, source?.scope])).toEqual([
      ["deny", "Bash(git push *)", "user"],
      ["allow", "Bash(ls *)", "user"],
    ]);
    expect(await runtime.permissions.test("Bash(git push origin)")).toMatchObject({
      decision: "deny",
      rule: "Bash(git push *)",
      from: expect.stringContaining("settings.json"),
    });
    const call = { tool: "Bash", input: { command: "ls -l" } };
    expect((await runtime.permissions.test(call)).decision).toBe("allow");
    await expect(runtime.permissions.test({ tool: "Bsh", input: {} })).rejects.toMatchObject({
      advice: "Did you mean Bash?",
    });
  });

  test("servers: added, listed with what holds them back, approved and removed", async () => {
    await using runtime = createFolder({
      "project/.mcp.json": JSON.stringify({
        mcpServers: { db: { command: "db", args: ["$" + "{DB_URL}"] } },
      }),
    });
    const { servers } = await runtime.mcp.list();
    expect(servers).toEqual([
      expect.objectContaining({ connects: false, held: expect.objectContaining({ code: "untrusted" }) }),
    ]);
    expect((await runtime.mcp.get("db")).servers[0]?.reads).toEqual(["DB_URL"]);
    expect(await runtime.mcp.approve("db")).toEqual({ names: ["db"], trusted: false });
    const added = { name: "web", config: { type: "http", url: "https://a.example" }, scope: "user" } as const;
    await runtime.mcp.add(added);
    await expect(runtime.mcp.add(added)).rejects.toMatchObject({ code: "mcp-server-exists" });
    expect(await runtime.mcp.remove("web")).toMatchObject({ scope: "user" });
    await expect(runtime.mcp.remove("web")).rejects.toMatchObject({ code: "unknown-mcp-server" });
  });

  test("skills, tasks and trust of a folder that has none yet", async () => {
    await using runtime = createFolder({});
    expect((await runtime.skills.list()).skills.every(({ skill }) => skill.source.scope !== "project")).toBe(
      true,
    );
    expect(await runtime.tasks.list()).toEqual([]);
    await expect(runtime.tasks.get("a1")).rejects.toMatchObject({ code: expect.any(String) });
    expect((await runtime.trust.show()).answer.trusted).toBe(false);
    await runtime.trust.grant();
    expect((await runtime.trust.show()).parts).toEqual([]);
    expect((await runtime.trust.revoke()).still).toBeUndefined();
  });
});
