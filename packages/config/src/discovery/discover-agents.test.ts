import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { defineAgent } from "../agents/define-agent.ts";
import { createAgentCatalog, type DiscoverOptions, discoverAgents } from "./discover-agents.ts";

let root: string;
let options: DiscoverOptions;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-discover-")));
  mkdirSync(join(root, "repo", ".git"), { recursive: true });
  mkdirSync(join(root, "repo", "sub"), { recursive: true });
  mkdirSync(join(root, "home"));
  options = {
    cwd: join(root, "repo", "sub"),
    home: join(root, "home"),
    environment: {},
    managedDirectory: join(root, "managed"),
  };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text: string): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function writeAgent(path: string, name: string, more = ""): void {
  write(path, `---\nname: ${name}\ndescription: From ${path}.\n${more}---\nPrompt of ${path}.\n`);
}

async function sourceOf(name: string, more: Partial<DiscoverOptions> = {}): Promise<string> {
  const { registry } = await discoverAgents({ ...options, ...more });
  const found = registry.find(name);
  return found.type === "found" ? found.agent.definition.description : found.type;
}

describe("[SCP-1, SCP-2] places and their rank", () => {
  test("project folders from here up to the repository root, the nearer wins, nothing above it", async () => {
    writeAgent(".claude/agents/outside.md", "outside");
    writeAgent("repo/.claude/agents/deep/er/a.md", "a");
    expect(await sourceOf("a")).toBe("From repo/.claude/agents/deep/er/a.md.");
    writeAgent("repo/sub/.claude/agents/a.md", "a");
    expect(await sourceOf("a")).toBe("From repo/sub/.claude/agents/a.md.");
    expect(await sourceOf("outside")).toBe("unknown");
  });

  test("managed over session over project over user over plugin over built-in", async () => {
    const session = defineAgent({ name: "Explore", description: "From the session.", prompt: "" });
    expect(await sourceOf("Explore")).toMatch(/^(?!From)/);
    writeAgent("home/.claude/plugins/tools/agents/explore.md", "Explore");
    expect(await sourceOf("Explore")).toMatch(/^(?!From)/);
    expect(await sourceOf("tools:Explore")).toBe("From home/.claude/plugins/tools/agents/explore.md.");
    writeAgent("home/.claude/agents/explore.md", "Explore");
    expect(await sourceOf("Explore")).toBe("From home/.claude/agents/explore.md.");
    writeAgent("repo/.claude/agents/explore.md", "Explore");
    expect(await sourceOf("Explore")).toBe("From repo/.claude/agents/explore.md.");
    expect(await sourceOf("Explore", { agents: [session] })).toBe("From the session.");
    writeAgent("managed/.claude/agents/explore.md", "Explore");
    expect(await sourceOf("Explore", { agents: [session] })).toBe("From managed/.claude/agents/explore.md.");
  });

  test("CLAUDE_CONFIG_DIR moves the user's folder", async () => {
    writeAgent("home/.claude/agents/old.md", "old");
    writeAgent("elsewhere/agents/new.md", "new");
    const environment = { CLAUDE_CONFIG_DIR: join(root, "elsewhere") };
    expect(await sourceOf("new", { environment })).toBe("From elsewhere/agents/new.md.");
    expect(await sourceOf("old", { environment })).toBe("unknown");
  });

  test("setting sources choose which folders count", async () => {
    writeAgent("home/.claude/agents/u.md", "u");
    writeAgent("repo/.claude/agents/p.md", "p");
    expect(await sourceOf("u", { settingSources: ["project"] })).toBe("unknown");
    expect(await sourceOf("p", { settingSources: ["project"] })).toMatch(/^From repo/);
    expect(await sourceOf("p", { settingSources: ["user"] })).toBe("unknown");
  });

  test("added directories count like the project, after it", async () => {
    writeAgent("other/.claude/agents/o.md", "o");
    writeAgent("other/.claude/agents/p.md", "p");
    writeAgent("repo/.claude/agents/p.md", "p");
    const more = { additionalDirectories: [join(root, "other")] };
    expect(await sourceOf("o", more)).toMatch(/^From other/);
    expect(await sourceOf("p", more)).toMatch(/^From repo/);
  });
});

describe("[SCP-2, SCP-4] plugins", () => {
  test("a plugin directory is known by its manifest's name, its sub-folders are part of the id", async () => {
    write("plug/.claude-plugin/plugin.json", '{"name": "kit"}');
    writeAgent("plug/agents/review/sec.md", "sec", "permissionMode: acceptEdits\n");
    const more = { pluginDirectories: [join(root, "plug")] };
    expect(await sourceOf("kit:review:sec", more)).toMatch(/^From plug/);
    expect(await sourceOf("sec", more)).toMatch(/^From plug/);
    const { diagnostics } = await discoverAgents({ ...options, ...more });
    expect(diagnostics.map(({ code }) => code)).toEqual(["ignored-in-plugin"]);
  });

  test("installed plugins are found through the install record, and a disabled one gives nothing", async () => {
    const installPath = join(root, "home/.claude/plugins/cache/market/kit/1.0.0");
    writeAgent("home/.claude/plugins/cache/market/kit/1.0.0/agents/a.md", "a");
    write("home/.claude/plugins/cache/market/kit/1.0.0/.claude-plugin/plugin.json", '{"name": "kit"}');
    write(
      "home/.claude/plugins/installed_plugins.json",
      JSON.stringify({
        version: 2,
        plugins: { "kit@market": [{ scope: "user", installPath, version: "1.0.0" }] },
      }),
    );
    write("home/.claude/settings.json", '{"enabledPlugins": {"kit@market": true}}');
    expect(await sourceOf("kit:a")).toMatch(/^From home/);
    write("home/.claude/settings.json", '{"enabledPlugins": {"kit@market": false}}');
    expect(await sourceOf("kit:a")).toBe("unknown");
  });

  test("a link that leads out of a plugin is not followed", async () => {
    writeAgent("secret/s.md", "s");
    mkdirSync(join(root, "plug/agents"), { recursive: true });
    symlinkSync(join(root, "secret/s.md"), join(root, "plug/agents/s.md"));
    expect(await sourceOf("s", { pluginDirectories: [join(root, "plug")] })).toBe("unknown");
  });
});

describe("[SCP-5] deny rules from settings and flags", () => {
  test.each([
    ['"Task(Explore)"'],
    ['"Agent(Explore)"'],
    ['{"tool": "Task", "args": "Explore"}'],
    ['"Agent"'],
    ['"Task(*)"'],
  ])("%s in a project's settings hides Explore, trusted or not", async (rule) => {
    write("repo/.claude/settings.json", `{"permissions": {"deny": [${rule}]}}`);
    expect(await sourceOf("Explore")).toBe("denied");
    expect(await sourceOf("Explore", { trusted: true })).toBe("denied");
    const { registry } = await discoverAgents(options);
    expect(registry.list().map(({ id }) => id)).not.toContain("Explore");
  });

  test("--disallowedTools does the same, and a rule that cannot be read is an error", async () => {
    expect(await sourceOf("Plan", { disallowedTools: ["Task(Plan)"] })).toBe("denied");
    const { diagnostics } = await discoverAgents({ ...options, disallowedTools: ["Task(Plan"] });
    expect(diagnostics).toMatchObject([{ severity: "error", code: "invalid-permission-rule" }]);
  });

  test("a settings file that is broken is a problem with a place, not a crash", async () => {
    write("repo/.claude/settings.json", '{\n  "permissions": {\n    "deny": [oops]\n  }\n}');
    const { diagnostics, settings } = await discoverAgents(options);
    expect(diagnostics).toMatchObject([{ severity: "error", code: "invalid-json", line: 3 }]);
    expect(settings.incomplete).toBe(true);
  });
});

describe("[BLT-1, BLT-7] built-in agents in the registry", () => {
  test("they are there without any file, and a file of the same name replaces one", async () => {
    const { registry } = await discoverAgents(options);
    expect(registry.list().map(({ id }) => id)).toEqual([
      "Bash",
      "Explore",
      "Plan",
      "claude-code-guide",
      "general-purpose",
      "statusline-setup",
    ]);
    writeAgent("repo/.claude/agents/plan.md", "Plan");
    expect(await sourceOf("Plan")).toMatch(/^From repo/);
  });

  test("[BLT-6] the guide knows the user's own agents and is absent in SDK programs", async () => {
    writeAgent("repo/.claude/agents/mine.md", "my-own-reviewer");
    const { registry } = await discoverAgents(options);
    const found = registry.find("claude-code-guide");
    expect(found.type === "found" && found.agent.definition.prompt).toContain("my-own-reviewer");
    expect(await sourceOf("claude-code-guide", { environment: { CLAUDE_CODE_ENTRYPOINT: "sdk-ts" } })).toBe(
      "unknown",
    );
  });
});

describe("[DEF-10, DEF-11] a catalog is read anew at each use", () => {
  test("files that change and definitions that are registered count at the next read", async () => {
    const catalog = createAgentCatalog(options);
    const has = async (name: string) => (await catalog.read()).registry.find(name).type === "found";
    expect(await has("late")).toBe(false);
    writeAgent("repo/.claude/agents/late.md", "late");
    expect(await has("late")).toBe(true);
    catalog.register(defineAgent({ name: "coded", description: "d", prompt: "p" }));
    expect(await has("coded")).toBe(true);
    catalog.unregister("coded");
    expect(await has("coded")).toBe(false);
    write("repo/.claude/settings.json", '{"permissions": {"deny": ["Agent(late)"]}}');
    expect(await has("late")).toBe(false);
  });
});

test("[SCP-6] listing reads fields only; the body stays with the definition until a spawn uses it", async () => {
  writeAgent("repo/.claude/agents/a.md", "a");
  const { registry } = await discoverAgents(options);
  const { describeAgents } = await import("../agents/describe-agents.ts");
  const { text } = describeAgents(registry.list().map(({ definition }) => definition));
  expect(text).toContain("From repo/.claude/agents/a.md.");
  expect(text).not.toContain("Prompt of repo");
});

describe("[DEF-11] files are read again only when something changed", () => {
  const later = (): number => Date.now() + 5_000;

  function writeEverything(): void {
    writeAgent("repo/.claude/agents/deep/a.md", "a");
    writeAgent("managed/.claude/agents/m.md", "m");
    write("managed/managed-settings.json", "{}");
    write("managed/managed-settings.d/10.json", "{}");
    write("home/.claude/settings.json", "{}");
    writeAgent("plugged/agents/p.md", "p");
    write("plugged/.claude-plugin/plugin.json", '{"name":"plugged"}');
    writeAgent("market/inside/agents/q.md", "q");
    const entry = { name: "inside", source: "./inside" };
    write("market/.claude-plugin/marketplace.json", JSON.stringify({ name: "market", plugins: [entry] }));
    write("home/.claude/plugins/installed_plugins.json", '{"plugins":{"inside@market":[{}]}}');
    write(
      "home/.claude/plugins/known_marketplaces.json",
      JSON.stringify({ market: { installLocation: join(root, "market") } }),
    );
    mkdirSync(join(root, "added/.claude/agents"), { recursive: true });
    symlinkSync(join(root, "elsewhere.md"), join(root, "repo/.claude/agents/link.md"));
  }

  const catalogOf = () =>
    createAgentCatalog(
      {
        ...options,
        pluginDirectories: [join(root, "plugged")],
        additionalDirectories: [join(root, "added")],
        settings: join(root, "flags.json"),
      },
      later,
    );

  test("a second reading gives what the first one found", async () => {
    writeEverything();
    write("flags.json", "{}");
    const catalog = catalogOf();
    const first = await catalog.read();
    expect([...first.registry.list()].map(({ id }) => id)).toEqual(
      expect.arrayContaining(["a", "m", "plugged:p", "inside:q"]),
    );
    expect(await catalog.read()).toBe(first);
    expect(await catalog.read()).toBe(first);
  });

  test("every place that was looked at is looked at again", async () => {
    writeEverything();
    write("flags.json", "{}");
    const catalog = catalogOf();
    let last = await catalog.read();
    const changes: Readonly<Record<string, () => void>> = {
      "an agent": () => writeAgent("repo/.claude/agents/deep/a.md", "b"),
      "a new agent": () => writeAgent("repo/.claude/agents/deep/new.md", "new"),
      "a new folder of agents": () => writeAgent("repo/sub/.claude/agents/near.md", "near"),
      "an agent of the user": () => writeAgent("home/.claude/agents/u.md", "u"),
      "an agent of an added folder": () => writeAgent("added/.claude/agents/x.md", "x"),
      "where a link leads": () => writeAgent("elsewhere.md", "far"),
      "settings of the user": () => write("home/.claude/settings.json", '{"model":"haiku"}'),
      "settings of the project": () => write("repo/.claude/settings.json", "{}"),
      "local settings": () => write("repo/sub/.claude/settings.local.json", "{}"),
      "settings of the call": () => write("flags.json", '{"model":"haiku"}'),
      "settings of the organisation": () => write("managed/managed-settings.json", '{"model":"haiku"}'),
      "a drop-in": () => write("managed/managed-settings.d/20.json", "{}"),
      "who may write settings of the organisation": () => chmodSync(join(root, "managed"), 0o777),
      "a plugin's manifest": () => write("plugged/.claude-plugin/plugin.json", '{"name":"other"}'),
      "a plugin's agents": () => writeAgent("plugged/agents/inner/r.md", "r"),
      "an agent of a plugin": () => writeAgent("plugged/agents/p.md", "s"),
      "a marketplace": () => write("market/.claude-plugin/marketplace.json", '{"plugins":[]}'),
      "the known marketplaces": () => write("home/.claude/plugins/known_marketplaces.json", "{}"),
      "the installed plugins": () => write("home/.claude/plugins/installed_plugins.json", '{"plugins":{}}'),
      "a plugin in the user's folder": () => writeAgent("home/.claude/plugins/own/agents/o.md", "o"),
      "a plugin among skills": () => write("home/.claude/skills/s/.claude-plugin/plugin.json", "{}"),
      "the trust of an added folder": () =>
        write(
          "home/.claude.json",
          JSON.stringify({ projects: { [join(root, "added")]: { hasTrustDialogAccepted: true } } }),
        ),
      "the repository": () => mkdirSync(join(root, "repo/sub/.git")),
    };
    for (const [title, change] of Object.entries(changes)) {
      change();
      const next = await catalog.read();
      expect(next === last, title).toBe(false);
      expect(await catalog.read(), `after ${title}`).toBe(next);
      last = next;
    }
  });

  test("a registration counts for the next reading, the same one again changes nothing", async () => {
    const catalog = createAgentCatalog(options, later);
    const own = defineAgent({ name: "own", description: "Own.", prompt: "" });
    const first = await catalog.read();
    catalog.register(own);
    const second = await catalog.read();
    expect(second.registry.find("own").type).toBe("found");
    catalog.register(own);
    expect(await catalog.read()).toBe(second);
    catalog.unregister("own");
    const third = await catalog.read();
    expect(third.registry.find("own").type).toBe("unknown");
    expect(third).not.toBe(first);
  });
});
