import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

  test("sessions: one that is not there has a clear error, and nothing is cleaned where nothing is", async () => {
    await using runtime = createFolder({});
    expect(await runtime.sessions.list()).toEqual([]);
    await expect(runtime.sessions.get("fix the tests")).rejects.toMatchObject({ code: "session-missing" });
    await expect(runtime.sessions.inspect()).rejects.toMatchObject({ code: expect.any(String) });
    const { sessions, teams } = await runtime.sessions.clean({ dryRun: true, olderThanDays: 0 });
    expect([sessions.removed, teams.removed]).toEqual([[], []]);
  });

  test("teams: listed with members and tasks, written to, and removed when no process leads them", async () => {
    const team = {
      leadSessionId: "6b1e1f2a-0000-4000-8000-000000000001",
      members: [{ name: "team-lead" }, { name: "scout", taskId: "a1", isActive: true }],
    };
    await using runtime = createFolder({ "home/.claude/teams/crew/config.json": JSON.stringify(team) });
    const { teams, problems } = await runtime.teams.list();
    expect(problems).toEqual([]);
    expect(teams).toEqual([expect.objectContaining({ name: "crew", lead: "not running" })]);
    // No process leads it, so its members run nowhere, whatever is in the file.
    expect(teams[0]?.members).toEqual([expect.objectContaining({ name: "scout", state: "ended" })]);
    expect(await runtime.teams.send("crew", "scout", "Look again.")).toEqual({ to: "scout", isLed: false });
    expect(await runtime.teams.messages("crew", "scout")).toEqual([
      expect.objectContaining({ to: "scout", body: "Look again." }),
    ]);
    await expect(runtime.teams.send("crew", "nosuch", "Hm.")).rejects.toMatchObject({
      code: "unknown-member",
      advice: expect.stringContaining("scout"),
    });
    expect(await runtime.teams.clean("crew", { dryRun: true })).toEqual([{ name: "crew", isRemoved: true }]);
    expect((await runtime.teams.board("crew")).tasks).toEqual([]);
    await runtime.teams.clean();
    await expect(runtime.teams.get("crew")).rejects.toMatchObject({ code: "unknown-team" });
  });

  test("plugins: switched off in a settings file, and a manifest that is wrong", async () => {
    const manifest = JSON.stringify({ name: "helper", version: "1.2.0" });
    await using runtime = createFolder({
      "home/.claude/plugins/helper/.claude-plugin/plugin.json": manifest,
      "project/broken/.claude-plugin/plugin.json": "{",
    });
    const [found] = await runtime.plugins.list();
    expect(found).toMatchObject({ name: "helper", version: "1.2.0" });
    const { key, file } = await runtime.plugins.disable("helper");
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ enabledPlugins: { [key]: false } });
    expect((await runtime.plugins.list())[0]?.enabled).toBe(false);
    await expect(runtime.plugins.enable("hlper")).rejects.toMatchObject({ code: "unknown-plugin" });
    expect((await runtime.plugins.validate("broken")).isValid).toBe(false);
  });

  test("doctor: broken settings are an error with their place", async () => {
    await using runtime = createFolder({ "project/.claude/settings.json": '{"permissions":{"deny":[1]}}' });
    const checkups = await runtime.doctor.check({ nameOf: () => "settings.json" });
    expect(checkups.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["settings", "trust", "definitions", "MCP servers", "keys", "git", "sandbox"]),
    );
    const settings = checkups.find(({ name }) => name === "settings");
    expect(settings?.state).not.toBe("ok");
    expect(settings?.text).toContain("settings.json");
  });
});
