import { existsSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { loadMcpEntries } from "@retinue/config/settings/load-mcp-entries.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, it } from "vitest";

const bash = (command: string) => ({ calls: [{ name: "Bash", input: { command } }] });
const hook = { PreToolUse: [{ hooks: [{ type: "command", command: "touch hook-ran" }] }] };

describe("files of an organisation that others can write [PRM-11]", () => {
  it.each([
    ["no one else", 0o644, true],
    ["everybody", 0o666, false],
  ])("written by %s: what they allow, run and say counts: %s", async (_, mode, counts) => {
    await using sample = await createSampleRuntime([bash("touch made"), "Done."]);
    const { workspace } = sample;
    const files: Readonly<Record<string, string>> = {
      "managed-settings.json": JSON.stringify({
        permissions: { allow: ["Bash(touch *)"], deny: ["Read(secret)"] },
        hooks: hook,
        env: { MANAGED: "yes" },
      }),
      "CLAUDE.md": "The organisation says so.",
      ".claude/agents/ours.md": "---\nname: ours\ndescription: It works for us.\n---\nWork.\n",
      ".claude/skills/our-skill/SKILL.md": "---\ndescription: It helps us.\n---\nHelp.\n",
    };
    for (const [name, text] of Object.entries(files)) {
      const file = join(workspace.root, "managed", name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
      await chmod(file, mode);
    }
    await using session = await sample.runtime.open();
    const { denials } = await session.prompt("Go.").result;
    const { settings } = session.discovered.settings;
    const reported = JSON.stringify(sample.requests[0]);
    expect(denials).toHaveLength(counts ? 0 : 1);
    expect(existsSync(workspace.path("made"))).toBe(counts);
    expect(existsSync(workspace.path("hook-ran"))).toBe(counts);
    expect(settings.env.get("MANAGED")).toBe(counts ? "yes" : undefined);
    for (const text of ["The organisation says so.", "ours: It works", "our-skill: It helps"])
      expect(reported.includes(text), text).toBe(counts);
    // What restricts is never dropped.
    expect(settings.permissions.deny.map(({ text }) => text)).toEqual(["Read(secret)"]);
    const notes = session.plan.notes.filter((note) => note.includes("can be written by others"));
    expect(notes.length).toBe(counts ? 0 : 3);
  });

  it("leaves servers out, and leaves no room for others", async () => {
    await using sample = await createSampleRuntime(["Done."], { trusted: true });
    const { workspace } = sample;
    const file = join(workspace.root, "managed/managed-mcp.json");
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, JSON.stringify({ mcpServers: { theirs: { command: "theirs" } } }));
    await chmod(file, 0o666);
    const { paths, settings } = await sample.runtime.agents();
    const loaded = await loadMcpEntries({ paths, layers: settings.layers });
    expect(loaded).toMatchObject({
      entries: [],
      isExclusive: true,
      diagnostics: [{ code: "managed-unsafe", severity: "error", file }],
    });
  });
});
